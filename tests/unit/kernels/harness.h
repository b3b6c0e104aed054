// Runs one Problem through one candidate: bids, layouts, build, and the steps by machine code or by the interpreter.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "backends/cpu/device.h"
#include "emit/llvm_compiler.h"
#include "kernels/kernels.h"
#include "kir/interp.h"
#include "kir/print.h"
#include "kir/serial.h"
#include "kir/verify.h"
#include "machine/code.h"
#include "machine/levels.h"
#include "shim/text_case.h"

namespace tern::test {

inline Caps cpu_caps() {
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
inline Caps avx2_caps() {
  Caps caps = cpu_caps();
  caps.isa = "x86-64-v3";
  caps.dot4_code_bits = 7;
  caps.lanes = 8;
  return caps;
}
// The mean device's limits; run by the interpreter, which finds races.
inline Caps mean_caps() {
  Caps caps;
  caps.device = "mean";
  caps.isa = "mean";
  caps.lanes = 16;
  caps.max_lanes = 64;
  caps.subgroup = {1, 1, false};
  caps.dot4 = Dot4::none;
  caps.workgroup_bytes = 16 * 1024;
  caps.f16_storage = false;
  caps.i64 = caps.f64 = false;
  caps.mixed_access = false;
  caps.max_binding_bytes = 1 << 20;
  caps.max_bindings = 8;
  caps.offset_alignment = 256;
  return caps;
}

// GPUs whose kernels are texts (TERN_TEST_ON=texts): one with subgroups of 32 and products of bytes; one that says
// little.
inline Caps gpu_caps() {
  Caps caps;
  caps.device = caps.isa = "gpu";
  caps.form = KernelForm::text;
  caps.lanes = 32, caps.max_lanes = 256;
  caps.subgroup = {32, 32, false};
  caps.dot4 = Dot4::fast;
  return caps;
}
inline Caps open_gpu_caps() {
  Caps caps = gpu_caps();
  caps.device = caps.isa = "open gpu";
  caps.subgroup = {4, 64, false};
  caps.dot4 = Dot4::none;
  caps.i64 = caps.f64 = false;
  return caps;
}
inline bool on_texts() {
  const char* on = std::getenv("TERN_TEST_ON");
  return on != nullptr && std::string_view(on) == "texts";
}
// What ran on such a place; texts_test.cpp writes, compiles and runs it after all tests.
struct RanAsText {
  Caps caps;
  std::vector<TextCase> cases;
};
std::vector<RanAsText>& ran_as_texts();
// A few kernels of each name, where they are short.
void keep_as_text(const Caps& caps, const kir::Kernel& kernel, const std::vector<kir::InterpBuffer>& buffers,
                  const std::vector<uint32_t>& dims, uint32_t groups);

inline const LlvmCompiler& compiler() {
  static const LlvmCompiler c = [] {
    auto r = LlvmCompiler::open(TERN_LLVM_PLUGIN_PATH);
    if (!r) ADD_FAILURE() << r.error().message();
    return *r;
  }();
  return c;
}

class RecordingCtx final : public BuildCtx {
 public:
  RecordingCtx(Asked a, const Problem& p) : BuildCtx(a), problem(p) {}
  Use whole(uint16_t operand) override {
    const Operand& o = problem.operands[operand];
    const auto bytes = o.layout.def->bytes(asked.dims, o.type, o.layout.tile);
    EXPECT_TRUE(bytes.ok());
    return {{operand, Dim(0), *bytes}, o.access};
  }
  Use window(uint16_t operand, Dim offset, Dim bytes) override {
    return {{operand, offset, bytes}, problem.operands[operand].access};
  }
  Use scratch(Dim bytes) override {
    scratch_bytes = bytes;
    return {{static_cast<BufferId>(problem.operands.size()), Dim(0), bytes}, Access::update};
  }
  KernelId kernel(KernelDef def) override {
    for (size_t i = 0; i < kernels.size(); ++i) {
      if (kernels[i].hash == def.hash) return static_cast<KernelId>(i);
    }
    kernels.push_back(std::move(def));
    return static_cast<KernelId>(kernels.size() - 1);
  }
  void step(Step s) override { steps.push_back(std::move(s)); }

  const Problem& problem;
  std::vector<KernelDef> kernels;
  std::vector<Step> steps;
  Dim scratch_bytes = 0;
};

inline const Candidate& candidate(std::string_view name) {
  for (const Candidate& c : kernel_candidates()) {
    if (c.name == name) return c;
  }
  ADD_FAILURE() << "no candidate " << name;
  return kernel_candidates()[0];
}

// Machine code of a kernel, compiled once a process: tests ask for the same kernels over and over.
inline const LoadedCode* code_of(const KernelDef& def, const Caps& caps) {
  static std::map<std::pair<Hash, std::string>, std::unique_ptr<LoadedCode>> all;
  auto& slot = all[{def.hash, caps.isa}];
  if (!slot) {
    auto object = compiler().compile(def.code, cpu_target(caps.isa));
    EXPECT_TRUE(object.ok()) << object.error().message();
    if (!object) return nullptr;
    auto loaded = LoadedCode::load(std::move(*object), caps.isa);
    EXPECT_TRUE(loaded.ok()) << loaded.error().message();
    if (!loaded) return nullptr;
    slot = std::make_unique<LoadedCode>(std::move(*loaded));
  }
  return slot.get();
}

// A Problem under construction with the memory of its operands.
struct Case {
  DimTable dims;
  Problem p;
  std::vector<std::vector<std::byte>> memory;  // by operand, in the chosen layout; outputs are made by run
  std::vector<int64_t> symbols;
  std::string error;

  Case() { p.parts.resize(1); }
  uint16_t add(Role role, TensorType type, Access access = Access::read, Origin origin = Origin::temp) {
    Operand o;
    o.type = std::move(type), o.role = role, o.access = access, o.origin = origin;
    p.operands.push_back(std::move(o));
    memory.emplace_back();
    return static_cast<uint16_t>(p.operands.size() - 1);
  }
  Dim symbol(std::string name, int64_t min, int64_t max, int64_t value) {
    symbols.push_back(value);
    return *dims.symbol({name, min, max, 1, false});
  }
  void output(uint16_t operand, uint16_t result = 0) {
    p.parts[0].outs.push_back({operand, result, Output::Kind::map, {}});
  }

  template <class T>
  void set(uint16_t operand, const std::vector<T>& v) {
    memory[operand].resize((v.size() * sizeof(T) + 3) / 4 * 4);
    std::memcpy(memory[operand].data(), v.data(), v.size() * sizeof(T));
  }
  template <class T>
  std::vector<T> get(uint16_t operand) const {
    std::vector<T> v(memory[operand].size() / sizeof(T));
    std::memcpy(v.data(), memory[operand].data(), v.size() * sizeof(T));
    return v;
  }
  uint64_t value(Dim d) { return static_cast<uint64_t>(*dims.eval(d, symbols)); }

  // The candidate's first bid decides layouts that are not set. False: refused (error says why).
  bool choose(std::string_view name, const Caps& caps, Bid* bid, size_t which = 0) {
    const auto bids = candidate(name).bid(p, {caps, dims});
    if (!bids) return error = bids.why(), false;
    *bid = (*bids)[which];
    for (size_t i = 0; i < p.operands.size(); ++i) p.operands[i].layout = bid->layouts[i];
    return true;
  }
  void pack(uint16_t operand, const std::vector<std::byte>& file) {
    const Operand& o = p.operands[operand];
    int64_t rows = 1;
    for (size_t a = 0; a + 1 < o.type.shape.size(); ++a) rows *= static_cast<int64_t>(value(o.type.shape[a]));
    memory[operand].assign(value(*o.layout.def->bytes(dims, o.type, o.layout.tile)), std::byte{0});
    Planes planes;
    planes.p[0] = file;
    const Status s = o.layout.def->pack(o.type, planes, o.layout.tile, 0, rows, memory[operand].data());
    ASSERT_TRUE(s.ok()) << s.error().message();
  }

  void run(std::string_view name, const Caps& caps, const Bid& bid, bool interpret, int split = 2) {
    RecordingCtx ctx({caps, dims}, p);
    const Status built = candidate(name).build(p, bid, ctx);
    ASSERT_TRUE(built.ok()) << built.error().message();
    for (size_t i = 0; i < p.operands.size(); ++i) {
      const Operand& o = p.operands[i];
      const uint64_t bytes = value(*o.layout.def->bytes(dims, o.type, o.layout.tile));
      if (o.access == Access::write) memory[i].assign(bytes, std::byte{0xcc});
      ASSERT_EQ(memory[i].size(), bytes) << "operand " << i;
    }
    std::vector<std::byte> scratch(value(ctx.scratch_bytes), std::byte{0xcc});
    for (const Step& step : ctx.steps) {
      const Launch& launch = std::get<Launch>(step.what);
      const KernelDef& def = ctx.kernels[launch.kernel];
      std::vector<uint32_t> scalars;
      for (Dim d : launch.scalars) scalars.push_back(static_cast<uint32_t>(value(d)));
      ASSERT_EQ(scalars.size(), def.sig.scalars);
      ASSERT_LE(step.uses.size(), caps.max_bindings);
      std::vector<LoadedCode::Memory> places;
      std::vector<kir::InterpBuffer> buffers;
      for (const Use& u : step.uses) {
        auto& m = u.ref.id == p.operands.size() ? scratch : memory[u.ref.id];
        const uint64_t offset = value(u.ref.offset), bytes = value(u.ref.bytes);
        ASSERT_LE(offset + bytes, m.size());
        ASSERT_LE(bytes, caps.max_binding_bytes);
        ASSERT_EQ(offset % caps.offset_alignment, 0u);
        places.push_back({m.data() + offset, bytes, u.access != Access::read});
        buffers.push_back({m.data() + offset, bytes});
      }
      const uint32_t groups = static_cast<uint32_t>(value(launch.groups));
      auto kernel = kir::deserialize(def.code);
      ASSERT_TRUE(kernel.ok()) << kernel.error().message();
      const Status legal = kir::verify(*kernel, caps, {.strict = !caps.lockstep});
      ASSERT_TRUE(legal.ok()) << legal.error().message();
      if (interpret) {
        if (caps.form == KernelForm::text) keep_as_text(caps, *kernel, buffers, scalars, groups);
        const uint32_t subgroup = caps.subgroup.max > 1 ? caps.lanes : 0;
        const Status ran = kir::interpret(*kernel, buffers, scalars, 0, groups, {.subgroup = subgroup});
        ASSERT_TRUE(ran.ok()) << ran.error().message() << "\n" << kir::print(*kernel);
        continue;
      }
      const LoadedCode* code = code_of(def, caps);
      ASSERT_NE(code, nullptr) << kir::print(*kernel);
      const auto part = [&](int i) {
        return static_cast<uint32_t>(uint64_t{groups} * static_cast<uint64_t>(i) / static_cast<uint64_t>(split));
      };
      std::vector<WireRange> ranges;
      for (int i = 0; i < split; ++i) ranges.push_back({part(i), part(i + 1)});
      std::vector<std::vector<std::byte>> expected;
      if (!runs_on_this_processor(caps.isa)) expected = interpreted(*kernel, buffers, scalars, groups);
      const Status ran = code->run(places, scalars, ranges);
      ASSERT_TRUE(ran.ok()) << ran.error().message() << "\n" << kir::print(*kernel);
      for (size_t i = 0; i < expected.size(); ++i) {
        ASSERT_EQ(std::memcmp(expected[i].data(), buffers[i].data, expected[i].size()), 0)
            << "binding " << i << " differs from what the interpreter makes of\n"
            << kir::print(*kernel);
      }
    }
  }
  // What the interpreter leaves in copies of the buffers. Machine code gives the same bits.
  static std::vector<std::vector<std::byte>> interpreted(const kir::Kernel& kernel,
                                                         const std::vector<kir::InterpBuffer>& buffers,
                                                         const std::vector<uint32_t>& scalars, uint32_t groups) {
    std::vector<std::vector<std::byte>> out;
    for (const kir::InterpBuffer& b : buffers) out.emplace_back(b.data, b.data + b.bytes);
    std::vector<kir::InterpBuffer> copies;
    for (auto& b : out) copies.push_back({b.data(), b.size()});
    // Kernels for lockstep devices may read, for a hint, what another lane has just written.
    const Status ran = kir::interpret(kernel, copies, scalars, 0, groups, {.subgroup = 0, .detect_races = false});
    EXPECT_TRUE(ran.ok()) << ran.error().message() << "\n" << kir::print(kernel);
    return out;
  }
};

// Where a kernel must give the same answer: machine code of this host, of AVX2 and of levels that are emulated, and the
// mean device in the interpreter.
struct Place {
  const char* name;
  Caps caps;
  bool interpret;
  bool emulated = false;  // compared with the interpreter bit by bit, so tests try fewer shapes
};
inline std::vector<Place> emulated_places(bool base) {
  std::vector<Place> out;
  for (const Level& l : levels()) {
    if (l.base != base || l.machine.empty() || !tested(l.isa) || !missing(l.isa).empty()) continue;
    out.push_back({l.isa.data(), cpu::detect_caps({.threads = 1, .isa = std::string(l.isa)}), false, true});
  }
  return out;
}
inline Place mean_place() { return {"mean", mean_caps(), true}; }
inline std::vector<Place> places() {
  std::vector<Place> out;
  if (on_texts()) return {{"gpu", gpu_caps(), true, true}, {"open gpu", open_gpu_caps(), true, true}};
  if (tested("x86-64-v2")) {
    out = {{"cpu", cpu_caps(), false}, mean_place()};
    if (cpu_caps().lanes > 8) out.push_back({"avx2", avx2_caps(), false});
  }
  for (Place& p : emulated_places(true)) out.push_back(std::move(p));
  return out;
}
// With the levels that differ from others in the products of bytes only.
inline std::vector<Place> byte_places() {
  std::vector<Place> out = places();
  for (Place& p : emulated_places(false)) out.push_back(std::move(p));
  return out;
}

struct Random {
  uint64_t s;
  explicit Random(uint64_t seed) : s(seed * 0x9e3779b97f4a7c15ull + 1) {}
  uint32_t next() {
    s ^= s << 13, s ^= s >> 7, s ^= s << 17;
    return static_cast<uint32_t>(s >> 16);
  }
  uint32_t below(uint32_t n) { return next() % n; }
  float real() { return (static_cast<float>(below(20001)) - 10000.f) / 10000.f; }
  std::vector<float> reals(size_t n) {
    std::vector<float> v(n);
    for (float& x : v) x = real();
    return v;
  }
};

inline std::vector<const Format*> packed_formats() {
  std::vector<const Format*> out;
  for (const Format* f : all_formats())
    if (f->cls != CodeClass::flt) out.push_back(f);
  return out;
}
inline std::vector<std::byte> encode(const Format& f, const std::vector<float>& values) {
  const size_t per = f.block[1];
  std::vector<std::byte> out(values.size() / per * f.bytes);
  for (size_t b = 0; b * per < values.size(); ++b) {
    const Status s = f.encode(std::span(values).subspan(b * per, per), nullptr, out.data() + b * f.bytes);
    EXPECT_TRUE(s.ok());
  }
  return out;
}
inline std::vector<float> decode(const Format& f, const std::vector<std::byte>& file) {
  const size_t per = f.block[1], blocks = file.size() / f.bytes;
  std::vector<float> out(blocks * per);
  Planes planes;
  planes.p[0] = file;
  for (size_t b = 0; b < blocks; ++b) f.decode(planes, static_cast<int64_t>(b), out.data() + b * per);
  return out;
}

// int8 activation blocks as layout.h states them, written from the text.
inline std::vector<std::byte> act_blocks(const std::vector<float>& x, size_t columns, bool fine = false) {
  const size_t rows = x.size() / columns, row_bytes = columns / 32 * (fine ? 76 : 44);
  std::vector<std::byte> out(rows * row_bytes);
  for (size_t r = 0; r < rows; ++r) {
    std::byte* row = out.data() + r * row_bytes;
    for (size_t b = 0; b < columns / 32; ++b) {
      float most = 0;
      for (size_t i = 0; i < 32; ++i) most = std::max(most, std::fabs(x[r * columns + b * 32 + i]));
      const float inverse = most > 1e-30f ? 127.f / most : 0.f;
      const float scale = most > 1e-30f ? most * (fine ? 1.f / (127.f * 256.f) : 1.f / 127.f) : 0.f;
      int32_t sum = 0, half = 0;
      for (size_t i = 0; i < 32; ++i) {
        const float scaled = x[r * columns + b * 32 + i] * inverse, whole = std::nearbyint(scaled);
        const auto code = static_cast<int8_t>(whole);
        std::memcpy(row + b * 32 + i, &code, 1);
        sum += fine ? code * 256 : code;
        if (i < 16) half = sum;
        if (!fine) continue;
        const auto second = static_cast<int8_t>(std::min(std::nearbyint((scaled - whole) * 256.f), 127.f));
        std::memcpy(row + columns / 8 * 11 + b * 32 + i, &second, 1);
        sum += second;
        if (i < 16) half = sum;
      }
      std::memcpy(row + columns + b * 4, &scale, 4);
      std::memcpy(row + columns + columns / 8 + b * 4, &sum, 4);
      std::memcpy(row + columns + columns / 4 + b * 4, &half, 4);
    }
  }
  return out;
}

}  // namespace tern::test
