#include <algorithm>
#include <memory>
#include <optional>
#include <set>

#include "core/guard.h"
#include "graph/sizes/late.h"
#include "graph/text/text.h"
#include "ops/common/numbers.h"
#include "ops/reference.h"

namespace tern {
namespace {

std::string extents_text(const Extents& shape) {
  std::string s = "[";
  for (size_t i = 0; i < shape.size(); ++i) s += (i ? ", " : "") + std::to_string(shape[i]);
  return s + "]";
}

const Extents& leaf_shape(const RefLeaf& leaf) {
  const auto* t = std::get_if<RefTensor>(&leaf);
  return t ? t->shape : std::get<TensorView>(leaf).shape;
}

Result<Extents> concrete(const DimTable& dims, const Shape& shape, std::span<const int64_t> symbols) {
  Extents out;
  for (Dim d : shape) {
    int64_t n = 0;
    if (auto c = d.constant())
      n = *c;
    else {
      TERN_TRY(n, dims.eval(d, symbols));
    }
    if (n < 0) return make_error(Code::invalid, "the extent " + dims.text(d) + " is " + std::to_string(n));
    out.push_back(n);
  }
  return out;
}

// A value while it is alive.
struct Slot {
  std::optional<RefTensor> numbers;
  std::optional<TensorView> stored;
  size_t readers = 0;
};

class Evaluation {
 public:
  Evaluation(const Graph& g, const std::map<std::string, RefLeaf>& leaves, std::span<const int64_t> symbols,
             const RefOptions& options)
      : g_(g), leaves_(leaves), symbols_(symbols.begin(), symbols.end()), options_(options), order_(g.order()) {}

  Result<RefResults> run() {
    if (symbols_.size() < g_.dims->symbols().size())
      return make_error(Code::invalid, std::to_string(g_.dims->symbols().size()) + " symbols want values, got " +
                                           std::to_string(symbols_.size()));
    TERN_OK(guards(std::nullopt));
    TERN_OK(names());
    for (const Port& p : g_.ports()) ports_[p.value.node] = &p;
    count_readers();
    for (uint32_t id : order_) {
      if (ports_.contains(id)) continue;  // loaded when somebody reads it
      if (auto s = node(id); !s) {
        Error e = s.take_error();
        if (e.where.empty()) e.where = node_text(g_, id);
        return e;
      }
    }
    return results();
  }

 private:
  // Those whose late sizes are known, the given one among them; nullopt: those without any.
  Status guards(std::optional<uint32_t> given) const {
    const auto source = [&](uint32_t symbol) -> std::string {
      for (const Port& p : g_.ports()) {
        const Shape& shape = g_.type(p.value).shape;
        for (size_t axis = 0; axis < shape.size(); ++axis) {
          if (g_.dims->as_symbol(shape[axis]) == symbol)
            return std::string(g_.at(p.value).op->name) + " '" + p.name + "' axis " + std::to_string(axis);
        }
      }
      return g_.dims->symbols()[symbol].late ? "a node" : "the caller";
    };
    for (const Guard& guard : g_.guards) {
      if (guard_is_due(*g_.dims, guard, known_, given)) TERN_OK(check_guard(*g_.dims, guard, symbols_, source));
    }
    return ok();
  }

  Status names() const {
    for (const auto& [name, leaf] : leaves_) {
      if (!g_.port(name)) return make_error(Code::not_found, "the graph has no leaf '" + name + "'");
    }
    return ok();
  }

  void count_readers() {
    for (uint32_t id : order_) {
      for (Value v : g_.node(id).in) ++slots_[v].readers;
    }
    for (const OutputPort& o : g_.outputs()) ++slots_[o.value].readers;
    for (const StateUpdate& u : g_.updates()) ++slots_[u.next].readers;
  }

