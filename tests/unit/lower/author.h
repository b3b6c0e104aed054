// Writes random graphs: views, elementwise chains, movers, reductions, norms, products, gathers and states, over a
// batch B of 1 to 6 and small extents, with values that stay small.
#pragma once

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "tern/ops/elementwise.h"
#include "tern/ops/index.h"
#include "tern/ops/linear.h"
#include "tern/ops/norm.h"
#include "tern/ops/reduce.h"
#include "tern/ops/shape.h"

namespace tern::test {

class Author {
 public:
  explicit Author(uint32_t seed) : rng_(seed) {
    n_ = b_.symbol("B", 1, 6);
    floats_ = {b_.input("x", DType::f32, {n_, 4}), b_.input("y", DType::f32, {n_, 3, 4}),
               b_.input("v", DType::f32, {4}), b_.input("one", DType::f32, {n_, 1})};
    index_ = b_.input("i", DType::i32, {3});
    state_ = b_.state("s", DType::f32, {7, 4});
    carry_ = b_.state("h", DType::f32, {3, 4});
    floats_.push_back(state_);
    floats_.push_back(carry_);
  }

  // The builder, with outputs and updates named; finish() or passes come next. State "s" may be written in ways that
  // cannot be in place: set it not resident.
  Builder& write(int ops) {
    for (int i = 0; i < ops; ++i) {
      const Value v = one();
      if (!v.valid() || b_.failed()) continue;
      if (b_.dims().range(count(v)).second < 4000) floats_.push_back(v);
    }
    for (int i = 0; i < 4; ++i)
      b_.output("out" + std::to_string(i),
                i == 3 ? floats_[pick(floats_.size())]
                       : floats_[floats_.size() - 1 - pick(std::min<size_t>(8, floats_.size()))]);
    if (pick(3) != 0)
      b_.update("s", stores_.empty() || pick(3) == 0 ? store_rows(b_, state_, index_, rows_of(3))
                                                     : stores_[pick(stores_.size())]);
    if (pick(3) != 0) {
      std::vector<Value> fit = {carry_};
      for (const Value v : floats_) {
        if (b_.type(v).shape == Shape{3, 4}) fit.push_back(v);
      }
      b_.update("h", fit[pick(fit.size())]);
    }
    return b_;
  }

 private:
  size_t pick(size_t n) { return std::uniform_int_distribution<size_t>(0, n - 1)(rng_); }
  Value any() {
    return floats_[pick(3) == 0 ? pick(floats_.size())
                                : floats_.size() - 1 - pick(std::min<size_t>(floats_.size(), 7))];
  }
  const Shape& shape(Value v) { return b_.type(v).shape; }
  Dim count(Value v) {
    Dim n = 1;
    for (const Dim d : shape(v)) n = b_.dims().mul(n, d);
    return n;
  }
  Value rows_of(int64_t n) {
    for (size_t i = floats_.size(); i-- > 0;) {
      if (shape(floats_[i]) == Shape{n, 4}) return floats_[i];
    }
    return carry_;
  }
  bool together(Value a, Value c) {
    const Shape &x = shape(a), &y = shape(c);
    for (size_t i = 1; i <= std::min(x.size(), y.size()); ++i) {
      const Dim p = x[x.size() - i], q = y[y.size() - i];
      if (p != q && p != Dim(1) && q != Dim(1)) return false;
    }
    return true;
  }

  // A slice, a concat or a pad.
  Value moved(Value a) {
    const Shape s = shape(a);
    const int rank = static_cast<int>(s.size());
    switch (pick(3)) {
      case 0: {
        if (rank < 1) return {};
        const size_t axis = pick(s.size());
        const auto n = s[axis].constant();
        if (!n || *n < 2) return reverse(b_, a, {static_cast<int64_t>(axis)});
        Shape start(s.size(), 0), limit = s;
        std::vector<int64_t> step(s.size(), 1);
        if (pick(2))
          start[axis] = *n - 1, limit[axis] = static_cast<int64_t>(pick(2)) - 1,
          step[axis] = -1 - static_cast<int64_t>(pick(2));
        else
          start[axis] = 1, step[axis] = 1 + static_cast<int64_t>(pick(2));
        return b_.op("slice", {a}, {start, limit, step});
      }
      case 1: {
        const Value c = any();
        if (rank < 1 || shape(c).size() != s.size()) return {};
        const size_t axis = pick(s.size());
        for (size_t i = 0; i < s.size(); ++i) {
          if (i != axis && s[i] != shape(c)[i]) return {};
        }
        return concat(b_, {a, c, a}, static_cast<int>(axis));
      }
      default: {
        Shape low(s.size(), 0), high(s.size(), 1);
        if (rank > 0 && s[0].constant() && *s[0].constant() > 2) low[0] = static_cast<int64_t>(pick(3)) - 1;
        std::vector<int64_t> interior(s.size(), 0);
        if (rank > 0) interior.back() = static_cast<int64_t>(pick(2));
        if (rank == 1 && low[0] == Dim(-1)) interior.clear();
        return pad(b_, a, low, high, 0.5, interior);
      }
    }
  }

