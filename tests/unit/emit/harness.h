// Runs a kernel through kir's interpreter, the tile interpreter and as machine code, and compares what they left in
// memory.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "backends/cpu/device.h"
#include "backends/cpu/tiles/tiles.h"
#include "emit/llvm_compiler.h"
#include "kir/builder.h"
#include "kir/interp.h"
#include "kir/print.h"
#include "kir/serial.h"
#include "machine/code.h"
#include "machine/levels.h"
#include "unit/emit/same.h"

namespace tern::test {

inline Caps caps_for(const std::string& isa) {
  Caps caps;
  caps.device = "cpu";
  caps.isa = isa;
  caps.lanes = 16;
  caps.max_lanes = 64;
  caps.lockstep = true;
  caps.subgroup = {1, 64, true};
  caps.dot4 = Dot4::fast;
  caps.dot4_code_bits = cpu::detect_caps({.threads = 1, .isa = isa}).dot4_code_bits;
  caps.byte_lookup = true;
  caps.fma = isa != "x86-64-v2";
  return caps;
}

inline const LlvmCompiler& compiler() {
  static const LlvmCompiler c = [] {
    auto r = LlvmCompiler::open(TERN_LLVM_PLUGIN_PATH);
    if (!r) ADD_FAILURE() << r.error().message();
    return *r;
  }();
  return c;
}

// Runs a kernel over copies of the buffers, in two halves, the second one first. Alignment is the least a binding
// promises: 4 bytes past a line, for the sake of instructions that want more; 16 for wide views.
template <class Run>
Bytes run_over(const kir::Kernel& kernel, const Bytes& buffers, uint32_t groups, const Run& run) {
  std::vector<std::vector<std::byte>> blocks;
  std::vector<LoadedCode::Memory> memory;
  for (size_t i = 0; i < buffers.size(); ++i) {
    uint32_t align = 4;
    for (const kir::View& v : kernel.views) {
      if (v.binding == i) align = std::max(align, v.width * kir::type_bytes(v.type));
    }
    blocks.emplace_back(buffers[i].size() + 192);
    auto at = (reinterpret_cast<uintptr_t>(blocks.back().data()) + 63) / 64 * 64 + align % 64;
    std::memcpy(reinterpret_cast<void*>(at), buffers[i].data(), buffers[i].size());
    memory.push_back({reinterpret_cast<void*>(at), buffers[i].size()});
  }
  const WireRange halves[] = {{groups / 2, groups}, {0u, groups / 2}};
  run(std::span<const LoadedCode::Memory>(memory), std::span<const WireRange>(halves));
  Bytes out = buffers;
  for (size_t i = 0; i < buffers.size(); ++i) std::memcpy(out[i].data(), memory[i].data, out[i].size());
  return out;
}

inline void expect_same(const kir::Kernel& kernel, const Bytes& expected, const Bytes& got) {
  for (size_t i = 0; i < expected.size(); ++i) {
    std::string where;
    ASSERT_TRUE(same(kernel.bindings[i], expected[i], got[i], &where)) << where << "\n" << kir::print(kernel);
  }
}

// The tile interpreter, with this processor's instructions and without.
inline void differ_tiles(const kir::Kernel& kernel, const Bytes& expected, const Bytes& before,
                         const std::vector<uint32_t>& dims, uint32_t groups) {
  for (const bool portable : {false, true}) {
    SCOPED_TRACE(portable ? "tiles, portable" : "tiles");
    auto tiles = cpu::TileProgram::make(kernel, portable);
    ASSERT_TRUE(tiles.ok()) << tiles.error().message() << "\n" << kir::print(kernel);
    expect_same(kernel, expected, run_over(kernel, before, groups, [&](auto memory, auto ranges) {
                  std::vector<void*> pointers;
                  for (const LoadedCode::Memory& m : memory) pointers.push_back(m.data);
                  for (const WireRange& r : ranges) (*tiles)->run(pointers.data(), dims.data(), r.first, r.last);
                }));
  }
}

// buffers: contents before; left as machine code made them.
inline void differ(const Result<kir::Kernel>& kernel, const std::string& isa, Bytes& buffers,
                   const std::vector<uint32_t>& dims, uint32_t groups) {
  ASSERT_TRUE(kernel.ok()) << kernel.error().message();
  SCOPED_TRACE(isa + ", kernel " + kernel->name);
  Bytes expected = buffers;
  std::vector<kir::InterpBuffer> in;
  for (auto& b : expected) in.push_back({b.data(), b.size()});
  const Status ran = kir::interpret(*kernel, in, dims, 0, groups);
  ASSERT_TRUE(ran.ok()) << ran.error().message() << "\n" << kir::print(*kernel);
  if (runs_on_this_processor(isa)) differ_tiles(*kernel, expected, buffers, dims, groups);
  const auto serial = kir::serialize(*kernel);
  const CpuTarget target = cpu_target(isa);
  auto object = compiler().compile(serial, target);
  ASSERT_TRUE(object.ok()) << object.error().message() << "\n" << kir::print(*kernel);
  auto code = LoadedCode::load(std::move(*object), isa);
  ASSERT_TRUE(code.ok()) << code.error().message();
  Status done = ok();
  buffers =
      run_over(*kernel, buffers, groups, [&](auto memory, auto ranges) { done = code->run(memory, dims, ranges); });
  ASSERT_TRUE(done.ok()) << done.error().message() << "\n" << kir::print(*kernel);
  expect_same(*kernel, expected, buffers);
}

template <class T>
std::vector<std::byte> bytes_of(const std::vector<T>& v) {
  std::vector<std::byte> out((v.size() * sizeof(T) + 3) / 4 * 4);
  std::memcpy(out.data(), v.data(), v.size() * sizeof(T));
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
  float real() { return (static_cast<float>(below(20001)) - 10000.f) / 1000.f; }
};

}  // namespace tern::test
