#include "graph/reference.h"
#include "graph/text/text.h"
#include "passes/passes.h"
#include "passes/rewrite/rewrite.h"

namespace tern {
namespace {

// Small results are always worth it (shape arithmetic); larger ones must not take more room than what they come from,
// so that a broadcast or an iota stays the few bytes that it is.
constexpr uint64_t kSmallBytes = 256, kMaxBytes = uint64_t{4} << 20;

// Bytes of the results; nullopt: a size is symbolic, or a result is quantised.
std::optional<uint64_t> result_bytes(const Node& n) {
  uint64_t sum = 0;
  for (const TensorType& t : n.out) {
    std::vector<int64_t> shape;
    for (Dim d : t.shape) {
      if (!d.constant()) return std::nullopt;
      shape.push_back(*d.constant());
    }
    auto bytes = t.format ? Result<uint64_t>(Error{}) : dense_bytes(t.dtype, nullptr, shape);
    if (!bytes || *bytes > kMaxBytes) return std::nullopt;
    sum += *bytes;
  }
  return sum;
}

Status fold_node(Graph& g, uint32_t id) {
  const Node& n = g.node(id);
  if (n.op->kind == OpKind::leaf || !n.op->reference || n.op->fx.rng || !n.regions.empty() || n.out.empty())
    return ok();
  uint64_t operand_bytes = 0;
  for (Value v : n.in) {
    if (g.at(v).op != &kConstantOp) return ok();
    const auto& c = std::get<Const>(g.at(v).attrs[0]);
    operand_bytes += c.data ? c.data->size() : 0;
  }
  const auto bytes = result_bytes(n);
  if (!bytes || *bytes > std::max(kSmallBytes, operand_bytes) || operand_bytes > kMaxBytes) return ok();
  // Dims in attributes would need values.
  for (const Attr& a : n.attrs) {
    if (const auto* d = std::get_if<Dim>(&a); d && !d->constant()) return ok();
    if (const auto* s = std::get_if<Shape>(&a);
        s && std::any_of(s->begin(), s->end(), [](Dim d) { return !d.constant(); }))
      return ok();
  }
  std::vector<RefTensor> in;
  in.reserve(n.in.size());
  for (Value v : n.in) {
    TERN_TRY(RefTensor t, ref_from(std::get<Const>(g.at(v).attrs[0])));
    in.push_back(std::move(t));
  }
  RefTensors tensors;
  tensors.dims = g.dims.get();
  for (const RefTensor& t : in) tensors.in.push_back(&t);
  for (const TensorType& t : n.out) {
    std::vector<int64_t> shape;
    for (Dim d : t.shape) shape.push_back(*d.constant());
    tensors.out.push_back(ref_zeros(t.dtype, std::move(shape)));
  }
  // A reference that refuses these values leaves the node to the device, which reports it at run time.
  if (auto s = n.op->reference(n, tensors); !s) return ok();
  const Loc loc = n.loc;
  for (uint16_t i = 0; i < tensors.out.size(); ++i) {
    TERN_TRY(const std::vector<Value> c, g.add(kConstantOp, {}, {const_from(tensors.out[i])}, loc));
    g.replace({id, i}, c[0]);
  }
  return ok();
}

Status fold_one(Graph& g) {
  for (uint32_t id : g.order()) TERN_OK(fold_node(g, id));
  return ok();
}

}  // namespace

Status fold(Graph& graph, const Target&) { return for_each_graph(graph, fold_one); }

}  // namespace tern
