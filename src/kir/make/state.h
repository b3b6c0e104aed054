// What a builder holds; for the files of this folder only.
#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "kir/builder.h"

namespace tern::kir {

struct NodeHash {
  size_t operator()(const Node& n) const;
};

struct B::State {
  Caps caps;
  Kernel k;
  std::optional<Error> error;
  B* outer = nullptr;                                               // the builder that was current before
  std::vector<uint32_t> open = {0};                                 // blocks, innermost last
  std::vector<std::unordered_map<Node, Ref, NodeHash>> numbers{1};  // pure values, one map an open scope
  std::vector<std::pair<Type, uint32_t>> scratch;                   // workgroup arrays of the reductions

  Ref append(const Node& node);    // a statement of the innermost block
  Ref numbered(const Node& node);  // an equal visible value, or a new statement
  Ref leaf(const Node& node);
  Ref constant(Type type, uint64_t bits) { return leaf({.op = Op::constant, .type = type, .imm = bits}); }
  Ref pure(Node node);  // folded and numbered
  std::optional<uint64_t> bits(Ref ref) const;
  uint32_t view(uint32_t binding, Type type, int width);

 private:
  std::optional<Ref> fold(Node& n);
  std::optional<Ref> fold_int(Node& n);
  std::optional<Ref> constants_outward(Node& n);
  std::optional<Ref> fold_float(Node& n);
  std::optional<Ref> fold_lane(const Node& n, uint64_t b);
  std::optional<Ref> fold_bool(const Node& n);
  std::optional<Ref> fold_shape(Node& n);
};

// Drops values nobody uses and variables nobody reads, and renumbers the nodes.
// order: statements get their one order too.
void sweep(Kernel& kernel, bool order);

}  // namespace tern::kir
