// What small integer values hold, as expressions over symbols: shape arithmetic read back as sizes.
#pragma once

#include <map>

#include "graph/op.h"

namespace tern {

// Larger values have no symbolic contents.
inline constexpr int64_t kMaxContents = 64;

// Looks at values of one graph, which must not change meanwhile (nodes may be added). Each value is worked out once.
class ContentsOf {
 public:
  explicit ContentsOf(const Graph& graph) : graph_(graph) {}
  // One Dim an element, each provably within the value's type; or which node stands in the way, and why.
  const OrRefuse<Contents>& of(Value v);

 private:
  std::optional<Refusal> unfit(Value v) const;
  OrRefuse<Contents> compute(Value v);
  OrRefuse<Contents> moved(const Node& node, std::span<const Contents* const> in) const;
  OrRefuse<Contents> numbers(const Node& node, std::span<const Contents* const> in) const;

  const Graph& graph_;
  std::map<Value, OrRefuse<Contents>> known_;
};

// Constant dims as numbers; nullopt: one is symbolic.
std::optional<std::vector<int64_t>> constants_of(std::span<const Dim> dims);
// The attributes hold no symbolic dim.
bool attrs_are_constant(const Node& node);

}  // namespace tern