  Value one() {
    const Value a = any();
    const Shape s = shape(a);
    const int rank = static_cast<int>(s.size());
    switch (pick(17)) {
      case 0: return tanh(b_, a);
      case 1: return pick(2) ? sigmoid(b_, a) : neg(b_, a);
      case 2:
      case 3:
      case 4: {
        const Value c = any();
        if (!together(a, c)) return {};
        const size_t k = pick(4);
        return k == 0 ? add(b_, a, c) : k == 1 ? sub(b_, a, c) : k == 2 ? max(b_, a, c) : tanh(b_, mul(b_, a, c));
      }
      case 5: {
        if (rank < 2) return {};
        Shape flat(s.begin() + 1, s.end());
        flat[0] = b_.dims().mul(s[0], s[1]);
        return reshape(b_, a, flat);
      }
      case 6: {
        if (rank < 1 || !s.back().constant() || *s.back().constant() % 2 != 0) return {};
        Shape split = s;
        split.back() = *s.back().constant() / 2;
        split.insert(split.end() - 1, 2);
        return reshape(b_, a, split);
      }
      case 7: {
        std::vector<int64_t> perm;
        for (int i = 0; i < rank; ++i) perm.push_back(i);
        std::shuffle(perm.begin(), perm.end(), rng_);
        return transpose(b_, a, perm);
      }
      case 8:
      case 9:
      case 10: return moved(a);
      case 11: {
        if (rank < 1) return {};
        const std::vector<int64_t> axes = {static_cast<int64_t>(pick(s.size()))};
        const size_t k = pick(3);
        return k == 0   ? reduce_sum(b_, a, axes, pick(2))
               : k == 1 ? reduce_max(b_, a, axes, pick(2))
                        : mean(b_, a, axes, pick(2));
      }
      case 12: return rank < 1 ? Value{} : softmax(b_, a, pick(3) ? -1 : static_cast<int>(pick(s.size())));
      case 13: return rank < 1 ? Value{} : rms_norm(b_, a, {}, 1e-2);
      case 14: {
        if (rank < 1 || !s.back().constant()) return {};
        const int64_t k = *s.back().constant();
        if (k > 32) return {};
        const auto weight = [&] { return b_.param("w" + std::to_string(params_++), DType::f32, {4, k}); };
        const Value p = tanh(b_, linear(b_, a, weight()));
        return pick(2) ? p : mul(b_, sigmoid(b_, linear(b_, a, weight())), linear(b_, a, weight()));
      }
      case 15: {
        if (rank < 2) return {};
        if (pick(2)) return tanh(b_, matmul(b_, a, swap_axes(b_, a, rank - 1, rank - 2)));
        return gather(b_, a, index_, static_cast<int>(pick(s.size())));
      }
      default: {
        if (pick(2)) {
          const Value from = stores_.empty() || pick(2) ? state_ : stores_.back();
          stores_.push_back(store_rows(b_, from, index_, rows_of(3)));
          return stores_.back();
        }
        const Value c = any();
        if (rank < 1 || !together(a, c)) return {};
        const Value k = cast(b_, iota(b_, s, static_cast<int>(pick(s.size()))), DType::f32);
        return select(b_, greater(b_, k, b_.constant(DType::f32, 1)), add(b_, a, c), b_.constant(DType::f32, 0.25));
      }
    }
  }

  std::mt19937 rng_;
  Builder b_;
  Dim n_;
  std::vector<Value> floats_, stores_;
  Value index_, state_, carry_;
  int params_ = 0;
};

}  // namespace tern::test
