// The leaves, look-up by name, and the checks that type rules share.
#include "graph/op.h"

#include <unordered_map>

#include "graph/text/text.h"

namespace tern {
namespace {

constexpr AttrSpec kConstantAttrs[] = {{.name = "value", .kind = AttrKind::constant}};

Result<std::vector<TensorType>> infer_constant(InferCtx& ctx) {
  const Const& c = ctx.attr<Const>(0);
  return std::vector<TensorType>{{c.dtype, Shape(c.shape.begin(), c.shape.end()), nullptr}};
}

constexpr OpDef leaf(std::string_view name) {
  OpDef op{};
  op.name = name;
  op.kind = OpKind::leaf;
  return op;
}

constexpr OpDef constant_op() {
  OpDef op = leaf("constant");
  op.attrs = kConstantAttrs;
  op.infer = infer_constant;
  return op;
}

}  // namespace

constinit const OpDef kInputOp = leaf("input"), kParamOp = leaf("param"), kStateOp = leaf("state"),
                      kConstantOp = constant_op();

const OpDef* find_op(std::string_view name) {
  static const auto kByName = [] {
    std::unordered_map<std::string_view, const OpDef*> map;
    for (const OpDef* op : {&kInputOp, &kParamOp, &kStateOp, &kConstantOp}) map.emplace(op->name, op);
    for (const OpDef* op : op_list()) map.emplace(op->name, op);
    return map;
  }();
  auto it = kByName.find(name);
  return it == kByName.end() ? nullptr : it->second;
}

int64_t RefTensor::size() const {
  int64_t n = 1;
  for (int64_t d : shape) n *= d;
  return n;
}

Error InferCtx::error(std::string text) const {
  return make_error(Code::invalid, std::string(op) + ": " + std::move(text), loc.text);
}

Status InferCtx::same(Dim a, Dim b, std::string_view what) {
  const auto proved = dims.equal(a, b);
  if (proved == true) return ok();
  if (proved == false) return error(std::string(what) + ": " + dims.text(a) + " is not " + dims.text(b));
  guards.push_back({a, b, std::string(op) + ": " + std::string(what), loc});
  return ok();
}

Status InferCtx::divides(int64_t by, Dim dim, std::string_view what) {
  if (by == 0) return error(std::string(what) + ": nothing is a multiple of 0");
  const auto proved = dims.divisible(dim, by);
  if (proved == true) return ok();
  if (proved == false)
    return error(std::string(what) + ": " + dims.text(dim) + " is no multiple of " + std::to_string(by));
  guards.push_back({dims.mod(dim, by), 0, std::string(op) + ": " + std::string(what), loc});
  return ok();
}

Status InferCtx::rank(size_t input, int rank) {
  if (input >= in.size()) return error("operand " + std::to_string(input) + " is missing");
  if (rank < 0 || in[input].shape.size() == static_cast<size_t>(rank)) return ok();
  return error("operand " + std::to_string(input) + " is " + type_text(dims, in[input]) + ", wants rank " +
               std::to_string(rank));
}

Result<int> InferCtx::axis(int64_t axis, size_t rank) const {
  const auto n = static_cast<int64_t>(rank);
  if (axis < -n || axis >= n)
    return error("axis " + std::to_string(axis) + " is outside of rank " + std::to_string(rank));
  return static_cast<int>(axis < 0 ? axis + n : axis);
}

}  // namespace tern
