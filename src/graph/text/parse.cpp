// The parser of the text form. It survives any text: nesting is limited, nothing is allocated beyond what the text
// spells out, and every error says line and column. Nodes go through Graph::add, so what is parsed is also inferred and
// checked.
#include <algorithm>
#include <map>

#include "base/platform/within_memory.h"
#include "graph/attrs.h"
#include "graph/build.h"
#include "graph/op.h"
#include "graph/text/scan.h"
#include "graph/text/text.h"

namespace tern {
namespace {

constexpr int kMaxRegionDepth = 32;

class GraphParser {
 public:
  GraphParser(Scanner& in, Graph& graph, int depth) : in_(in), g_(graph), depth_(depth) {}

  // After the word "graph".
  Status body() {
    TERN_OK(in_.expect("{"));
    while (!in_.take("}")) {
      if (in_.at_end()) return in_.error("expected '}', found the end");
      TERN_OK(statement());
    }
    return ok();
  }

 private:
  Status statement() {
    const size_t start = in_.offset();
    if (in_.peek('%')) return definition();
    TERN_TRY(const std::string_view word, in_.word());
    if (word == "symbol") return symbol(start);
    if (word == "guard") return guard();
    if (word == "output" || word == "update") {
      TERN_TRY(const std::string name, in_.string());
      TERN_TRY(const Value v, value());
      return in_.located(start, word == "output" ? g_.output(name, v) : g_.update(name, v));
    }
    return in_.error_at(start, "expected symbol, guard, output, update or a value, found '" + std::string(word) + "'");
  }

  Status symbol(size_t start) {
    if (depth_ > 0) return in_.error_at(start, "symbols stand in the outermost graph");
    Symbol s;
    TERN_TRY(const std::string_view name, in_.word());
    s.name = name;
    TERN_OK(in_.expect("in"));
    TERN_OK(in_.expect("["));
    TERN_TRY(s.min, in_.integer());
    TERN_OK(in_.expect(","));
    TERN_TRY(s.max, in_.integer());
    TERN_OK(in_.expect("]"));
    if (in_.take_word("multiple")) {
      TERN_TRY(s.multiple, in_.integer());
    }
    s.late = in_.take_word("late");
    auto made = g_.dims->symbol(s);
    if (!made) return in_.located(start, made.take_error());
    return ok();
  }

  Status guard() {
    Guard guard;
    TERN_TRY(guard.a, dim("="));
    TERN_OK(in_.expect("=="));
    TERN_TRY(guard.b, dim("\""));
    TERN_TRY(guard.what, in_.string());
    TERN_TRY(guard.loc, loc());
    add_guard(g_.guards, std::move(guard));
    return ok();
  }

  Status definition() {
    const size_t start = in_.offset();
    std::vector<std::string> names;
    do {
      TERN_TRY(std::string name, in_.value_name());
      names.push_back(std::move(name));
    } while (in_.take(","));
    TERN_OK(in_.expect("="));
    const size_t op_start = in_.offset();
    TERN_TRY(const std::string_view word, in_.word());
    if (in_.peek('"')) {
      for (PortKind kind : {PortKind::input, PortKind::param, PortKind::state}) {
        if (word == port_kind_name(kind)) return leaf(kind, names, start);
      }
      return in_.error_at(op_start, "expected input, param or state, found '" + std::string(word) + "'");
    }
    const OpDef* op = find_op(word);
    if (!op) return in_.error_at(op_start, "no op is named '" + std::string(word) + "'");
    return node(*op, names, op_start);
  }

  Status leaf(PortKind kind, const std::vector<std::string>& names, size_t start) {
    TERN_TRY(std::string name, in_.string());
    TERN_OK(in_.expect(":"));
    TERN_TRY(TensorType t, type());
    const bool transient = kind == PortKind::state && in_.take_word("transient");
    TERN_TRY(Loc l, loc());
    auto made = kind == PortKind::input   ? g_.input(name, std::move(t), std::move(l))
                : kind == PortKind::param ? g_.param(name, std::move(t), std::move(l))
                                          : g_.state(name, std::move(t), std::move(l));
    if (!made) return in_.located(start, made.take_error());
    if (transient) TERN_OK(g_.set_resident(name, false));
    return define(names, {*made}, start);
  }

