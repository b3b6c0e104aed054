// Products and searches in the order of axes that kernels have: batch first, what is summed last.
#include <numeric>

#include "passes/canonical/rules.h"

namespace tern {
namespace {

using V = std::optional<Value>;
using Ints = std::vector<int64_t>;

Ints run(int64_t first, size_t count) {
  Ints out(count);
  std::iota(out.begin(), out.end(), first);
  return out;
}

// batch, free, contracted: where each axis has to come from.
Ints matrix_order(size_t rank, const Ints& batch, const Ints& contract) {
  std::vector<bool> used(rank);
  for (const int64_t a : batch) used[static_cast<size_t>(a)] = true;
  for (const int64_t a : contract) used[static_cast<size_t>(a)] = true;
  Ints out = batch;
  for (size_t a = 0; a < rank; ++a) {
    if (!used[a]) out.push_back(static_cast<int64_t>(a));
  }
  out.insert(out.end(), contract.begin(), contract.end());
  return out;
}

V in_order(Rewriter& rw, Value v, const Ints& perm, const Loc& loc) {
  if (perm == run(0, perm.size())) return v;
  if (rw.type(v).format != nullptr) return {};  // blocks cannot be turned
  return rw.make("transpose", {v}, {perm}, loc);
}

V products(Rewriter& rw, uint32_t id) {
  const Node& n = rw.node(id);
  if (n.op->name != "dot_general") return {};
  const auto list = [&](size_t i) { return std::get<Ints>(n.attrs[i]); };
  const Ints lc = list(0), rc = list(1), lb = list(2), rb = list(3);
  const size_t l_rank = rw.type(n.in[0]).shape.size(), r_rank = rw.type(n.in[1]).shape.size();
  const Ints left = matrix_order(l_rank, lb, lc);
  // The right side may be [batch, K, N] as well as [batch, N, K].
  const bool kn = rb == run(0, rb.size()) && rc == run(static_cast<int64_t>(rb.size()), rc.size());
  const Ints right = kn ? run(0, r_rank) : matrix_order(r_rank, rb, rc);
  if (left == run(0, l_rank) && right == run(0, r_rank)) return {};
  const Value lhs = n.in[0], rhs = n.in[1];
  const Loc loc = n.loc;
  const Attr precision = n.attrs[4];
  const V x = in_order(rw, lhs, left, loc), w = in_order(rw, rhs, right, loc);
  if (!x || !w) return {};
  const auto last = [&](size_t rank, size_t count) { return run(static_cast<int64_t>(rank - count), count); };
  return rw.make(
      "dot_general", {*x, *w},
      {last(l_rank, lc.size()), kn ? rc : last(r_rank, rc.size()), run(0, lb.size()), run(0, rb.size()), precision},
      loc);
}

V searches(Rewriter& rw, uint32_t id) {
  const Node& n = rw.node(id);
  if (n.op->name != "arg_reduce") return {};
  const size_t rank = rw.type(n.in[0]).shape.size();
  const int64_t axis = std::get<int64_t>(n.attrs[1]);
  if (axis + 1 == static_cast<int64_t>(rank)) return {};
  const Attr largest = n.attrs[0], dtype = n.attrs[3];
  const Shape shape = n.out[0].shape;
  const Value from = n.in[0];
  const Loc loc = n.loc;
  const V turned = in_order(rw, from, matrix_order(rank, {}, {axis}), loc);
  if (!turned) return {};
  const V found = rw.make("arg_reduce", {*turned}, {largest, static_cast<int64_t>(rank) - 1, false, dtype}, loc);
  if (!found) return {};
  return rw.type(*found).shape == shape ? found : rw.make("reshape", {*found}, {shape}, loc);
}

constexpr Rule kRules[] = {products, searches};

}  // namespace

std::span<const Rule> matrix_forms() { return kRules; }

}  // namespace tern
