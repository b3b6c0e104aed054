#include "graph/sizes/contents.h"

#include <algorithm>

#include "graph/reference.h"
#include "graph/text/text.h"

namespace tern {
namespace {

std::vector<int64_t> constant_shape(const TensorType& type) { return *constants_of(type.shape); }

RefTensor tensor_of(DType dtype, const TensorType& type, const std::vector<int64_t>& values) {
  return {dtype, constant_shape(type), {}, values};
}

// The op's reference over integers; the result has the node's shape and a type that the reference is told.
Result<std::vector<int64_t>> evaluated(const Node& node, DType dtype, std::span<const RefTensor> in) {
  RefTensors r;
  for (const RefTensor& t : in) r.in.push_back(&t);
  for (const TensorType& t : node.out)
    r.out.push_back(ref_zeros(&t == node.out.data() ? dtype : t.dtype, constant_shape(t)));
  TERN_OK(node.op->reference(node, r));
  return std::move(r.out[0].i);
}

// Every value between the ends fits the type. 64-bit ranges saturate, so their ends prove nothing.
bool fits(DType dtype, std::pair<int64_t, int64_t> range) {
  const DTypeInfo& info = dtype_info(dtype);
  if (info.kind == DTypeKind::boolean) return range.first >= 0 && range.second <= 1;
  const bool is_signed = info.kind == DTypeKind::signed_int;
  if (info.bytes == 8) return range.second < INT64_MAX && (is_signed ? range.first > INT64_MIN : range.first >= 0);
  return static_cast<double>(range.first) >= info.lowest && static_cast<double>(range.second) <= info.highest;
}

// u64 travels as its bits; what has the top one is no size.
OrRefuse<Contents> as_dims(const Node& node, const std::vector<int64_t>& values) {
  const bool high = std::any_of(values.begin(), values.end(), [](int64_t v) { return v < 0; });
  if (node.out[0].dtype == DType::u64 && high) return refuse("a number of u64 is no size");
  return Contents(values.begin(), values.end());
}

}  // namespace

std::optional<std::vector<int64_t>> constants_of(std::span<const Dim> dims) {
  std::vector<int64_t> out;
  for (const Dim d : dims) {
    if (!d.constant()) return std::nullopt;
    out.push_back(*d.constant());
  }
  return out;
}

bool attrs_are_constant(const Node& node) {
  return std::all_of(node.attrs.begin(), node.attrs.end(), [](const Attr& a) {
    if (const auto* d = std::get_if<Dim>(&a)) return d->constant().has_value();
    const auto* s = std::get_if<Shape>(&a);
    return s == nullptr || constants_of(*s).has_value();
  });
}

const OrRefuse<Contents>& ContentsOf::of(Value v) {
  // Without recursion: shape arithmetic may be as deep as a model is long.
  std::vector<Value> open{v};
  while (!open.empty()) {
    const Value at = open.back();
    if (known_.contains(at)) {
      open.pop_back();
      continue;
    }
    const size_t before = open.size();
    if (!unfit(at)) {
      for (const Value in : graph_.at(at).in) {
        if (!known_.contains(in)) open.push_back(in);
      }
    }
    if (open.size() > before) continue;
    known_.emplace(at, compute(at));
    open.pop_back();
  }
  return known_.at(v);
}

// Why the value cannot have contents, whatever its operands hold.
std::optional<Refusal> ContentsOf::unfit(Value v) const {
  const Node& node = graph_.at(v);
  const TensorType& type = node.out[v.out];
  const std::string what = node_text(graph_, v.node) + " is " + type_text(*graph_.dims, type);
  if (type.format || !(is_int(type.dtype) || type.dtype == DType::boolean)) return refuse(what + ", no integers");
  const auto shape = constants_of(type.shape);
  if (!shape) return refuse(what + ", whose own extents are not constant");
  int64_t count = 1;
  for (const int64_t n : *shape) count = n > kMaxContents ? kMaxContents + 1 : std::min(count * n, kMaxContents + 1);
  if (count > kMaxContents) return refuse(what + ", more than " + std::to_string(kMaxContents) + " elements");
  if (node.op == &kConstantOp) return std::nullopt;
  if (node.op->kind == OpKind::leaf) {
    const Port* port = graph_.port_of(v);
    return refuse(std::string(node.op->name) + (port ? " '" + port->name + "'" : "") + " is known only at run time");
  }
  if (v.out != 0 || !node.op->reference || node.op->fx.rng || !node.regions.empty())
    return refuse(node_text(graph_, v.node) + " is no shape arithmetic");
  return std::nullopt;
}

OrRefuse<Contents> ContentsOf::compute(Value v) {
  if (auto why = unfit(v)) return *why;
  const Node& node = graph_.at(v);
  const auto located = [&](const std::string& why) { return refuse(node_text(graph_, v.node) + ": " + why); };
  if (node.op == &kConstantOp) {
    auto t = ref_from(std::get<Const>(node.attrs[0]));
    return t ? as_dims(node, t->i) : OrRefuse<Contents>(located(t.error().text));
  }
  std::vector<const Contents*> in;
  std::vector<TensorType> types;
  bool constant = attrs_are_constant(node);
  for (const Value operand : node.in) {
    const OrRefuse<Contents>& c = known_.at(operand);
    if (!c) return refuse(c.why());
    in.push_back(&*c);
    types.push_back(graph_.type(operand));
    constant = constant && constants_of(*c).has_value();
  }
  if (constant) return numbers(node, in);
  ContentsCtx ctx{node, *graph_.dims, types, in};
  auto out = node.op->contents                    ? node.op->contents(ctx)
             : node.op->moves != OpDef::Moves::no ? moved(node, in)
                                                  : refuse("it is no shape arithmetic");
  if (!out) return located(out.why());
  for (const Dim d : *out) {
    if (!fits(node.out[0].dtype, graph_.dims->range(d)))
      return located(graph_.dims->text(d) + " may not fit " + std::string(dtype_name(node.out[0].dtype)));
  }
  return out;
}

OrRefuse<Contents> ContentsOf::numbers(const Node& node, std::span<const Contents* const> in) const {
  std::vector<RefTensor> operands;
  for (size_t i = 0; i < in.size(); ++i) {
    const TensorType& type = graph_.type(node.in[i]);
    operands.push_back(tensor_of(type.dtype, type, *constants_of(*in[i])));
  }
  auto out = evaluated(node, node.out[0].dtype, operands);
  if (!out) return refuse(out.error().text);
  return as_dims(node, *out);
}

// Elements travel as their numbers in a list of dims, through the op's own reference.
OrRefuse<Contents> ContentsOf::moved(const Node& node, std::span<const Contents* const> in) const {
  if (!attrs_are_constant(node)) return refuse("its attributes are symbolic");
  Contents pool{0};  // what an op writes of its own is a zero
  std::vector<RefTensor> operands;
  for (size_t i = 0; i < in.size(); ++i) {
    const TensorType& type = graph_.type(node.in[i]);
    if (i > 0 && node.op->moves == OpDef::Moves::first) {
      const auto values = constants_of(*in[i]);
      if (!values) return refuse("operand " + std::to_string(i) + " chooses by a symbolic number");
      operands.push_back(tensor_of(type.dtype, type, *values));
      continue;
    }
    std::vector<int64_t> places;
    for (const Dim d : *in[i]) {
      places.push_back(static_cast<int64_t>(pool.size()));
      pool.push_back(d);
    }
    operands.push_back(tensor_of(DType::i64, type, places));
  }
  auto places = evaluated(node, DType::i64, operands);
  if (!places) return refuse(places.error().text);
  Contents out;
  for (const int64_t at : *places) out.push_back(pool[static_cast<size_t>(at)]);
  return out;
}

}  // namespace tern
