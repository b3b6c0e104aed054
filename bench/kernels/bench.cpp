#include "bench.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "kir/builder.h"

namespace tern::bench {

namespace {

[[noreturn]] void stop(const std::string& why) {
  std::fprintf(stderr, "%s\n", why.c_str());
  std::exit(1);
}

const LlvmCompiler& compiler() {
  static const LlvmCompiler c = [] {
    auto r = LlvmCompiler::open(TERN_LLVM_PLUGIN_PATH);
    if (!r) stop(r.error().message());
    return *r;
  }();
  return c;
}

std::vector<double>& times() {
  static std::vector<double> t;
  return t;
}

}  // namespace

bool show_assembly = false;
const std::vector<double>& compile_seconds() { return times(); }

Caps host_caps() {
  __builtin_cpu_init();
  Caps caps;
  caps.device = "cpu";
  const bool v4 =
      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
  const bool v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  caps.isa = v4   ? __builtin_cpu_supports("avx512vnni") ? "x86-64-v4+avx512vnni" : "x86-64-v4"
             : v3 ? "x86-64-v3"
                  : "x86-64-v2";
  caps.lanes = v4 ? 16 : v3 ? 8 : 4;
  caps.max_lanes = 64;
  caps.byte_lookup = caps.isa.rfind("x86-64", 0) == 0;  // from v2 on
  caps.lockstep = true;
  caps.subgroup = {1, 64, true};
  caps.dot4 = v3 || v4 ? Dot4::fast : Dot4::slow;
  caps.dot4_code_bits = caps.isa.find("vnni") != std::string::npos ? 8 : 7;
  caps.fma = v3 || v4;
  return caps;
}

kir::CpuEntry compile(const std::vector<std::byte>& kir) {
  static std::vector<std::unique_ptr<cpu::LoadedObject>> loaded;
  const double start = now();
  auto object = compiler().compile(kir, cpu_target(host_caps().isa));
  times().push_back(now() - start);
  if (show_assembly) {
    if (auto text = compiler().text(kir, cpu_target(host_caps().isa), true)) std::puts(text->c_str());
  }
  if (!object) stop(object.error().message());
  auto o = cpu::load_object(*object);
  if (!o) stop(o.error().message());
  loaded.push_back(std::move(*o));
  return reinterpret_cast<kir::CpuEntry>(*loaded.back()->symbol("kernel"));
}

class Ctx final : public BuildCtx {
 public:
  Ctx(Asked a, Instance& i) : BuildCtx(a), i_(i) {}
  Use whole(uint16_t operand) override {
    return {{operand, Dim(0), Dim(static_cast<int64_t>(i_.memory_[operand].bytes))}, i_.p.operands[operand].access};
  }
  Use window(uint16_t operand, Dim offset, Dim bytes) override {
    return {{operand, offset, bytes}, i_.p.operands[operand].access};
  }
  Use scratch(Dim bytes) override {
    i_.scratch_.make(static_cast<uint64_t>(*bytes.constant()));
    return {{static_cast<BufferId>(i_.p.operands.size()), Dim(0), bytes}, Access::update};
  }
  KernelId kernel(KernelDef def) override {
    kernels_.push_back(compile(def.code));
    return static_cast<KernelId>(kernels_.size() - 1);
  }
  void step(Step s) override {
    const Launch& l = std::get<Launch>(s.what);
    Instance::Call call{kernels_[l.kernel], {}, {}, static_cast<uint32_t>(*l.groups.constant())};
    for (const Use& u : s.uses) {
      std::byte* base = u.ref.id == i_.p.operands.size() ? i_.scratch_.data : i_.memory_[u.ref.id].data;
      call.buffers.push_back(base + *u.ref.offset.constant());
    }
    for (Dim d : l.scalars) call.dims.push_back(static_cast<uint32_t>(*d.constant()));
    call.dims.push_back(0);
    i_.calls_.push_back(std::move(call));
  }

