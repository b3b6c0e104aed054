// The printer. What it writes follows from the structure of the graph alone: values are numbered in order(), symbols
// and guards are sorted by text, optional attributes at their default are left out.
#include <algorithm>
#include <map>
#include <set>

#include "graph/attrs.h"
#include "graph/build.h"
#include "graph/text/text.h"
#include "tern/graph.h"

namespace tern {
namespace {

bool plain_name(std::string_view s) {
  auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  if (s.empty() || !letter(s[0])) return false;
  return std::all_of(s.begin(), s.end(),
                     [&](char c) { return letter(c) || (c >= '0' && c <= '9') || c == '.' || c == '-' || c == '/'; });
}

class Printer {
 public:
  Printer(const Graph& g, std::string& out, int depth)
      : g_(g), dims_(*g.dims), out_(out), pad_(static_cast<size_t>(depth) * 2, ' '), depth_(depth) {}

  void run() {
    out_ += "graph {\n";
    if (depth_ == 0) symbols();
    for (const Port& p : g_.ports()) port(p);
    for (uint32_t id : g_.order()) {
      if (!g_.port_of({id, 0})) node(id);
    }
    std::vector<std::string> guards;
    for (const Guard& guard : g_.guards) {
      guards.push_back("guard " + dims_.text(guard.a) + " == " + dims_.text(guard.b) + " " + quoted(guard.what) +
                       loc(guard.loc));
    }
    std::sort(guards.begin(), guards.end());
    for (const std::string& guard : guards) line(guard);
    for (const OutputPort& o : g_.outputs()) line("output " + quoted(o.name) + " " + name(o.value));
    for (const StateUpdate& u : g_.updates()) line("update " + quoted(u.state) + " " + name(u.next));
    out_ += pad_ + "}";
  }

 private:
  void line(const std::string& s) { out_ += pad_ + "  " + s + "\n"; }
  static std::string loc(const Loc& l) { return l.text.empty() ? "" : " loc " + quoted(l.text); }

  static void collect(const Graph& g, std::set<uint32_t>& used) {
    auto dim = [&](Dim d) {
      for (uint32_t s : g.dims->symbols_of(d)) used.insert(s);
    };
    auto shape = [&](const Shape& s) { std::for_each(s.begin(), s.end(), dim); };
    for (const Guard& guard : g.guards) dim(guard.a), dim(guard.b);
    for (uint32_t id : g.order()) {
      const Node& n = g.node(id);
      for (const TensorType& t : n.out) shape(t.shape);
      for (const Attr& a : n.attrs) {
        if (const auto* d = std::get_if<Dim>(&a)) dim(*d);
        if (const auto* s = std::get_if<Shape>(&a)) shape(*s);
      }
      for (const auto& r : n.regions) collect(*r, used);
    }
  }

  void symbols() {
    std::set<uint32_t> used;
    collect(g_, used);
    std::map<std::string_view, const Symbol*> by_name;
    for (uint32_t id : used) by_name.emplace(dims_.symbols()[id].name, &dims_.symbols()[id]);
    for (const auto& [symbol_name, s] : by_name) {
      line("symbol " + s->name + " in [" + std::to_string(s->min) + ", " + std::to_string(s->max) + "]" +
           (s->multiple == 1 ? "" : " multiple " + std::to_string(s->multiple)) + (s->late ? " late" : ""));
    }
  }

  std::string fresh(Value v, std::string_view wanted = {}) {
    std::string s = plain_name(wanted) ? "%" + std::string(wanted) : "%" + std::to_string(next_++);
    names_[v] = s;
    return s;
  }
  std::string name(Value v) const {
    auto it = names_.find(v);
    return it == names_.end() ? "%?" : it->second;
  }

  void port(const Port& p) {
    line(fresh(p.value, p.name) + " = " + std::string(port_kind_name(p.kind)) + " " + quoted(p.name) + " : " +
         type_text(dims_, g_.type(p.value)) + (p.kind == PortKind::state && !p.resident ? " transient" : "") +
         loc(g_.at(p.value).loc));
  }

  void node(uint32_t id) {
    const Node& n = g_.node(id);
    std::string s;
    for (uint16_t i = 0; i < n.out.size(); ++i) s += (i ? ", " : "") + fresh({id, i});
    s += (n.out.empty() ? "" : " = ") + std::string(n.op->name) + "(";
    for (size_t i = 0; i < n.in.size(); ++i) s += (i ? ", " : "") + name(n.in[i]);
    s += ")";
    std::string attrs;
    for (size_t i = 0; i < n.attrs.size() && i < n.op->attrs.size(); ++i) {
      const AttrSpec& spec = n.op->attrs[i];
      if (spec.optional && n.attrs[i] == default_attr(spec)) continue;
      attrs += (attrs.empty() ? "" : ", ") + std::string(spec.name) + " = " + attr_text(dims_, n.attrs[i]);
    }
    if (!attrs.empty()) s += " {" + attrs + "}";
    for (size_t i = 0; i < n.out.size(); ++i) s += (i ? ", " : " : ") + type_text(dims_, n.out[i]);
    s += loc(n.loc);
    out_ += pad_ + "  " + s;
    for (size_t i = 0; i < n.regions.size(); ++i) {
      out_ += i ? ", " : " with ";
      Printer(*n.regions[i], out_, depth_ + 1).run();
    }
    out_ += "\n";
  }

  const Graph& g_;
  const DimTable& dims_;
  std::string& out_;
  std::string pad_;
  int depth_;
  int next_ = 0;
  std::map<Value, std::string> names_;
};

}  // namespace

std::string print(const Graph& graph) {
  std::string out;
  Printer(graph, out, 0).run();
  return out + "\n";
}

}  // namespace tern
