#include "lower/text.h"

#include "core/scalar.h"
#include "graph/text/text.h"

namespace tern::lowering {
namespace {

constexpr std::string_view kReduceNames[] = {"sum", "prod", "max", "min", "any", "all"};
constexpr std::string_view kNormNames[] = {"rms", "layer", "softmax", "log_softmax"};

class Printer {
 public:
  Printer(const Graph& graph, const Grouping& grouping) : graph_(graph), dims_(*graph.dims), grouping_(grouping) {}

  std::string run() {
    for (const Group& g : grouping_.groups) group(g);
    for (const CopyOut& c : grouping_.copies) {
      out_ += std::string("copy ") + value(c.from) + " -> " + (c.state ? "state " : "output ") + c.name +
              (c.saved   ? " (kept aside first)"
               : c.early ? " (first)"
                         : "") +
              "\n";
    }
    return std::move(out_);
  }

 private:
  std::string value(Value v) const {
    const Value home = grouping_.home(v);
    const Port* port = graph_.port_of(home);
    if (const auto o = grouping_.outputs.find(v); o != grouping_.outputs.end()) return o->second;
    if (port != nullptr) return port->name + (home == v ? "" : "'");
    return std::string(graph_.node(v.node).op->name) + "." + std::to_string(number_of(v));
  }
  // In order of appearance, so that goldens do not change with node ids.
  size_t number_of(Value v) const { return numbers_.try_emplace(v, numbers_.size()).first->second; }

  std::string map(const IndexMap& m) const {
    std::string s = "[" + (m.offset == Dim(0) ? std::string() : dims_.text(m.offset) + ":");
    for (size_t i = 0; i < m.stride.size(); ++i) s += (i ? "," : "") + dims_.text(m.stride[i]);
    return s + "]";
  }
  void expression(const Group& g, const ScalarExpr& e, std::string_view title) {
    for (size_t n = 0; n < e.code.size(); ++n) {
      const ScalarExpr::Ins& i = e.code[n];
      out_ += "    " + std::string(n == 0 ? title : "") + std::string(title.size() * (n != 0), ' ') + " %" +
              std::to_string(n) + " = ";
      using Kind = ScalarExpr::Kind;
      switch (i.kind) {
        case Kind::load: out_ += value(g.values[e.loads[i.a].operand]) + map(e.loads[i.a].map); break;
        case Kind::accumulator: out_ += "acc" + std::to_string(i.a); break;
        case Kind::constant:
          out_ += is_float(i.type) ? real_text(e.consts[i.a].f) : std::to_string(e.consts[i.a].i);
          break;
        case Kind::index: out_ += "index" + std::to_string(i.a); break;
        case Kind::dim: out_ += dims_.text(e.dims[i.a]); break;
        case Kind::op: {
          const ScalarRow& row = scalar_row(i.op);
          const uint16_t from[] = {i.a, i.b, i.c};
          out_ += row.name;
          for (int a = 0; a < row.arity; ++a) out_ += (a ? ", %" : " %") + std::to_string(from[a]);
          break;
        }
      }
      out_ += " : " + std::string(dtype_name(i.type)) + "\n";
    }
  }
  std::string detail(const Problem& p) const {
    if (const auto* r = std::get_if<ReduceDesc>(&p.desc))
      return " " + std::string(kReduceNames[static_cast<size_t>(r->kind)]) + " over " + std::to_string(r->reduced_axes);
    if (const auto* n = std::get_if<NormDesc>(&p.desc))
      return " " + std::string(kNormNames[static_cast<size_t>(n->kind)]);
    return "";
  }

  void group(const Group& g) {
    const Problem& p = g.problem;
    out_ += std::string(g.prepared ? "prepare " : "") + std::string(family_name(p.family)) + detail(p) + " {";
    for (size_t a = 0; a < p.extent.size(); ++a) out_ += (a ? "," : "") + dims_.text(p.extent[a]);
    out_ += "}";
    for (size_t i = 0; i < g.values.size(); ++i) {
      const Operand& o = p.operands[i];
      out_ += std::string(i ? ", " : " (") +
              (o.access == Access::update  ? "update "
               : o.access == Access::write ? "-> "
                                           : "") +
              value(g.values[i]) + ":" + type_text(dims_, o.type);
    }
    out_ += ")\n";
    expression(g, p.prologue, "in ");
    for (const Part& part : p.parts) {
      if (!part.weights.empty()) {
        out_ += "    part " + dims_.text(part.n) + " of";
        for (const uint16_t w : part.weights) out_ += " " + value(g.values[w]);
        out_ += "\n";
      }
      expression(g, part.epilogue, "out");
      for (const Output& o : part.outs) {
        const bool shown = !part.epilogue.empty() || !p.prologue.empty();
        out_ += "    " + value(g.values[o.operand]) + (o.map.stride.empty() ? "" : map(o.map)) +
                (shown ? " = %" + std::to_string(o.result) : "") + "\n";
      }
    }
  }

  const Graph& graph_;
  const DimTable& dims_;
  const Grouping& grouping_;
  mutable std::map<Value, size_t> numbers_;
  std::string out_;
};

}  // namespace

std::string grouping_text(const Graph& graph, const Grouping& grouping) { return Printer(graph, grouping).run(); }

}  // namespace tern::lowering