 private:
  Instance& i_;
  std::vector<kir::CpuEntry> kernels_;
};

uint16_t Instance::add(Role role, TensorType type, Access access, Origin origin) {
  Operand o;
  o.type = std::move(type), o.role = role, o.access = access, o.origin = origin;
  p.operands.push_back(std::move(o));
  return static_cast<uint16_t>(p.operands.size() - 1);
}

void Instance::prepare(std::string_view name) {
  const Caps caps = host_caps();
  for (const Candidate& c : kernel_candidates()) {
    if (c.name != name) continue;
    const auto bids = c.bid(p, {caps, dims});
    if (!bids) stop(std::string(name) + ": " + bids.why());
    const Bid& bid = (*bids)[0];
    memory_.resize(p.operands.size());
    for (size_t i = 0; i < p.operands.size(); ++i) {
      p.operands[i].layout = bid.layouts[i];
      const auto bytes = bid.layouts[i].def->bytes(dims, p.operands[i].type, bid.layouts[i].tile);
      memory_[i].make(static_cast<uint64_t>(*bytes->constant()));
      // Small positive numbers in every type: halves and floats near 0.01, codes of all kinds.
      uint32_t s = 12345;
      for (uint64_t b = 0; b < memory_[i].bytes; ++b) {
        s = s * 1664525 + 1013904223;
        memory_[i].data[b] = static_cast<std::byte>(b % 2 ? 0x21 + (s >> 24 & 3) : s >> 24);
      }
    }
    Ctx ctx({caps, dims}, *this);
    const Status s = c.build(p, bid, ctx);
    if (!s) stop(s.error().message());
    return;
  }
  stop("no candidate " + std::string(name));
}

void Instance::run() const {
  for (const Call& c : calls_) c.entry(c.buffers.data(), c.dims.data(), 0, c.groups);
}

std::vector<double> medians(const std::vector<std::function<void()>>& functions, int rounds) {
  std::vector<int> repeat;
  for (const auto& f : functions) {
    f();
    const double start = now();
    f();
    repeat.push_back(std::clamp(static_cast<int>(0.02 / std::max(now() - start, 1e-9)), 1, 100000));
  }
  std::vector<std::vector<double>> all(functions.size());
  for (int r = 0; r < rounds; ++r) {
    for (size_t i = 0; i < functions.size(); ++i) {
      const double start = now();
      for (int k = 0; k < repeat[i]; ++k) functions[i]();
      all[i].push_back((now() - start) / repeat[i]);
    }
  }
  std::vector<double> out;
  for (auto& t : all) {
    std::sort(t.begin(), t.end());
    out.push_back(t[t.size() / 2]);
  }
  return out;
}

namespace {

// Independent chains of fma or dot4, nothing else: what the machine can do.
kir::CpuEntry chains(bool ints, int count) {
  const Caps caps = host_caps();
  kir::B b("roof", caps.lanes, caps);
  b.node_budget(1000);
  using namespace kir;
  Buffer x = buffer("x", u32), y = buffer("y", ints ? i32 : f32, write);
  const V n = dim("n"), a = x[lane()];
  std::vector<Var> acc;
  for (int i = 0; i < count; ++i)
    acc.push_back(ints ? var(i32, cast(i32, lane()) + i) : var(f32, cast(f32, lane()) + static_cast<float>(i)));
  For(0, n, [&](V) {
    for (int k = 0; k < 4; ++k) {
      for (Var& v : acc) v.set(ints ? dot4(v.get(), a & 0x7f7f7f7f, a) : fma(v.get(), bitcast(f32, a), 1.f));
    }
  });
  V sum = acc[0].get();
  for (int i = 1; i < count; ++i) sum = sum + acc[static_cast<size_t>(i)].get();
  y.store(lane(), sum);
  auto k = b.finish();
  if (!k) stop(k.error().message());
  return compile(kir::serialize(*k));
}

}  // namespace

Roofs measure_roofs() {
  Roofs r;
  const Caps caps = host_caps();
  Aligned x, y;
  x.make(4096), y.make(4096);
  std::memset(x.data, 1, 4096);
  void* buffers[] = {x.data, y.data};
  const uint32_t n = 100000;
  const kir::CpuEntry flop = chains(false, 12), ints = chains(true, 12);
  // Reading: more than the last level of most machines.
  Aligned big;
  big.make(uint64_t{384} << 20);
  std::memset(big.data, 1, big.bytes);
  volatile uint64_t sink = 0;
  auto read = [&] {
    using Vec = uint64_t __attribute__((vector_size(64)));
    const Vec* v = reinterpret_cast<const Vec*>(big.data);
    Vec a{}, b{}, c{}, d{};
    for (uint64_t i = 0; i < big.bytes / 64; i += 4) a += v[i], b += v[i + 1], c += v[i + 2], d += v[i + 3];
    a += b + c + d;
    sink = sink + a[0];
  };
  const auto t = medians({[&] { flop(buffers, &n, 0, 1); }, [&] { ints(buffers, &n, 0, 1); }, read}, 5);
  r.flop = 2.0 * 12 * 4 * caps.lanes * n / t[0];
  r.int8 = 8.0 * 12 * 4 * caps.lanes * n / t[1];
  r.read = static_cast<double>(big.bytes) / t[2];
  return r;
}

}  // namespace tern::bench
