// Random graphs over awkward numbers give the same bits before and after the passes. The evaluation here rounds after
// every node, as a device does, so that a rewrite that is exact only in infinite precision is caught.
#include <bit>
#include <cmath>
#include <map>
#include <random>

#include "core/scalar.h"
#include "graph/reference.h"
#include "rewrites.h"

namespace tern {
namespace {

using Values = std::map<std::string, RefTensor>;

// Outputs of a graph with constant shapes.
Values evaluated(const Graph& g, const Values& leaves) {
  std::map<Value, RefTensor> at;
  for (uint32_t id : g.order()) {
    const Node& n = g.node(id);
    if (const Port* p = g.port_of({id, 0})) {
      at[{id, 0}] = leaves.at(p->name);
      continue;
    }
    if (n.op == &kConstantOp) {
      at[{id, 0}] = *ref_from(std::get<Const>(n.attrs[0]));
      continue;
    }
    RefTensors r;
    r.dims = g.dims.get();
    for (Value v : n.in) r.in.push_back(&at.at(v));
    for (const TensorType& t : n.out) {
      std::vector<int64_t> shape;
      for (Dim d : t.shape) shape.push_back(*d.constant());
      r.out.push_back(ref_zeros(t.dtype, shape));
    }
    EXPECT_TRUE(n.op->reference(n, r).ok()) << n.op->name;
    for (uint16_t i = 0; i < r.out.size(); ++i) at[{id, i}] = *ref_from(const_from(r.out[i]));
  }
  Values out;
  for (const OutputPort& o : g.outputs()) out[o.name] = at.at(o.value);
  return out;
}

bool same_bits(const RefTensor& a, const RefTensor& b) {
  if (a.dtype != b.dtype || a.shape != b.shape || a.i != b.i || a.f.size() != b.f.size()) return false;
  for (size_t k = 0; k < a.f.size(); ++k) {
    if (std::isnan(a.f[k]) && std::isnan(b.f[k])) continue;
    if (std::bit_cast<uint64_t>(a.f[k]) != std::bit_cast<uint64_t>(b.f[k])) return false;
  }
  return true;
}

class Generator {
 public:
  explicit Generator(uint32_t seed) : rng_(seed) {}

  Graph make() {
    for (const char* name : {"x", "y"}) add(b_.input(name, DType::f32, {3, 4}));
    for (const char* name : {"i", "j"}) add(b_.input(name, DType::i32, {3, 4}));
    add(b_.input("h", DType::f16, {3, 4}));
    add(b_.input("c", DType::boolean, {3, 4}));
    for (int k = 0; k < 40; ++k) step();
    for (int k = 0; k < 8; ++k)
      b_.output("o" + std::to_string(k), pool_[pool_.size() - 1 - pick(std::min<size_t>(pool_.size(), 20))]);
    EXPECT_FALSE(b_.failed()) << b_.error()->message();
    return std::move(*b_.finish());
  }

  Values leaves() {
    Values out;
    for (const auto& [name, dtype] : {std::pair{"x", DType::f32},
                                      {"y", DType::f32},
                                      {"i", DType::i32},
                                      {"j", DType::i32},
                                      {"h", DType::f16},
                                      {"c", DType::boolean}}) {
      RefTensor t = ref_zeros(dtype, {3, 4});
      static constexpr double kFloats[] = {0.0,   -0.0,     1,         -1,  0.1, 3e38,  -1e-40,
                                           65504, INFINITY, -INFINITY, NAN, 2.5, -7.25, 1e-7};
      static constexpr int64_t kInts[] = {0, 1, -1, 7, -8, INT32_MAX, INT32_MIN, 31, 255, 65536};
      for (double& v : t.f) v = kFloats[pick(std::size(kFloats))];
      for (int64_t& v : t.i) v = kInts[pick(std::size(kInts))];
      out[name] = *ref_from(const_from(t));
    }
    return out;
  }

