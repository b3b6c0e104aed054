// How each op that is neither elementwise nor a view becomes a Problem: one function an op, one row in the table below.
#include "lower/fuse/make/anchors.h"

#include <algorithm>

namespace tern::lowering {
namespace {

using Ints = std::vector<int64_t>;

TensorType shaped(const TensorType& type, Shape shape) {
  TensorType out = type;
  out.shape = std::move(shape);
  return out;
}
Dim product(DimTable& dims, const Shape& shape, size_t first, size_t end) {
  Dim n = 1;
  for (size_t i = first; i < end; ++i) n = dims.mul(n, shape[i]);
  return n;
}
Error unfit(const Node& node, std::string why) {
  return make_error(Code::unsupported, std::string(node.op->name) + ": " + std::move(why), node.loc.text);
}

// Axes ascending and contiguous from `first`.
bool run_of(const Ints& axes, size_t first) {
  for (size_t i = 0; i < axes.size(); ++i) {
    if (axes[i] != static_cast<int64_t>(first + i)) return false;
  }
  return true;
}

// Operands come as [batch..., m..., k] and [batch..., n..., k] or [batch..., k, n...]; the pass `canonicalise` brings
// others there.
Result<Anchor> dot_general(const Graph& graph, DimTable& dims, uint32_t id) {
  const Node& node = graph.node(id);
  const TensorType &x = graph.type(node.in[0]), &w = graph.type(node.in[1]);
  const auto &lc = attr<Ints>(node, "lhs_contract"), &rc = attr<Ints>(node, "rhs_contract");
  const auto &lb = attr<Ints>(node, "lhs_batch"), &rb = attr<Ints>(node, "rhs_batch");
  const size_t batch = lb.size(), contracted = lc.size();
  if (!run_of(lb, 0) || !run_of(rb, 0) || !run_of(lc, x.shape.size() - contracted))
    return unfit(node, "axes are not in matrix order");
  const bool nk = run_of(rc, w.shape.size() - contracted), kn = run_of(rc, batch);
  if (!nk && !kn) return unfit(node, "axes are not in matrix order");
  Anchor a;
  const Dim b = product(dims, x.shape, 0, batch), m = product(dims, x.shape, batch, x.shape.size() - contracted);
  const Dim k = product(dims, x.shape, x.shape.size() - contracted, x.shape.size());
  const Dim n = nk ? product(dims, w.shape, batch, w.shape.size() - contracted)
                   : product(dims, w.shape, batch + contracted, w.shape.size());
  a.problem.family = Family::matmul;
  a.problem.extent = {b, m, k};
  a.problem.desc = MatmulDesc{batch > 0, !nk, attr<std::string>(node, "precision") == "high"};
  const bool batched = batch > 0;
  a.inputs.push_back({node.in[0], shaped(x, batched ? Shape{b, m, k} : Shape{m, k}), Role::x});
  const Shape weight = nk ? Shape{n, k} : Shape{k, n};
  a.inputs.push_back({node.in[1], shaped(w, batched ? Shape{b, weight[0], weight[1]} : weight), Role::weight});
  Part part;
  part.n = n;
  part.weights = {1};
  a.problem.parts.push_back(part);
  a.outs.push_back(shaped(node.out[0], batched ? Shape{b, m, n} : Shape{m, n}));
  return a;
}

Result<Anchor> arg_reduce(const Graph& graph, DimTable& dims, uint32_t id) {
  const Node& node = graph.node(id);
  const TensorType& x = graph.type(node.in[0]);
  if (attr<int64_t>(node, "axis") != static_cast<int64_t>(x.shape.size()) - 1)
    return unfit(node, "the axis is not the last");
  Anchor a;
  const Dim rows = product(dims, x.shape, 0, x.shape.size() - 1);
  a.problem.family = Family::arg_reduce;
  a.problem.extent = {rows, x.shape.back()};
  a.problem.desc = ArgReduceDesc{attr<bool>(node, "largest")};
  a.problem.parts.resize(1);
  a.inputs.push_back({node.in[0], shaped(x, {rows, x.shape.back()}), Role::x});
  a.outs.push_back(shaped(node.out[0], {rows}));
  return a;
}

Result<Anchor> cumsum(const Graph& graph, DimTable& dims, uint32_t id) {
  const Node& node = graph.node(id);
  const TensorType& x = graph.type(node.in[0]);
  Anchor a;
  const Dim rows = product(dims, x.shape, 0, x.shape.size() - 1);
  a.problem.family = Family::scan;
  a.problem.extent = {rows, x.shape.back()};
  a.problem.desc = ScanDesc{};
  a.problem.parts.resize(1);
  a.inputs.push_back({node.in[0], shaped(x, {rows, x.shape.back()}), Role::x});
  a.outs.push_back(shaped(node.out[0], {rows, x.shape.back()}));
  return a;
}

Result<Anchor> norm_of(const Graph& graph, DimTable& dims, uint32_t id, NormKind kind, double eps) {
  const Node& node = graph.node(id);
  const TensorType& x = graph.type(node.in[0]);
  if (x.shape.empty()) return unfit(node, "a scalar has no axis to normalise over");
  Anchor a;
  const Dim rows = product(dims, x.shape, 0, x.shape.size() - 1), columns = x.shape.back();
  a.problem.family = Family::norm;
  a.problem.extent = {rows, columns};
  a.problem.desc = NormDesc{kind, eps};
  a.problem.parts.resize(1);
  a.problem.parts[0].n = columns;
  a.inputs.push_back({node.in[0], shaped(x, {rows, columns}), Role::x});
  for (size_t i = 1; i < node.in.size(); ++i) {
    a.inputs.push_back({node.in[i], shaped(graph.type(node.in[i]), {columns}), i == 1 ? Role::weight : Role::bias});
  }
  a.outs.push_back(shaped(node.out[0], {rows, columns}));
  return a;
}
Result<Anchor> rms_norm(const Graph& g, DimTable& d, uint32_t id) {
  return norm_of(g, d, id, NormKind::rms, attr<double>(g.node(id), "eps"));
}
Result<Anchor> layer_norm(const Graph& g, DimTable& d, uint32_t id) {
  return norm_of(g, d, id, NormKind::layer, attr<double>(g.node(id), "eps"));
}
Result<Anchor> softmax_of(const Graph& g, DimTable& d, uint32_t id, NormKind kind) {
  const Node& node = g.node(id);
  if (attr<int64_t>(node, "axis") != static_cast<int64_t>(node.out[0].shape.size()) - 1)
    return unfit(node, "the axis is not the last");
  return norm_of(g, d, id, kind, 0);
}
Result<Anchor> softmax(const Graph& g, DimTable& d, uint32_t id) { return softmax_of(g, d, id, NormKind::softmax); }
Result<Anchor> log_softmax(const Graph& g, DimTable& d, uint32_t id) {
  return softmax_of(g, d, id, NormKind::log_softmax);
}

Result<Anchor> gather(const Graph& graph, DimTable& dims, uint32_t id) {
  const Node& node = graph.node(id);
  const TensorType &data = graph.type(node.in[0]), &index = graph.type(node.in[1]);
  const auto axis = static_cast<size_t>(attr<int64_t>(node, "axis"));
  Anchor a;
  const Dim outer = product(dims, data.shape, 0, axis), inner = product(dims, data.shape, axis + 1, data.shape.size());
  const Dim count = element_count(dims, index.shape);
  a.problem.family = Family::gather;
  a.problem.extent = {outer, count, inner};
  a.problem.desc = GatherDesc{};
  a.problem.parts.resize(1);
  const Shape rows = axis == 0 ? Shape{data.shape[0], inner} : Shape{outer, data.shape[axis], inner};
  a.inputs.push_back({node.in[0], shaped(data, rows), Role::weight});
  a.inputs.push_back({node.in[1], shaped(index, {count}), Role::index});
  a.outs.push_back(shaped(node.out[0], axis == 0 ? Shape{count, inner} : Shape{outer, count, inner}));
  return a;
}

Result<Anchor> store_rows(const Graph& graph, DimTable& dims, uint32_t id) {
  const Node& node = graph.node(id);
  const TensorType &state = graph.type(node.in[0]), &src = graph.type(node.in[2]);
  Anchor a;
  const Dim columns = product(dims, state.shape, 1, state.shape.size());
  a.problem.family = Family::store;
  a.problem.extent = {src.shape[0], columns};
  a.problem.desc = StoreDesc{};
  a.problem.parts.resize(1);
  a.inputs.push_back({node.in[0], shaped(state, {state.shape[0], columns}), Role::out});
  a.inputs.push_back({node.in[1], graph.type(node.in[1]), Role::index});
  a.inputs.push_back({node.in[2], shaped(src, {src.shape[0], columns}), Role::x});
  a.in_place = true;
  a.outs.push_back(shaped(node.out[0], {state.shape[0], columns}));
  return a;
}

// A KV state as its pages: [pages, the rest].
TensorType in_pages(DimTable& dims, const TensorType& state) {
  return shaped(state, {state.shape[0], product(dims, state.shape, 1, state.shape.size())});
}

Result<Anchor> store_kv(const Graph& graph, DimTable& dims, uint32_t id) {
  const Node& node = graph.node(id);
  const TensorType& src = graph.type(node.in[2]);
  const Dim columns = dims.mul(src.shape[1], src.shape[2]);
  StoreDesc d;
  d.page = static_cast<uint32_t>(attr<int64_t>(node, "page"));
  d.heads = static_cast<uint32_t>(graph.type(node.in[0]).shape[1].constant().value_or(0));
  d.size = static_cast<uint32_t>(columns.constant().value_or(0) / std::max<uint32_t>(d.heads, 1));
  d.keys = attr<bool>(node, "keys");
  d.kv = kv_kind_by_name(attr<std::string>(node, "kv")).value_or(KvKind::f16);
  Anchor a;
  a.problem.family = Family::store;
  a.problem.extent = {src.shape[0], columns};
  a.problem.desc = d;
  a.problem.parts.resize(1);
  a.inputs.push_back({node.in[0], in_pages(dims, graph.type(node.in[0])), Role::out});
  a.inputs.push_back({node.in[1], graph.type(node.in[1]), Role::index});
  a.inputs.push_back({node.in[2], shaped(src, {src.shape[0], columns}), Role::x});
  a.in_place = true;
  a.outs.push_back(in_pages(dims, node.out[0]));
  return a;
}

// Operands in the op's order; heads and head sizes are constants by the op's own rule.
Result<Anchor> attention(const Graph& graph, DimTable& dims, uint32_t id) {
  const Node& node = graph.node(id);
  const Shape &q = graph.type(node.in[0]).shape, &k = graph.type(node.in[1]).shape, &out = node.out[0].shape;
  const auto whole = [](Dim d) { return static_cast<uint32_t>(d.constant().value_or(0)); };
  AttentionDesc d;
  d.heads = whole(q[1]);
  d.kv_heads = whole(k[1]);
  d.head_size = whole(q[2]);
  d.value_size = whole(out[2]);
  d.page = static_cast<uint32_t>(attr<int64_t>(node, "page"));
  d.scale = attr<double>(node, "scale");
  d.soft_cap = attr<double>(node, "soft_cap");
  d.causal = attr<bool>(node, "causal");
  d.window = static_cast<uint32_t>(attr<int64_t>(node, "window"));
  d.kv = kv_kind_by_name(attr<std::string>(node, "kv")).value_or(KvKind::f16);
  Anchor a;
  a.problem.family = Family::attention;
  a.problem.extent = {q[0], graph.type(node.in[4]).shape[0]};
  a.problem.desc = d;
  a.problem.parts.resize(1);
  constexpr Role kRoles[] = {Role::q, Role::k, Role::v, Role::row_start, Role::kv_length, Role::pages, Role::position};
  const bool mask = attr<bool>(node, "mask");
  for (size_t i = 0; i < node.in.size(); ++i) {
    const Role role = i < std::size(kRoles) ? kRoles[i] : i == std::size(kRoles) && mask ? Role::mask : Role::sinks;
    TensorType type = graph.type(node.in[i]);
    if (i < 3) type = in_pages(dims, type);
    a.inputs.push_back({node.in[i], type, role});
  }
  a.outs.push_back(shaped(node.out[0], {q[0], dims.mul(out[1], out[2])}));
  return a;
}

Result<Anchor> sample(const Graph& graph, DimTable&, uint32_t id) {
  const Node& node = graph.node(id);
  const TensorType &logits = graph.type(node.in[0]), &history = graph.type(node.in[2]);
  Anchor a;
  a.problem.family = Family::sample;
  a.problem.extent = {logits.shape[0], logits.shape[1], history.shape[1]};
  a.problem.desc = SampleDesc{};
  a.problem.parts.resize(1);
  constexpr Role kRoles[] = {Role::x, Role::settings, Role::history, Role::seeds};
  for (size_t i = 0; i < 4; ++i) a.inputs.push_back({node.in[i], graph.type(node.in[i]), kRoles[i]});
  a.outs.push_back(node.out[0]);
  return a;
}

struct Row {
  std::string_view op;
  AnchorFn make;
};
constexpr Row kRows[] = {
    {"dot_general", dot_general}, {"arg_reduce", arg_reduce},   {"rms_norm", rms_norm}, {"layer_norm", layer_norm},
    {"softmax", softmax},         {"log_softmax", log_softmax}, {"gather", gather},     {"store_rows", store_rows},
    {"store_kv", store_kv},       {"attention", attention},     {"sample", sample},     {"cumsum", cumsum},
};

}  // namespace

Problem standalone(const Graph& graph, const Anchor& anchor) {
  Problem problem = anchor.problem;
  for (size_t i = 0; i < anchor.inputs.size(); ++i) {
    const AnchorOperand& in = anchor.inputs[i];
    const Access access = anchor.in_place && i == 0 ? Access::update : Access::read;
    problem.operands.push_back({in.type, in.role, origin_of(graph, in.value), access, {}});
  }
  for (size_t r = 0; r < anchor.outs.size() && !anchor.in_place; ++r) {
    Output out;
    out.operand = static_cast<uint16_t>(problem.operands.size());
    problem.parts[0].outs.push_back(out);
    problem.operands.push_back({anchor.outs[r], Role::out, Origin::temp, Access::write, {}});
  }
  return problem;
}

AnchorFn find_anchor(std::string_view op) {
  for (const Row& row : kRows) {
    if (row.op == op) return row.make;
  }
  return nullptr;
}

}  // namespace tern::lowering