  Status load(const Port& port) {
    Slot& slot = slots_[port.value];
    if (slot.numbers || slot.stored) return ok();
    const auto given = leaves_.find(port.name);
    const TensorType& type = g_.type(port.value);
    RefLeaf leaf;
    if (given != leaves_.end()) {
      leaf = given->second;
    } else if (options_.leaf) {
      TERN_TRY(leaf, options_.leaf(port));
    } else {
      return make_error(Code::not_found, "'" + port.name + "' has no value");
    }
    TERN_TRY(const Extents shape, concrete(*g_.dims, type.shape, symbols_));
    if (leaf_shape(leaf) != shape)
      return make_error(Code::invalid,
                        "'" + port.name + "' is " + extents_text(leaf_shape(leaf)) + ", wants " + extents_text(shape));
    if (auto* t = std::get_if<RefTensor>(&leaf)) return load_numbers(port, std::move(*t));
    auto& view = std::get<TensorView>(leaf);
    if (view.dtype != type.dtype || view.format != type.format)
      return make_error(Code::invalid, "'" + port.name + "' comes in another type than " + type_text(*g_.dims, type));
    slot.stored = std::move(view);
    return ok();
  }

  Status load_numbers(const Port& port, RefTensor t) {
    const TensorType& type = g_.type(port.value);
    const RefTensor want = ref_zeros(type.dtype, t.shape);
    if (t.dtype != type.dtype || t.f.size() != want.f.size() || t.i.size() != want.i.size())
      return make_error(Code::invalid, "'" + port.name + "' comes in another type than " + type_text(*g_.dims, type));
    slots_[port.value].numbers = std::move(t);
    return ok();
  }

  // The value as numbers, decoded now if it lies stored.
  Result<const RefTensor*> numbers(Value v) {
    Slot& slot = slots_[v];
    if (!slot.numbers) {
      TERN_TRY(slot.numbers, ref_from(*slot.stored));
    }
    return &*slot.numbers;
  }

  Status node(uint32_t id) {
    const Node& n = g_.node(id);
    RefTensors r;
    r.symbols.assign(symbols_.begin(), symbols_.end());
    r.dims = g_.dims.get();
    for (Value v : n.in) {
      if (const auto p = ports_.find(v.node); p != ports_.end()) TERN_OK(load(*p->second));
    }
    r.stored.assign(n.in.size(), nullptr);
    for (size_t i = 0; i < n.in.size(); ++i) {
      const Slot& slot = slots_[n.in[i]];
      if (n.op->reads_stored && slot.stored && !slot.numbers && is_float(slot.stored->dtype)) {
        r.in.push_back(nullptr);
        r.stored[i] = &*slot.stored;
        continue;
      }
      TERN_TRY(const RefTensor* t, numbers(n.in[i]));
      r.in.push_back(t);
    }
    TERN_OK(compute(n, r));
    if (const auto symbol = late_symbol(*g_.dims, n)) {
      symbols_[*symbol] = r.in[0]->i[0];
      known_.insert(*symbol);
      TERN_OK(check_symbol(*g_.dims, *symbol, symbols_[*symbol], "node " + std::to_string(id)));
      TERN_OK(guards(symbol));
    }
    for (size_t i = 0; i < n.out.size(); ++i) {
      const Value v{id, static_cast<uint16_t>(i)};
      if (options_.made) TERN_OK(options_.made(v, r.out[i]));
      if (slots_[v].readers) slots_[v].numbers = std::move(r.out[i]);
    }
    for (Value v : n.in) release(v);
    return ok();
  }

  Status compute(const Node& n, RefTensors& r) const {
    if (n.op == &kConstantOp) {
      TERN_TRY(RefTensor t, ref_from(attr<Const>(n, 0)));
      r.out.push_back(std::move(t));
      return ok();
    }
    if (!n.op->reference)
      return make_error(Code::unsupported, std::string(n.op->name) + " has no reference evaluation");
    for (const TensorType& type : n.out) {
      TERN_TRY(Extents shape, concrete(*g_.dims, type.shape, symbols_));
      r.out.push_back(ref_zeros(type.dtype, std::move(shape)));
    }
    return n.op->reference(n, r);
  }

