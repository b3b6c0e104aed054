// onednn_matmul M N K: seconds of one oneDNN matmul x[M, K] · w[K, N], on the threads that OMP_NUM_THREADS names, as
// JSON. w lies as oneDNN likes it best and is reordered before the clock runs, as tern packs its weights.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <oneapi/dnnl/dnnl.hpp>
#include <vector>

namespace {

using dnnl::memory;

void fill(memory& m, memory::data_type type) {
  const size_t bytes = m.get_desc().get_size();
  auto* at = static_cast<unsigned char*>(m.get_data_handle());
  for (size_t i = 0; i < bytes; ++i) at[i] = static_cast<unsigned char>(i * 7 % 64);
  if (type == memory::data_type::s8 || type == memory::data_type::u8) return;
  // Exponents of numbers near one.
  const size_t step = type == memory::data_type::f32 ? 4 : 2;
  for (size_t i = step - 1; i < bytes; i += step) at[i] = 0x3f;
}

double seconds(memory::data_type x_type, memory::data_type w_type, memory::data_type y_type, const memory::dims& mnk) {
  const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  dnnl::stream stream(engine);
  const memory::dim m = mnk[0], n = mnk[1], k = mnk[2];
  const memory::desc x_desc({m, k}, x_type, memory::format_tag::ab), w_any({k, n}, w_type, memory::format_tag::any),
      w_plain({k, n}, w_type, memory::format_tag::ab), y_desc({m, n}, y_type, memory::format_tag::ab);
  const dnnl::matmul::primitive_desc desc(engine, x_desc, w_any, y_desc);
  memory x(x_desc, engine), plain(w_plain, engine), w(desc.weights_desc(), engine), y(y_desc, engine);
  fill(x, x_type);
  fill(plain, w_type);
  dnnl::reorder(plain, w).execute(stream, plain, w);
  const dnnl::matmul matmul(desc);
  const std::unordered_map<int, memory> args = {{DNNL_ARG_SRC, x}, {DNNL_ARG_WEIGHTS, w}, {DNNL_ARG_DST, y}};
  std::vector<double> times;
  for (int round = 0; round < 8; ++round) {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < 4; ++i) matmul.execute(stream, args);
    stream.wait();
    times.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() / 4);
  }
  std::sort(times.begin() + 1, times.end());  // the first warms up
  return times[times.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return std::fprintf(stderr, "usage: onednn_matmul M N K\n"), 1;
  const memory::dims mnk = {std::atol(argv[1]), std::atol(argv[2]), std::atol(argv[3])};
  using type = memory::data_type;
  try {
    std::printf("{\"f32\": %.6g, \"bf16\": %.6g, \"s8\": %.6g}\n", seconds(type::f32, type::f32, type::f32, mnk),
                seconds(type::bf16, type::bf16, type::f32, mnk), seconds(type::u8, type::s8, type::s32, mnk));
  } catch (const dnnl::error& error) {
    return std::fprintf(stderr, "onednn_matmul: %s\n", error.what()), 1;
  }
}