  Status node(const OpDef& op, const std::vector<std::string>& names, size_t start) {
    TERN_OK(in_.expect("("));
    std::vector<Value> operands;
    while (!in_.take(")")) {
      if (!operands.empty()) TERN_OK(in_.expect(","));
      TERN_TRY(const Value v, value());
      operands.push_back(v);
    }
    TERN_TRY(std::vector<Attr> attrs, attributes(op));
    TERN_OK(in_.expect(":"));
    std::vector<TensorType> types;
    do {
      TERN_TRY(TensorType t, type());
      types.push_back(std::move(t));
    } while (in_.take(","));
    TERN_TRY(Loc l, loc());
    std::vector<std::unique_ptr<Graph>> regions;
    if (in_.take_word("with")) {
      do {
        TERN_OK(in_.expect("graph"));
        if (depth_ >= kMaxRegionDepth) return in_.error("regions are nested too deeply");
        auto region = std::make_unique<Graph>(g_.dims);
        TERN_OK(GraphParser(in_, *region, depth_ + 1).body());
        regions.push_back(std::move(region));
      } while (in_.take(","));
    }
    auto made = g_.add(op, std::move(operands), std::move(attrs), std::move(l), std::move(regions));
    if (!made) return in_.located(start, made.take_error());
    for (size_t i = 0; i < std::min(types.size(), made->size()); ++i) {
      if (same_type(*g_.dims, types[i], g_.type((*made)[i]))) continue;
      return in_.error_at(start, std::string(op.name) + ": result " + std::to_string(i) + " is " +
                                     type_text(*g_.dims, g_.type((*made)[i])) + ", not " +
                                     type_text(*g_.dims, types[i]));
    }
    if (types.size() != made->size()) {
      return in_.error_at(start, std::string(op.name) + " has " + std::to_string(made->size()) + " results, not " +
                                     std::to_string(types.size()));
    }
    return define(names, *made, start);
  }

  Status define(const std::vector<std::string>& names, const std::vector<Value>& values, size_t start) {
    if (names.size() != values.size()) {
      return in_.error_at(start,
                          std::to_string(names.size()) + " names for " + std::to_string(values.size()) + " results");
    }
    for (size_t i = 0; i < names.size(); ++i) {
      if (!values_.emplace(names[i], values[i]).second)
        return in_.error_at(start, "%" + names[i] + " is defined twice");
    }
    return ok();
  }

  Result<Value> value() {
    const size_t start = in_.offset();
    TERN_TRY(const std::string name, in_.value_name());
    auto it = values_.find(name);
    if (it == values_.end()) return in_.error_at(start, "%" + name + " is not defined");
    return it->second;
  }

  Result<Loc> loc() {
    if (!in_.take_word("loc")) return Loc{};
    TERN_TRY(std::string s, in_.string());
    return Loc{std::move(s)};
  }

  Result<Dim> dim(std::string_view ends) {
    const size_t start = in_.offset();
    TERN_TRY(const std::string_view raw, in_.dim_text(ends));
    auto d = g_.dims->parse(raw);
    if (!d) return in_.error_at(start, d.error().text);
    return *d;
  }

  Result<Shape> shape() {
    TERN_OK(in_.expect("["));
    Shape s;
    while (!in_.take("]")) {
      if (!s.empty()) TERN_OK(in_.expect(","));
      TERN_TRY(const Dim d, dim(",]"));
      s.push_back(d);
    }
    return s;
  }

  Result<DType> dtype() {
    const size_t start = in_.offset();
    TERN_TRY(const std::string_view name, in_.word());
    const auto t = dtype_from_name(name);
    if (!t) return in_.error_at(start, "no element type is named '" + std::string(name) + "'");
    return *t;
  }

  Result<TensorType> type() {
    const size_t start = in_.offset();
    TensorType t;
    const bool format = in_.take_word("format");
    TERN_TRY(const std::string_view name, in_.word());
    if (const auto plain = dtype_from_name(name); plain && !format) {
      t.dtype = *plain;
    } else {
      t.format = format_by_name(name);
      if (!t.format) return in_.error_at(start, "no element type or format is named '" + std::string(name) + "'");
      if (in_.take_word("as")) {
        TERN_TRY(t.dtype, dtype());
      }
    }
    TERN_TRY(t.shape, shape());
    return t;
  }

