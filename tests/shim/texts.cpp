#include "shim/texts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "kir/interp.h"
#include "shim/module.h"
#include "unit/emit/same.h"

namespace tern::test {

namespace {

constexpr size_t kEdge = 64;  // bytes beside a buffer that nobody may write
constexpr std::byte kMark{0x5a};

// Buffers as far from rounder addresses as a binding may lie.
class Memory {
 public:
  Memory(const kir::Kernel& kernel, const Bytes& buffers) {
    for (size_t i = 0; i < buffers.size(); ++i) {
      size_t align = 4;
      for (const kir::View& v : kernel.views) {
        if (v.binding == i) align = std::max<size_t>(align, v.width * kir::type_bytes(v.type));
      }
      blocks_.emplace_back(buffers[i].size() + 2 * kEdge + 128, kMark);
      const auto at = (reinterpret_cast<uintptr_t>(blocks_.back().data()) + kEdge + 63) / 64 * 64 + align % 64;
      places_.push_back(reinterpret_cast<void*>(at));
      std::memcpy(places_.back(), buffers[i].data(), buffers[i].size());
    }
  }
  void* const* places() const { return places_.data(); }
  std::vector<std::byte> read(size_t i, size_t bytes) const {
    const auto* p = static_cast<const std::byte*>(places_[i]);
    return {p, p + bytes};
  }
  bool edges_hold(size_t i, size_t bytes) const {
    const auto* p = static_cast<const std::byte*>(places_[i]);
    const auto marked = [](std::byte b) { return b == kMark; };
    return std::all_of(p - kEdge, p, marked) && std::all_of(p + bytes, p + bytes + kEdge, marked);
  }

 private:
  Bytes blocks_;
  std::vector<void*> places_;
};

bool asks_subgroups(const kir::Kernel& k) {
  return std::any_of(k.nodes.begin(), k.nodes.end(), [](const kir::Node& n) {
    return (n.op >= kir::Op::subgroup_id && n.op <= kir::Op::subgroup_count) || n.op >= kir::Op::subgroup_add;
  });
}

void run_case(const shim::Module& module, const shim::Source& source, const TextCase& c, uint32_t subgroup,
              uint64_t seeds) {
  SCOPED_TRACE(c.name + ", subgroups of " + std::to_string(subgroup));
  Bytes expected = c.buffers;
  std::vector<kir::InterpBuffer> in;
  for (auto& b : expected) in.push_back({b.data(), b.size()});
  const Status ran = kir::interpret(c.kernel, in, c.dims, 0, c.groups, {.subgroup = subgroup, .detect_races = true});
  ASSERT_TRUE(ran.ok()) << ran.error().message();
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    const Memory memory(c.kernel, c.buffers);
    const Status done =
        module.run(source.text.entry, memory.places(), c.dims.data(), {c.kernel.lanes, c.groups, subgroup, seed});
    ASSERT_TRUE(done.ok()) << done.error().message();
    for (size_t i = 0; i < c.buffers.size(); ++i) {
      std::string where;
      ASSERT_TRUE(same(c.kernel.bindings[i], expected[i], memory.read(i, expected[i].size()), &where))
          << where << ", order " << seed << "\n"
          << source.text.text;
      ASSERT_TRUE(memory.edges_hold(i, expected[i].size())) << "binding " << i << ": written outside of it";
    }
  }
}

}  // namespace

void expect_runs_as_interpreted(const Caps& caps, std::span<const TextCase> cases) {
  std::vector<shim::Source> sources;
  for (const TextCase& c : cases) {
    auto text = emit_text(c.kernel, caps);
    ASSERT_TRUE(text.ok()) << c.name << ": " << text.error().message();
    sources.push_back({&c.kernel, std::move(*text)});
  }
  const auto module = shim::Module::make(caps.language, sources);
  ASSERT_TRUE(module.ok()) << module.error().message();
  for (size_t i = 0; i < cases.size(); ++i) {
    const bool asks = asks_subgroups(cases[i].kernel);
    for (const uint32_t subgroup : shim::Module::subgroups(caps.language)) {
      if (subgroup < caps.subgroup.min || subgroup > caps.subgroup.max) continue;
      if (cases[i].kernel.subgroup != 0 && cases[i].kernel.subgroup != subgroup) continue;
      run_case(*module, sources[i], cases[i], subgroup, 2);
      if (testing::Test::HasFatalFailure()) return;
      if (!asks) break;
    }
  }
}

}  // namespace tern::test
