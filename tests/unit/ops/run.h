// Runs small graphs through the reference evaluation.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <set>

#include "graph/op.h"
#include "ops/reference.h"
#include "tern/ops/attention.h"
#include "tern/ops/elementwise.h"
#include "tern/ops/index.h"
#include "tern/ops/linear.h"
#include "tern/ops/norm.h"
#include "tern/ops/reduce.h"
#include "tern/ops/sample.h"
#include "tern/ops/shape.h"

namespace tern {

using Leaves = std::map<std::string, RefLeaf>;
inline constexpr double kNan = std::numeric_limits<double>::quiet_NaN(), kInf = std::numeric_limits<double>::infinity();

inline RefTensor reals(std::vector<int64_t> shape, std::vector<double> v, DType dtype = DType::f32) {
  return {dtype, std::move(shape), std::move(v), {}};
}
inline RefTensor whole(std::vector<int64_t> shape, std::vector<int64_t> v, DType dtype = DType::i32) {
  return {dtype, std::move(shape), {}, std::move(v)};
}

// Builds leaves as inputs of their own constant shapes, then what `make` says, and evaluates the one output.
inline Result<RefTensor> run(const Leaves& leaves,
                             const std::function<Value(Builder&, std::map<std::string, Value>&)>& make) {
  Builder b;
  std::map<std::string, Value> in;
  for (const auto& [name, leaf] : leaves) {
    if (const auto* t = std::get_if<RefTensor>(&leaf)) {
      in[name] = b.input(name, t->dtype, Shape(t->shape.begin(), t->shape.end()));
    } else {
      const auto& v = std::get<TensorView>(leaf);
      in[name] = b.param(name, v.dtype, Shape(v.shape.begin(), v.shape.end()), v.format);
    }
  }
  b.output("y", make(b, in));
  TERN_TRY(Graph g, b.finish());
  TERN_TRY(const auto symbols, bind_symbols(g, leaves));
  TERN_TRY(RefResults r, evaluate(g, leaves, symbols));
  return std::move(r.outputs.at("y"));
}

inline void expect_close(const Result<RefTensor>& got, const std::vector<int64_t>& shape,
                         const std::vector<double>& want, double tolerance = 1e-12) {
  ASSERT_TRUE(got.ok()) << got.error().message();
  EXPECT_EQ(got->shape, shape);
  ASSERT_EQ(got->f.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i) {
    if (std::isnan(want[i]))
      EXPECT_TRUE(std::isnan(got->f[i])) << i << ": " << got->f[i];
    else if (std::isinf(want[i]))
      EXPECT_EQ(got->f[i], want[i]) << i;
    else
      EXPECT_NEAR(got->f[i], want[i], tolerance * (1 + std::fabs(want[i]))) << i;
  }
}
inline void expect_whole(const Result<RefTensor>& got, const std::vector<int64_t>& shape,
                         const std::vector<int64_t>& want) {
  ASSERT_TRUE(got.ok()) << got.error().message();
  EXPECT_EQ(got->shape, shape);
  EXPECT_EQ(got->i, want);
}
inline void expect_error(const Result<RefTensor>& got, std::string_view part) {
  ASSERT_FALSE(got.ok());
  EXPECT_NE(got.error().message().find(part), std::string::npos) << got.error().message();
}

// Composites become what they are made of, again and again; how many there were.
inline int decompose_all(Graph& g) {
  int count = 0;
  for (uint32_t id = 0; id < g.node_count(); ++id) {
    if (!g.node(id).op->decompose) continue;
    Builder b(g);
    const Node node{g.node(id).op, g.node(id).in, g.node(id).out, g.node(id).attrs, {}, {}};
    auto parts = node.op->decompose(b, node, node.in);
    EXPECT_TRUE(parts.ok()) << parts.error().message();
    if (!parts) return -1;
    EXPECT_EQ(parts->size(), node.out.size());
    EXPECT_EQ(g.type((*parts)[0]).shape, node.out[0].shape);
    g.replace({id, 0}, (*parts)[0]);
    ++count;
  }
  return count;
}

}  // namespace tern
