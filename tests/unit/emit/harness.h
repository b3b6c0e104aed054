// Runs a kernel through kir's interpreter, the tile interpreter and as machine code, and compares what they left in
// memory.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "backends/cpu/object_loader.h"
#include "backends/cpu/tiles/tiles.h"
#include "emit/llvm_compiler.h"
#include "kir/builder.h"
#include "kir/interp.h"
#include "kir/print.h"
#include "kir/serial.h"

namespace tern::test {

inline const std::vector<std::string>& targets() {
  static const std::vector<std::string> all = [] {
    __builtin_cpu_init();
    std::vector<std::string> out = {"x86-64-v2"};
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) out.push_back("x86-64-v3");
    if (__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512dq")) {
      out.push_back("x86-64-v4");
      if (__builtin_cpu_supports("avx512vnni")) out.push_back("x86-64-v4+avx512vnni");
    }
    return out;
  }();
  return all;
}

inline Caps caps_for(const std::string& isa) {
  Caps caps;
  caps.device = "cpu";
  caps.isa = isa;
  caps.lanes = 16;
  caps.max_lanes = 64;
  caps.lockstep = true;
  caps.subgroup = {1, 64, true};
  caps.dot4 = Dot4::fast;
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

using Bytes = std::vector<std::vector<std::byte>>;

// Whether two results agree; NaNs are alike whatever their bits.
inline bool same(const kir::Binding& b, const std::vector<std::byte>& x, const std::vector<std::byte>& y,
                 std::string* where) {
  const uint32_t size = kir::type_bytes(b.type);
  for (size_t i = 0; i + size <= x.size(); i += size) {
    if (!std::memcmp(&x[i], &y[i], size)) continue;
    if (b.type == kir::f32) {
      float p, q;
      std::memcpy(&p, &x[i], 4), std::memcpy(&q, &y[i], 4);
      if (p != p && q != q) continue;
      *where = b.name + "[" + std::to_string(i / size) + "] = " + std::to_string(p) + " expected, " + std::to_string(q);
    } else if (b.type == kir::f64) {
      double p, q;
      std::memcpy(&p, &x[i], 8), std::memcpy(&q, &y[i], 8);
      if (p != p && q != q) continue;
      *where = b.name + "[" + std::to_string(i / size) + "] = " + std::to_string(p) + " expected, " + std::to_string(q);
    } else {
      int64_t p = 0, q = 0;
      std::memcpy(&p, &x[i], size), std::memcpy(&q, &y[i], size);
      *where = b.name + "[" + std::to_string(i / size) + "] = " + std::to_string(p) + " expected, " + std::to_string(q);
    }
    return false;
  }
  return true;
}

// Runs a kernel over copies of the buffers, in two halves, the second one first. Alignment is the least a binding
// promises: 4 bytes past a line, for the sake of instructions that want more; 16 for wide views.
template <class Run>
Bytes run_over(const kir::Kernel& kernel, const Bytes& buffers, uint32_t groups, const Run& run) {
  std::vector<std::vector<std::byte>> memory;
  std::vector<void*> pointers;
  for (size_t i = 0; i < buffers.size(); ++i) {
    uint32_t align = 4;
    for (const kir::View& v : kernel.views) {
      if (v.binding == i) align = std::max(align, v.width * kir::type_bytes(v.type));
    }
    memory.emplace_back(buffers[i].size() + 192);
    auto at = (reinterpret_cast<uintptr_t>(memory.back().data()) + 63) / 64 * 64 + align % 64;
    std::memcpy(reinterpret_cast<void*>(at), buffers[i].data(), buffers[i].size());
    pointers.push_back(reinterpret_cast<void*>(at));
  }
  run(pointers.data(), groups / 2, groups);
  run(pointers.data(), 0u, groups / 2);
  Bytes out = buffers;
  for (size_t i = 0; i < buffers.size(); ++i) std::memcpy(out[i].data(), pointers[i], out[i].size());
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
    expect_same(kernel, expected, run_over(kernel, before, groups, [&](void* const* buffers, uint32_t a, uint32_t b) {
                  (*tiles)->run(buffers, dims.data(), a, b);
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
  differ_tiles(*kernel, expected, buffers, dims, groups);
  const auto serial = kir::serialize(*kernel);
  const CpuTarget target = cpu_target(isa);
  auto object = compiler().compile(serial, target);
  ASSERT_TRUE(object.ok()) << object.error().message() << "\n" << kir::print(*kernel);
  auto loaded = cpu::load_object(*object);
  ASSERT_TRUE(loaded.ok()) << loaded.error().message();
  auto entry = (*loaded)->symbol("kernel");
  ASSERT_TRUE(entry.ok()) << entry.error().message();
  const auto compiled = reinterpret_cast<kir::CpuEntry>(*entry);
  buffers = run_over(*kernel, buffers, groups,
                     [&](void* const* memory, uint32_t a, uint32_t b) { compiled(memory, dims.data(), a, b); });
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