 private:
  size_t pick(size_t n) { return rng_() % n; }
  void add(Value v) {
    if (v.valid()) (b_.type(v).shape.empty() ? scalars_ : pool_).push_back(v);
  }
  Value any() { return pool_[pick(pool_.size())]; }
  // Another value of the same type, most often an existing one.
  Value like(Value v, DType dtype) {
    const TensorType want{dtype, b_.type(v).shape};
    for (int tries = pick(5) < 2 ? 12 : 0; tries < 12; ++tries) {
      const Value u = any();
      if (b_.type(u) == want) return u;
    }
    static constexpr double kNumbers[] = {0, -0.0, 1, -1, 2, 8, 0.5, 3};
    double number = kNumbers[pick(is_int(dtype) ? 6 : std::size(kNumbers))];
    if (dtype_info(dtype).lowest == 0) number = std::fabs(number);
    if (dtype == DType::boolean) number = static_cast<double>(pick(2));
    Value scalar = b_.constant(dtype, number);
    for (Value old : scalars_) {
      if (b_.type(old).dtype == dtype && pick(3) == 0) scalar = old;
    }
    if (want.shape.empty()) return scalar;
    if (pick(2)) return scalar;
    return b_.op("broadcast", {scalar}, {want.shape, std::vector<int64_t>{}});
  }

  void step() {
    const Value v = any();
    const TensorType t = b_.type(v);
    switch (pick(10)) {
      case 0:
        return add(b_.op("transpose", {v},
                         {t.shape.size() == 2   ? std::vector<int64_t>{1, 0}
                          : t.shape.size() == 3 ? std::vector<int64_t>{2, 0, 1}
                                                : std::vector<int64_t>{0}}));
      case 1: {
        static const Shape kShapes[] = {{3, 4}, {12}, {4, 3}, {2, 3, 2}};
        return add(b_.op("reshape", {v}, {kShapes[pick(4)]}));
      }
      case 2: {
        // Backwards along the last axis, all of it.
        Shape start(t.shape.size(), 0), limit = t.shape;
        std::vector<int64_t> steps(t.shape.size(), 1);
        if (pick(2)) start.back() = *t.shape.back().constant() - 1, limit.back() = -1, steps.back() = -1;
        return add(b_.op("slice", {v}, {start, limit, steps}));
      }
      case 3: {
        static constexpr DType kTypes[] = {DType::f32, DType::f16, DType::bf16, DType::f64,
                                           DType::i32, DType::i64, DType::i8,   DType::u8};
        // Floats to integers only through a clamp-free path that the reference defines: from integers and bool.
        const DType to = kTypes[pick(is_float(t.dtype) ? 4 : 8)];
        return add(b_.op("cast", {v}, {to}));
      }
      case 4: {
        const Value scalar = like(v, t.dtype);
        if (!b_.type(scalar).shape.empty()) return;
        return elementwise(scalar, b_.type(scalar));
      }
      default: return elementwise(v, t);
    }
  }

  void elementwise(Value v, const TensorType& t) {
    static constexpr ScalarOp kOften[] = {ScalarOp::add, ScalarOp::sub, ScalarOp::mul, ScalarOp::div,
                                          ScalarOp::neg, ScalarOp::abs, ScalarOp::max};
    const auto op =
        pick(2) ? kOften[pick(std::size(kOften))] : static_cast<ScalarOp>(pick(static_cast<size_t>(ScalarOp::count_)));
    const ScalarRow& row = scalar_row(op);
    if (row.rule == ScalarRule::cast) return;
    std::vector<Value> in;
    if (row.rule == ScalarRule::select) {
      in = {like(v, DType::boolean), v, like(v, t.dtype)};
    } else {
      for (int k = 0; k < row.arity; ++k) in.push_back(k ? like(v, t.dtype) : v);
      if (row.arity == 2 && pick(2)) std::swap(in[0], in[1]);
    }
    std::vector<DType> types;
    for (Value u : in) types.push_back(b_.type(u).dtype);
    if (scalar_type(op, types)) add(b_.op(row.name, in));
  }

  std::mt19937 rng_;
  Builder b_;
  std::vector<Value> pool_, scalars_;
};

TEST(Preserve, PassesChangeNoBit) {
  std::map<std::string_view, int> changes;
  for (uint32_t seed = 1; seed <= 400; ++seed) {
    Generator make(seed);
    Graph g = make.make();
    const Values leaves = make.leaves(), before = evaluated(g, leaves);
    const std::string text = print(g);
    PassOptions options;
    options.verify = true;
    auto timings = run_passes(g, {}, default_passes(), options);
    ASSERT_TRUE(timings.ok()) << timings.error().message() << "\n" << text;
    for (const PassTiming& t : *timings) changes[t.name] += t.changed;
    const Values after = evaluated(g, leaves);
    for (const auto& [name, value] : before) {
      ASSERT_TRUE(same_bits(value, after.at(name))) << name << " of seed " << seed << "\n" << text << "\n" << print(g);
    }
  }
  for (const char* pass : {"canonicalise", "simplify", "fold", "cse"}) EXPECT_GT(changes[pass], 10) << pass;
}

}  // namespace
}  // namespace tern