  void release(Value v) {
    Slot& slot = slots_[v];
    if (--slot.readers) return;
    const auto port = ports_.find(v.node);
    const bool lent = port != ports_.end() && !leaves_.contains(port->second->name) && (slot.stored || slot.numbers);
    slot.numbers.reset();
    slot.stored.reset();
    if (lent && options_.done) options_.done(*port->second);
  }

  Status result(std::map<std::string, RefTensor>& into, const std::string& name, Value v) {
    if (const auto p = ports_.find(v.node); p != ports_.end()) TERN_OK(load(*p->second));
    TERN_TRY(const RefTensor* t, numbers(v));
    into.emplace(name, *t);
    release(v);
    return ok();
  }

  Result<RefResults> results() {
    RefResults out;
    for (const OutputPort& o : g_.outputs()) TERN_OK(result(out.outputs, o.name, o.value));
    for (const StateUpdate& u : g_.updates()) TERN_OK(result(out.states, u.state, u.next));
    return out;
  }

  const Graph& g_;
  const std::map<std::string, RefLeaf>& leaves_;
  std::vector<int64_t> symbols_;
  std::set<uint32_t> known_;  // late symbols that have their value
  const RefOptions& options_;
  std::vector<uint32_t> order_;
  std::map<uint32_t, const Port*> ports_;
  std::map<Value, Slot> slots_;
};

}  // namespace

Result<RefResults> evaluate(const Graph& graph, const std::map<std::string, RefLeaf>& leaves,
                            std::span<const int64_t> symbols, const RefOptions& options) {
  return Evaluation(graph, leaves, symbols, options).run();
}

Result<std::vector<int64_t>> bind_symbols(const Graph& graph, const std::map<std::string, RefLeaf>& leaves,
                                          const std::map<std::string, int64_t>& given) {
  const DimTable& dims = *graph.dims;
  std::vector<std::optional<int64_t>> bound(dims.symbols().size());
  std::vector<std::string> by(bound.size());
  const auto bind = [&](uint32_t symbol, int64_t n, const std::string& who) -> Status {
    const Symbol& s = dims.symbols()[symbol];
    if (bound[symbol] && *bound[symbol] != n)
      return make_error(Code::invalid, s.name + " is " + std::to_string(*bound[symbol]) + " by " + by[symbol] +
                                           " and " + std::to_string(n) + " by " + who);
    if (s.late) return make_error(Code::invalid, s.name + " is known in mid-run only; " + who + " cannot give it");
    TERN_OK(check_symbol(dims, symbol, n, who));
    bound[symbol] = n;
    by[symbol] = who;
    return ok();
  };
  for (const auto& [name, n] : given) {
    const auto symbol = dims.find_symbol(name);
    if (!symbol) return make_error(Code::not_found, "the graph has no symbol '" + name + "'");
    TERN_OK(bind(*symbol, n, "the caller"));
  }
  for (const Port& port : graph.ports()) {
    const auto leaf = leaves.find(port.name);
    if (leaf == leaves.end()) continue;
    const Shape& shape = graph.type(port.value).shape;
    const Extents& have = leaf_shape(leaf->second);
    if (have.size() != shape.size())
      return make_error(Code::invalid, "'" + port.name + "' has rank " + std::to_string(have.size()) + ", wants " +
                                           std::to_string(shape.size()));
    for (size_t a = 0; a < shape.size(); ++a) {
      if (auto symbol = dims.as_symbol(shape[a]))
        TERN_OK(bind(*symbol, have[a], "axis " + std::to_string(a) + " of '" + port.name + "'"));
    }
  }
  std::vector<int64_t> out;
  for (size_t i = 0; i < bound.size(); ++i) {
    if (!bound[i] && dims.symbols()[i].late) bound[i] = dims.symbols()[i].min;
    if (!bound[i]) return make_error(Code::invalid, "nothing binds the symbol " + dims.symbols()[i].name);
    out.push_back(*bound[i]);
  }
  return out;
}

}  // namespace tern