  Result<std::vector<Attr>> attributes(const OpDef& op) {
    std::vector<Attr> attrs(op.attrs.size());
    std::vector<bool> given(op.attrs.size(), false);
    const size_t start = in_.offset();
    if (in_.take("{")) {
      while (!in_.take("}")) {
        if (std::find(given.begin(), given.end(), true) != given.end()) TERN_OK(in_.expect(","));
        const size_t name_start = in_.offset();
        TERN_TRY(const std::string_view name, in_.word());
        size_t i = 0;
        while (i < op.attrs.size() && op.attrs[i].name != name) ++i;
        if (i == op.attrs.size() || given[i]) {
          return in_.error_at(name_start, std::string(op.name) +
                                              (i < op.attrs.size() ? ": twice attribute " : " has no attribute ") +
                                              std::string(name));
        }
        given[i] = true;
        TERN_OK(in_.expect("="));
        TERN_TRY(attrs[i], attribute(op.attrs[i].kind));
      }
    }
    for (size_t i = 0; i < given.size(); ++i) {
      if (given[i]) continue;
      if (!op.attrs[i].optional)
        return in_.error_at(start,
                            std::string(op.name) + ": attribute " + std::string(op.attrs[i].name) + " is missing");
      attrs[i] = default_attr(op.attrs[i]);
    }
    return attrs;
  }

  Result<Attr> attribute(AttrKind kind) {
    switch (kind) {
      case AttrKind::boolean: {
        if (in_.take_word("true")) return Attr(true);
        if (in_.take_word("false")) return Attr(false);
        return in_.error("expected true or false");
      }
      case AttrKind::integer: {
        TERN_TRY(const int64_t v, in_.integer());
        return Attr(v);
      }
      case AttrKind::real: {
        TERN_TRY(const double v, in_.real());
        return Attr(v);
      }
      case AttrKind::text: {
        TERN_TRY(std::string v, in_.string());
        return Attr(std::move(v));
      }
      case AttrKind::dtype: {
        TERN_TRY(const DType v, dtype());
        return Attr(v);
      }
      case AttrKind::ints: {
        TERN_TRY(std::vector<int64_t> v, in_.integers());
        return Attr(std::move(v));
      }
      case AttrKind::dim: {
        TERN_TRY(const Dim v, dim(",}"));
        return Attr(v);
      }
      case AttrKind::shape: {
        TERN_TRY(Shape v, shape());
        return Attr(std::move(v));
      }
      case AttrKind::constant: {
        TERN_TRY(Const v, constant());
        return Attr(std::move(v));
      }
    }
    return in_.error("an attribute kind without a spelling");
  }

  Result<Const> constant() {
    const size_t start = in_.offset();
    Const c;
    TERN_TRY(c.dtype, dtype());
    TERN_TRY(c.shape, in_.integers());
    if (in_.take_word("none")) return c;
    auto bytes = dense_bytes(c.dtype, nullptr, c.shape);
    if (!bytes) return in_.located(start, bytes.take_error());
    std::vector<std::byte> data;
    if (in_.take_word("hex")) {
      TERN_TRY(data, in_.hex());
    } else {
      TERN_OK(in_.expect("{"));
      bool first = true;
      while (!in_.take("}")) {
        if (!first) TERN_OK(in_.expect(","));
        first = false;
        TERN_OK(in_.element(c.dtype, data));
      }
    }
    if (data.size() != *bytes) {
      return in_.error_at(start, "the constant has " + std::to_string(data.size()) + " bytes, its type wants " +
                                     std::to_string(*bytes));
    }
    c.data = std::make_shared<const std::vector<std::byte>>(std::move(data));
    return c;
  }

  Scanner& in_;
  Graph& g_;
  int depth_;
  std::map<std::string, Value, std::less<>> values_;
};

}  // namespace

Result<Graph> parse_graph(std::string_view text) try {
  Scanner in(text);
  Graph g;
  TERN_OK(in.expect("graph"));
  TERN_OK(GraphParser(in, g, 0).body());
  if (!in.at_end()) return in.error("expected the end after the graph");
  TERN_OK(g.verify());
  return g;
} catch (const std::bad_alloc&) {
  return memory_ended();
}

}  // namespace tern
