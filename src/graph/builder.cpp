#include <bit>
#include <cmath>
#include <cstring>
#include <optional>

#include "graph/op.h"
#include "graph/text/text.h"
#include "tern/graph.h"

namespace tern {

struct Builder::Impl {
  Graph own;
  Graph* graph = nullptr;  // own, or somebody's
  bool borrowed = false;
  std::optional<Error> error;
  std::string scope;

  Loc located(Loc loc) const {
    if (scope.empty()) return loc;
    return {loc.text.empty() ? scope : scope + "/" + loc.text};
  }
  Value take(Result<Value> r) {
    if (r) return *r;
    if (!error) error = r.take_error();
    return {};
  }
  void take(Status s) {
    if (!s && !error) error = s.take_error();
  }
};

Builder::Builder() : impl_(std::make_unique<Impl>()) { impl_->graph = &impl_->own; }
Builder::Builder(Graph& graph) : impl_(std::make_unique<Impl>()) {
  impl_->graph = &graph;
  impl_->borrowed = true;
}
Builder::~Builder() = default;
Builder::Builder(Builder&&) noexcept = default;

Graph& Builder::graph() { return *impl_->graph; }
DimTable& Builder::dims() { return *impl_->graph->dims; }
bool Builder::failed() const { return impl_->error.has_value(); }
const Error* Builder::error() const { return impl_->error ? &*impl_->error : nullptr; }
void Builder::fail(Error error) {
  if (!impl_->error) impl_->error = std::move(error);
}
void Builder::scope(std::string prefix) { impl_->scope = std::move(prefix); }

Dim Builder::symbol(std::string name, int64_t min, int64_t max, int64_t multiple) {
  auto d = dims().symbol({std::move(name), min, max, multiple, false});
  if (d) return *d;
  fail(d.take_error());
  return 0;
}

Value Builder::input(std::string name, DType dtype, Shape shape) {
  if (failed()) return {};
  return impl_->take(graph().input(std::move(name), {dtype, std::move(shape), nullptr}, impl_->located({})));
}
Value Builder::param(std::string name, DType dtype, Shape shape, const Format* format) {
  if (failed()) return {};
  return impl_->take(graph().param(std::move(name), {dtype, std::move(shape), format}, impl_->located({})));
}
Value Builder::state(std::string name, DType dtype, Shape shape) {
  if (failed()) return {};
  return impl_->take(graph().state(std::move(name), {dtype, std::move(shape), nullptr}, impl_->located({})));
}

Value Builder::constant(Const value) {
  if (failed()) return {};
  auto r = graph().add(kConstantOp, {}, {std::move(value)}, impl_->located({}));
  if (r) return (*r)[0];
  fail(r.take_error());
  return {};
}

namespace {

template <class T>
void put(std::vector<std::byte>& out, T value) {
  const auto* p = reinterpret_cast<const std::byte*>(&value);
  out.insert(out.end(), p, p + sizeof(T));
}

// The bits of one number; false where the type does not hold it (an integer out of range or with a fraction).
bool put_number(std::vector<std::byte>& out, DType dtype, double v) {
  const DTypeInfo& info = dtype_info(dtype);
  if (info.kind == DTypeKind::signed_int || info.kind == DTypeKind::unsigned_int || info.kind == DTypeKind::boolean) {
    if (!(v == std::trunc(v)) || v < info.lowest || v > info.highest) return false;
    // As doubles the highest values of the 64-bit types are one too large.
    if (info.bytes == 8 && v >= std::ldexp(1.0, info.mantissa_bits)) return false;
    const uint64_t bits = v < 0 ? static_cast<uint64_t>(static_cast<int64_t>(v)) : static_cast<uint64_t>(v);
    for (uint32_t i = 0; i < info.bytes; ++i) out.push_back(static_cast<std::byte>(bits >> (8 * i)));
    return true;
  }
  switch (dtype) {
    case DType::f64: put(out, v); break;
    case DType::f32: put(out, static_cast<float>(v)); break;
    case DType::f16: put(out, f32_to_f16(static_cast<float>(v))); break;
    case DType::bf16: put(out, f32_to_bf16(static_cast<float>(v))); break;
    case DType::f8e4m3: put(out, f32_to_f8e4m3(static_cast<float>(v))); break;
    case DType::f8e5m2: put(out, f32_to_f8e5m2(static_cast<float>(v))); break;
    case DType::c64: put(out, static_cast<float>(v)), put(out, 0.0f); break;
    case DType::c128: put(out, v), put(out, 0.0); break;
    default: return false;
  }
  return true;
}

}  // namespace

Value Builder::constant(DType dtype, double value) {
  std::vector<std::byte> bytes;
  if (!put_number(bytes, dtype, value)) {
    fail(make_error(Code::invalid, "constant " + real_text(value) + " is no " + std::string(dtype_name(dtype)),
                    impl_->scope));
    return {};
  }
  return constant(Const{dtype, {}, std::make_shared<const std::vector<std::byte>>(std::move(bytes))});
}

void Builder::output(std::string name, Value value) {
  if (!failed()) impl_->take(graph().output(std::move(name), value));
}
void Builder::update(std::string_view state, Value next) {
  if (!failed()) impl_->take(graph().update(state, next));
}

std::vector<Value> Builder::ops(std::string_view name, std::vector<Value> in, std::vector<Attr> attrs, Loc loc,
                                std::vector<std::unique_ptr<Graph>> regions) {
  if (failed()) return {};
  const OpDef* op = find_op(name);
  if (!op) {
    fail(
        make_error(Code::not_found, "no op is named '" + std::string(name) + "'", impl_->located(std::move(loc)).text));
    return {};
  }
  auto r = graph().add(*op, std::move(in), std::move(attrs), impl_->located(std::move(loc)), std::move(regions));
  if (r) return std::move(*r);
  fail(r.take_error());
  return {};
}

Value Builder::op(std::string_view name, std::vector<Value> in, std::vector<Attr> attrs, Loc loc) {
  auto results = ops(name, std::move(in), std::move(attrs), std::move(loc));
  if (failed()) return {};
  if (results.size() == 1) return results[0];
  fail(make_error(Code::invalid,
                  std::string(name) + " has " + std::to_string(results.size()) + " results, ask through ops()"));
  return {};
}

const TensorType& Builder::type(Value value) const {
  static const TensorType kNothing;
  return impl_->graph->holds(value) ? impl_->graph->type(value) : kNothing;
}

Dim Builder::dim(Value value, int axis) const {
  if (impl_->error) return 0;
  const Shape& shape = type(value).shape;
  const auto rank = static_cast<int>(shape.size());
  const int at = axis < 0 ? axis + rank : axis;
  if (at >= 0 && at < rank) return shape[static_cast<size_t>(at)];
  impl_->error = make_error(
      Code::invalid, "dim: axis " + std::to_string(axis) + " of a value of rank " + std::to_string(rank), impl_->scope);
  return 0;
}

Result<Graph> Builder::finish() {
  if (impl_->error) return Error(*impl_->error);
  if (impl_->borrowed) return make_error(Code::internal, "finish: the graph belongs to somebody else");
  TERN_OK(impl_->own.verify());
  return std::move(impl_->own);
}

}  // namespace tern
