#include "lower/fuse/make/expr.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/check.h"
#include "core/scalar.h"

namespace tern::lowering {
namespace {

template <class T>
T read_as(const Const& value) {
  T out{};
  std::memcpy(&out, value.data->data(), sizeof(T));
  return out;
}

}  // namespace

ScalarExpr::Number number_of(const Const& value) {
  ScalarExpr::Number n;
  const auto real = [&](double v) { n.f = v; };
  const auto whole = [&](int64_t v) { n.i = v, n.f = static_cast<double>(v); };
  switch (value.dtype) {
    case DType::f64: real(read_as<double>(value)); break;
    case DType::f32: real(read_as<float>(value)); break;
    case DType::f16: real(f16_to_f32(read_as<uint16_t>(value))); break;
    case DType::bf16: real(bf16_to_f32(read_as<uint16_t>(value))); break;
    case DType::f8e4m3: real(f8e4m3_to_f32(read_as<uint8_t>(value))); break;
    case DType::f8e5m2: real(f8e5m2_to_f32(read_as<uint8_t>(value))); break;
    case DType::i64: whole(read_as<int64_t>(value)); break;
    case DType::i32: whole(read_as<int32_t>(value)); break;
    case DType::i16: whole(read_as<int16_t>(value)); break;
    case DType::i8: whole(read_as<int8_t>(value)); break;
    case DType::u64: whole(static_cast<int64_t>(read_as<uint64_t>(value))); break;
    case DType::u32: whole(read_as<uint32_t>(value)); break;
    case DType::u16: whole(read_as<uint16_t>(value)); break;
    case DType::u8:
    case DType::boolean: whole(read_as<uint8_t>(value)); break;
    case DType::c64:
    case DType::c128: break;
  }
  return n;
}

bool is_scalar_constant(const Node& node) {
  return node.op == &kConstantOp && node.out[0].shape.empty() && !is_complex(node.out[0].dtype);
}
bool is_generator(const Node& node) {
  return node.op->name == "iota" || node.op->name == "dim" || node.op->name == "dims";
}

// What casts were looked through for, and loads of it, go; the result is the last instruction afterwards.
void ExprBuilder::drop_unused(Expr& out) {
  auto& code = out.code.code;
  std::vector<bool> used(code.size());
  used[out.result] = true;
  for (size_t n = code.size(); n-- > 0;) {
    if (!used[n] || code[n].kind != ScalarExpr::Kind::op) continue;
    const uint16_t from[] = {code[n].a, code[n].b, code[n].c};
    for (int a = 0; a < scalar_row(code[n].op).arity; ++a) used[from[a]] = true;
  }
  std::vector<uint16_t> at(code.size());
  size_t kept = 0;
  for (size_t n = 0; n < code.size(); ++n) {
    if (!used[n]) continue;
    ScalarExpr::Ins i = code[n];
    if (i.kind == ScalarExpr::Kind::op) {
      const int arity = scalar_row(i.op).arity;
      i.a = at[i.a];
      if (arity > 1) i.b = at[i.b];
      if (arity > 2) i.c = at[i.c];
    }
    at[n] = static_cast<uint16_t>(kept);
    code[kept++] = i;
  }
  code.resize(kept);
  out.result = at[out.result];
}

bool ExprBuilder::build(Value root, bool expand, Expr& out, std::optional<Value>& must_store) {
  out = {};
  out_ = &out;
  done_.clear();
  must_store_.reset();
  const auto result = emit(root, {}, expand);
  if (result) {
    out.result = *result;
    drop_unused(out);
  }
  must_store = must_store_;
  return result.has_value();
}

uint16_t ExprBuilder::push(ScalarExpr::Ins ins) {
  auto& code = out_->code.code;
  for (size_t i = 0; i < code.size(); ++i) {
    if (code[i] == ins) return static_cast<uint16_t>(i);
  }
  code.push_back(ins);
  return static_cast<uint16_t>(code.size() - 1);
}

uint16_t ExprBuilder::constant(DType type, double f, int64_t i) {
  auto& consts = out_->code.consts;
  size_t index = 0;
  const auto bits = [](double number) { return std::bit_cast<uint64_t>(number); };  // -0 is not 0
  while (index < consts.size() && (bits(consts[index].f) != bits(f) || consts[index].i != i)) ++index;
  if (index == consts.size()) consts.push_back({f, i});
  return push({ScalarExpr::Kind::constant, ScalarOp::add, type, static_cast<uint16_t>(index), 0, 0});
}

uint16_t ExprBuilder::size(Dim d, DType type) {
  if (const auto c = d.constant()) return constant(type, static_cast<double>(*c), *c);
  auto& dims = out_->code.dims;
  size_t index = 0;
  while (index < dims.size() && dims[index] != d) ++index;
  if (index == dims.size()) dims.push_back(d);
  return push({ScalarExpr::Kind::dim, ScalarOp::add, type, static_cast<uint16_t>(index), 0, 0});
}

// Index arithmetic is done in i32 where no partial sum can leave it: devices without i64 have indices too.
DType ExprBuilder::index_type(const IndexMap& map) const {
  const auto within = [](double low, double high) { return low >= INT32_MIN && high <= INT32_MAX; };
  const auto reals = [](std::pair<int64_t, int64_t> r) {
    return std::pair(static_cast<double>(r.first), static_cast<double>(r.second));
  };
  auto [low, high] = reals(dims_.range(map.offset));
  if (!within(low, high)) return DType::i64;
  for (size_t axis = 0; axis < map.stride.size(); ++axis) {
    if (map.stride[axis] == Dim(0)) continue;
    const auto [s_low, s_high] = reals(dims_.range(map.stride[axis]));
    const double last = std::max(0.0, static_cast<double>(dims_.range(axes_[axis]).second) - 1);
    low += std::min({0.0, s_low * last, s_high * last});
    high += std::max({0.0, s_low * last, s_high * last});
    if (!within(low, high) || !within(s_low, s_high) || !within(0, last)) return DType::i64;
  }
  return DType::i32;
}

// Applies the chain; on a refusal the value below the view that cannot compose has to be stored.
std::optional<IndexMap> ExprBuilder::through(IndexMap map, TensorType type, const Chain& chain) {
  for (const uint32_t id : chain) {
    const Node& view = graph_.node(id);
    auto next = view.op->view(dims_, view, type, map);
    if (!next) {
      must_store_ = view.in[0];
      return std::nullopt;
    }
    map = *next;
    type = view.out[0];
  }
  return map;
}

std::optional<uint16_t> ExprBuilder::load(Value v, const Chain& chain) {
  const TensorType& type = graph_.type(v);
  auto map = through(dense_map(dims_, type.shape), type, chain);
  if (!map) return std::nullopt;
  if (type.shape.empty() && map->stride.size() != axes_.size()) map->stride.assign(axes_.size(), 0);
  TERN_CHECK(map->stride.size() == axes_.size(), "a load's map has another rank than its region");
  size_t index = 0;
  while (index < out_->loads.size() &&
         !(out_->loads[index].value == v && same_map(dims_, out_->loads[index].map, *map, axes_)))
    ++index;
  if (index == out_->loads.size()) {
    out_->loads.push_back({v, *map});
    out_->code.loads.push_back({static_cast<uint16_t>(index), *map});
  }
  return push({ScalarExpr::Kind::load, ScalarOp::add, type.dtype, static_cast<uint16_t>(index), 0, 0});
}

// Choices by the index of the vector; in i32 where all fit, since devices without i64 have sizes too.
std::optional<uint16_t> ExprBuilder::listed(const Node& node, Value v, const Chain& chain) {
  const auto& values = attr<Shape>(node, "values");
  const auto fits = [&](Dim d) { return index_type({d, {}}) == DType::i32; };
  const DType type = std::all_of(values.begin(), values.end(), fits) ? DType::i32 : DType::i64;
  IndexMap start;
  start.stride = {1};
  const auto map = through(start, graph_.type(v), chain);
  if (!map) {
    must_store_ = v;
    return std::nullopt;
  }
  const uint16_t at = index(*map);
  const DType counted = out_->code.code[at].type;
  uint16_t out = size(values.empty() ? Dim(0) : values.back(), type);
  for (size_t i = values.size(); i-- > 1;) {
    const uint16_t last = size(static_cast<int64_t>(i - 1), counted);
    const uint16_t here = push({ScalarExpr::Kind::op, ScalarOp::le, DType::boolean, at, last, 0});
    out = push({ScalarExpr::Kind::op, ScalarOp::select, type, here, size(values[i - 1], type), out});
  }
  const DType to = node.out[0].dtype;
  return type == to ? out : push({ScalarExpr::Kind::op, ScalarOp::cast, to, out, 0, 0});
}

// The value of a map at the region's axes, as a number.
uint16_t ExprBuilder::index(const IndexMap& map) {
  const DType t = index_type(map);
  std::optional<uint16_t> sum;
  if (map.offset != Dim(0)) sum = size(map.offset, t);
  for (size_t axis = 0; axis < map.stride.size(); ++axis) {
    if (map.stride[axis] == Dim(0)) continue;
    uint16_t term = push({ScalarExpr::Kind::index, ScalarOp::add, t, static_cast<uint16_t>(axis), 0, 0});
    if (map.stride[axis] != Dim(1)) {
      term = push({ScalarExpr::Kind::op, ScalarOp::mul, t, term, size(map.stride[axis], t), 0});
    }
    sum = sum ? push({ScalarExpr::Kind::op, ScalarOp::add, t, *sum, term, 0}) : term;
  }
  return sum ? *sum : size(Dim(0), t);
}

// iota read through views is an affine function of the region's axes, as an address is; dim is a number.
std::optional<uint16_t> ExprBuilder::affine(const Node& node, Value v, const Chain& chain) {
  const DType type = node.out[0].dtype;
  const auto as_type = [&](uint16_t n, DType from) {
    return type == from ? n : push({ScalarExpr::Kind::op, ScalarOp::cast, type, n, 0, 0});
  };
  if (node.op->name == "dims") return listed(node, v, chain);
  if (node.op->name == "dim") {
    const IndexMap value{attr<Dim>(node, "value"), {}};
    const DType t = index_type(value);
    return as_type(size(value.offset, t), t);
  }
  IndexMap start;
  start.stride.assign(node.out[0].shape.size(), 0);
  start.stride[static_cast<size_t>(attr<int64_t>(node, "axis"))] = 1;
  // Only views that keep strides as they are can carry an index; a reshape that merges axes would need the extents.
  const auto map = through(start, graph_.type(v), chain);
  if (!map) {
    must_store_ = v;
    return std::nullopt;
  }
  const uint16_t sum = index(*map);
  return as_type(sum, out_->code.code[sum].type);
}

std::optional<uint16_t> ExprBuilder::operands(const Node& node, const Chain& chain) {
  uint16_t in[3] = {0, 0, 0};
  for (size_t i = 0; i < node.in.size(); ++i) {
    // A scalar operand of a shaped node is the same everywhere: views do not move it.
    const bool scalar = graph_.type(node.in[i]).shape.empty() && !node.out[0].shape.empty();
    const auto r = emit(node.in[i], scalar ? Chain{} : chain, false);
    if (!r) return std::nullopt;
    in[i] = *r;
  }
  const auto op = static_cast<ScalarOp>(node.op->scalar);
  if (op == ScalarOp::cast) {
    // Sizes are i64 in graphs; where they were widened from i32, what becomes of them need not know i64.
    const ScalarExpr::Ins from = out_->code.code[in[0]];
    const bool widened = from.kind == ScalarExpr::Kind::op && from.op == ScalarOp::cast && from.type == DType::i64;
    if (widened && out_->code.code[from.a].type == DType::i32) in[0] = from.a;
    if (out_->code.code[in[0]].type == node.out[0].dtype) return in[0];
  }
  return push({ScalarExpr::Kind::op, op, node.out[0].dtype, in[0], in[1], in[2]});
}

std::optional<uint16_t> ExprBuilder::emit(Value v, const Chain& chain, bool expand) {
  const auto key = std::make_pair(v, chain);
  if (const auto it = done_.find(key); it != done_.end()) return it->second;
  const Node& node = graph_.node(v.node);
  std::optional<uint16_t> result;
  if (is_scalar_constant(node)) {
    const ScalarExpr::Number n = number_of(std::get<Const>(node.attrs[0]));
    result = constant(node.out[0].dtype, n.f, n.i);
  } else if (stored_(v) && !expand) {
    result = load(v, chain);
  } else if (node.op->view != nullptr) {
    Chain longer{v.node};
    longer.insert(longer.end(), chain.begin(), chain.end());
    result = emit(node.in[0], longer, false);
  } else if (is_generator(node)) {
    result = affine(node, v, chain);
  } else {
    TERN_CHECK(node.op->scalar >= 0, "a value without memory is neither elementwise nor a view");
    result = operands(node, chain);
  }
  if (result) done_[key] = *result;
  return result;
}

}  // namespace tern::lowering
