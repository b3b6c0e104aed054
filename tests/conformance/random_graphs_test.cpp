// Random graphs through the whole compiler and onto each device, against the reference evaluation.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <random>

#include "graph/reference.h"
#include "ops/reference.h"
#include "tern/compile.h"
#include "tern/session.h"
#include "unit/lower/author.h"
#include "unit/places.h"

namespace tern {
namespace {

// A graph's leaves, as the reference and as the session take them.
struct Leaves {
  std::map<std::string, RefLeaf> values;
  std::map<std::string, std::vector<std::byte>> bytes;
  const RefTensor& at(const std::string& name) const { return std::get<RefTensor>(values.at(name)); }
  TensorView view(const std::string& name) const { return {at(name).dtype, at(name).shape, bytes.at(name), nullptr}; }
};

size_t bytes_of(const RefTensor& t) { return static_cast<size_t>(t.size()) * dtype_bytes(t.dtype); }
int64_t rows_of(const RefTensor& t) { return t.shape.empty() ? 1 : t.shape[0]; }

// Rows to store must differ, or which of two wins is open.
void fill(RefTensor& t, std::mt19937& rng) {
  for (double& f : t.f) f = round_to(t.dtype, std::normal_distribution<double>()(rng));
  const auto first = static_cast<int64_t>(rng() % 9);
  for (size_t n = 0; n < t.i.size(); ++n) t.i[n] = (first + static_cast<int64_t>(n) * 3) % 9 - 1;
}

Leaves make_leaves(const Graph& graph, std::span<const int64_t> symbols, std::mt19937& rng) {
  Leaves leaves;
  for (const Port& port : graph.ports()) {
    std::vector<int64_t> shape;
    for (const Dim d : graph.type(port.value).shape) shape.push_back(*graph.dims->eval(d, symbols));
    RefTensor t = ref_zeros(graph.type(port.value).dtype, shape);
    fill(t, rng);
    auto& bytes = leaves.bytes[port.name];
    bytes.resize(bytes_of(t));
    EXPECT_TRUE(ref_store(t, {t.dtype, t.shape, bytes}).ok());
    leaves.values[port.name] = std::move(t);
  }
  return leaves;
}

void expect_near(const RefTensor& got, const RefTensor& want, const std::string& what) {
  for (size_t n = 0; n < want.f.size(); ++n) {
    if (std::isnan(want.f[n]) && std::isnan(got.f[n])) continue;
    ASSERT_NEAR(got.f[n], want.f[n], 2e-3 * (1 + std::fabs(want.f[n]))) << what << " element " << n;
  }
  ASSERT_EQ(got.i, want.i) << what;
}

using Bytes = std::map<std::string, std::vector<std::byte>>;

// Outputs and states as a device leaves them.
void run_compiled(const Graph& graph, const Executable& exe, const Leaves& leaves, const RefResults& want,
                  int64_t symbol, Bytes& out) {
  Params params = exe.params();
  for (const Port& port : graph.ports()) {
    if (port.kind != PortKind::param) continue;
    ASSERT_TRUE(params.set(port.name, leaves.view(port.name)).ok());
  }
  auto session = exe.open(params);
  ASSERT_TRUE(session.ok()) << session.error().message();
  for (const Port& port : graph.ports()) {
    if (port.kind != PortKind::state) continue;
    ASSERT_TRUE(session->write(port.name, 0, rows_of(leaves.at(port.name)), leaves.bytes.at(port.name)).ok());
  }
  std::vector<IoBinding> io;
  for (const IoInfo& i : exe.io()) {
    if (i.kind == IoKind::input) io.push_back({i.id, leaves.view(i.name)});
    if (i.kind != IoKind::output) continue;
    const RefTensor& t = want.outputs.at(i.name);
    out[i.name].resize(bytes_of(t));
    io.push_back({i.id, MutableView{t.dtype, t.shape, out[i.name]}});
  }
  const auto done = session->run(io, std::vector<SymbolValue>{{"B", symbol}});
  ASSERT_TRUE(done.ok()) << done.error().message();
  for (const auto& [name, t] : want.states) {
    std::vector<std::byte>& bytes = out["state " + name];
    bytes.resize(bytes_of(t));
    ASSERT_TRUE(session->read(name, 0, rows_of(t), bytes).ok());
  }
}

// Where the tile interpreter runs every kernel, the numbers are those of machine code (all NaNs are alike).
void expect_interpreted_alike(const Graph& graph, const Device& device, Options options, const Leaves& leaves,
                              const RefResults& want, int64_t symbol, const Bytes& compiled) {
  options.plugin_path = "none";
  const auto exe = compile(graph.clone(), device, options);
  ASSERT_TRUE(exe.ok()) << exe.error().message();
  ASSERT_EQ(exe->timings().kernels_interpreted, exe->timings().kernels);
  Bytes out;
  run_compiled(graph, *exe, leaves, want, symbol, out);
  const auto look = [&](const std::map<std::string, RefTensor>& tensors, const std::string& prefix) {
    for (const auto& [name, t] : tensors) {
      const auto a = *ref_from(TensorView{t.dtype, t.shape, out[prefix + name], nullptr}),
                 b = *ref_from(TensorView{t.dtype, t.shape, compiled.at(prefix + name), nullptr});
      for (size_t i = 0; i < b.f.size(); ++i) {
        if (std::isnan(a.f[i]) && std::isnan(b.f[i])) continue;
        ASSERT_EQ(a.f[i], b.f[i]) << prefix << name << " element " << i << "\n" << print(graph) << exe->program_text();
      }
      ASSERT_EQ(a.i, b.i) << prefix << name << "\n" << print(graph);
    }
  };
  look(want.outputs, "");
  look(want.states, "state ");
}

void run(const Device& device, const Graph& graph, uint32_t seed) {
  Options options;
  options.plugin_path = TERN_LLVM_PLUGIN_PATH;
  options.cache_dir = "none";
  options.pack_dir = "none";
  options.precise = true;
  if (seed % 2) options.ranges = {{{"B", 1, 1}}, {{"B", 1, 3}}};
  const auto exe = compile(graph.clone(), device, options);
  ASSERT_TRUE(exe.ok()) << exe.error().message() << "\n" << print(graph);
  std::mt19937 rng(seed);
  const std::vector<int64_t> symbols = {1 + seed % 6};
  const Leaves leaves = make_leaves(graph, symbols, rng);
  const auto want = evaluate(graph, leaves.values, symbols);
  ASSERT_TRUE(want.ok()) << want.error().message();
  Bytes out;
  run_compiled(graph, *exe, leaves, *want, symbols[0], out);
  if (testing::Test::HasFatalFailure()) return;
  const std::string context = "\n" + print(graph) + exe->program_text();
  for (const auto& [name, t] : want->outputs)
    expect_near(*ref_from(TensorView{t.dtype, t.shape, out[name], nullptr}), t, name + context);
  for (const auto& [name, t] : want->states)
    expect_near(*ref_from(TensorView{t.dtype, t.shape, out["state " + name], nullptr}), t, "state " + name + context);
  if (exe->timings().kernels_text == 0)
    expect_interpreted_alike(graph, device, options, leaves, *want, symbols[0], out);
}

class RandomGraphs : public testing::TestWithParam<const char*> {};

TEST_P(RandomGraphs, GiveWhatTheReferenceSays) {
  if (const std::string why = test::why_not(GetParam()); !why.empty()) GTEST_SKIP() << why;
  const auto device = open_device(GetParam());
  ASSERT_TRUE(device.ok()) << device.error().message();
  // A driver's compiler takes seconds for each graph.
  const uint32_t graphs = test::driven(GetParam()) ? 6 : 100;
  for (uint32_t seed = 0; seed < graphs; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    auto graph = test::Author(seed).write(12 + static_cast<int>(seed) % 30).finish();
    ASSERT_TRUE(graph.ok()) << graph.error().message();
    (void)graph->set_resident("s", false);
    run(*device, *graph, seed);
    if (HasFatalFailure()) return;
  }
}
INSTANTIATE_TEST_SUITE_P(Devices, RandomGraphs, testing::Values("cpu", "mean", test::kOpencl, test::kVulkan));

}  // namespace
}  // namespace tern
