// Which results live in a state's own buffer, what is copied when, and the order of it all.
#include <algorithm>

#include "lower/fuse/fuse.h"

namespace tern::lowering {
namespace {

struct Store {
  uint32_t group;
  Value before, result;
};

class States {
 public:
  States(FuseState& s, Grouping& out) : s_(s), out_(out), u_(s) {
    for (const StateUpdate& u : s.graph.updates()) {
      state_[u.state] = s.graph.port(u.state)->value;
      const Value base = s.base_of(u.next);
      if (base != state_[u.state]) overwritten_.insert(state_[u.state]);
    }
  }

  Status run() {
    find_stores();
    TERN_OK(place_stores());
    place_results();
    name_copies();
    order_readers();
    return ok();
  }

 private:
  void find_stores() {
    for (uint32_t g = 0; g < s_.groups.size(); ++g) {
      const Group& group = s_.groups[g];
      if (group.problem.family != Family::store) continue;
      const size_t result = result_operand(group);
      stores_.push_back({g, group.values[0], group.values[result]});
    }
    // The stores that lead from a state to its next value.
    for (const auto& [name, state] : state_) {
      std::vector<Value> chain;
      Value at = s_.base_of(next_of(name));
      for (bool more = true; more;) {
        const auto store =
            std::find_if(stores_.begin(), stores_.end(), [&](const Store& st) { return st.result == at; });
        more = store != stores_.end();
        if (more) chain.push_back(at), at = store->before;
      }
      if (at == state) chain_.insert(chain.begin(), chain.end());
    }
  }
  Value next_of(std::string_view state) const {
    for (const StateUpdate& u : s_.graph.updates()) {
      if (u.state == state) return u.next;
    }
    return {};
  }
  static size_t result_operand(const Group& group) {
    size_t at = group.values.size();
    while (group.problem.operands[--at].access != Access::write) {
    }
    return at;
  }

  // Why the store cannot write over what it starts from; empty: it can.
  std::string obstacle(const Store& store) const {
    const Value home = out_.home(store.before);
    const Origin origin = origin_of(s_.graph, home);
    if (origin == Origin::param || origin == Origin::io) return "it starts from an input or a parameter";
    if (origin == Origin::state && !chain_.contains(store.result)) {
      return "its result is not what the state becomes";
    }
    // A state's own old value can still leave as an output: its copy is made before the first step.
    if (s_.kept.contains(store.before) && origin_of(s_.graph, store.before) == Origin::temp)
      return "the value before it leaves as an output";
    for (const Store& other : stores_) {
      if (other.group != store.group && other.before == store.before)
        return "'" + s_.groups[other.group].label + "' writes over the same value";
    }
    for (const uint32_t r : u_.readers(store.before)) {
      if (r != store.group && u_.depends(r, store.group)) {
        return "'" + s_.groups[r].label + "' reads the value before it after '" + s_.groups[store.group].label +
               "' has written the new one";
      }
    }
    return {};
  }

  Status place_stores() {
    for (const Store& store : stores_) {
      const std::string why = obstacle(store);
      const Value home = out_.home(store.before);
      const Port* port = s_.graph.port_of(home);
      if (!why.empty() && port != nullptr && port->kind == PortKind::state && port->resident) {
        return make_error(Code::unsupported,
                          "state '" + port->name + "' is resident, but '" + s_.groups[store.group].label +
                              "' cannot be done in place: " + why +
                              "; change one of both uses, or set the state not resident",
                          s_.where(store.result.node));
      }
      if (!why.empty()) copy_first(store);
      drop_result(store, why.empty());
    }
    return ok();
  }

  // The result gets memory of its own, filled with what the store starts from.
  void copy_first(const Store& store) {
    const Shape& shape = s_.graph.type(store.before).shape;
    Expr expr;
    const IndexMap dense = dense_map(s_.dims, shape);
    expr.loads.push_back({store.before, dense});
    expr.code.loads.push_back({0, dense});
    expr.code.code.push_back({ScalarExpr::Kind::load, ScalarOp::add, s_.graph.type(store.before).dtype, 0, 0, 0});
    Group copy = region_group(s_, expr, shape, store.result.node);
    add_out(s_, copy, store.result, s_.graph.type(store.result), 0, dense);
    copy.label += " (copy)";
    s_.groups.push_back(std::move(copy));
  }

  void drop_result(const Store& store, bool in_place) {
    Group& group = s_.groups[store.group];
    const size_t at = result_operand(group);
    group.values.erase(group.values.begin() + static_cast<std::ptrdiff_t>(at));
    group.problem.operands.erase(group.problem.operands.begin() + static_cast<std::ptrdiff_t>(at));
    for (ScalarExpr::Load& l : group.problem.prologue.loads)
      l.operand = static_cast<uint16_t>(l.operand - (l.operand > at));
    if (in_place) {
      out_.same_buffer[store.result] = store.before;
      group.problem.operands[0].origin = origin_of(s_.graph, out_.home(store.before));
      writes_over_.push_back({store.group, store.before});
    } else {
      group.values[0] = store.result;
      group.problem.operands[0].origin = Origin::temp;
    }
    made_by_[store.result] = store.group;
  }

  // Other next values are written straight into the state where nobody still needs the old one by then.
  void place_results() {
    for (const auto& [name, state] : state_) {
      const Value next = s_.base_of(next_of(name));
      const auto& writers = u_.writers(next);
      if (next == state || out_.same_buffer.contains(next) || origin_of(s_.graph, next) != Origin::temp ||
          made_by_.contains(next))
        continue;
      if (writers.size() != 1 || std::count_if(state_.begin(), state_.end(), [&](const auto& e) {
                                   return s_.base_of(next_of(e.first)) == next;
                                 }) != 1)
        continue;
      const bool free = std::none_of(u_.readers(state).begin(), u_.readers(state).end(),
                                     [&](uint32_t r) { return r == writers[0] || u_.depends(r, writers[0]); });
      const bool stored_over = std::any_of(stores_.begin(), stores_.end(),
                                           [&](const Store& st) { return st.before == next || st.before == state; });
      if (!free || stored_over) continue;
      out_.same_buffer[next] = state;
      Group& group = s_.groups[writers[0]];
      for (size_t i = 0; i < group.values.size(); ++i) {
        if (group.values[i] == next) group.problem.operands[i].origin = Origin::state;
      }
      writes_over_.push_back({writers[0], state});
      for (const uint32_t r : u_.readers(state)) u_.order(r, writers[0]);
    }
  }

  void name_copies() {
    for (const OutputPort& o : s_.graph.outputs()) {
      const bool temp = origin_of(s_.graph, o.value) == Origin::temp && !out_.same_buffer.contains(o.value);
      if (temp && !out_.outputs.contains(o.value)) {
        out_.outputs[o.value] = o.name;
      } else {
        CopyOut copy{o.value, o.name};
        copy.early = overwritten_.contains(o.value);
        out_.copies.push_back(copy);
      }
    }
    // After the outputs, which may still read from the state's buffer what was there before its next value.
    for (const auto& [name, state] : state_) {
      const Value next = next_of(name);
      if (out_.home(s_.base_of(next)) == state) continue;
      CopyOut copy{next, name, true};
      copy.early = copy.saved = overwritten_.contains(next);
      out_.copies.push_back(copy);
    }
  }

  // Whoever reads what is overwritten comes first.
  void order_readers() {
    for (const auto& [writer, value] : writes_over_) {
      for (uint32_t r = 0; r < s_.groups.size(); ++r) {
        if (r == writer) continue;
        const Group& group = s_.groups[r];
        for (size_t i = 0; i < group.values.size(); ++i) {
          if (group.values[i] == value && group.problem.operands[i].access == Access::read)
            s_.groups[writer].after.push_back(r);
        }
      }
    }
  }

  FuseState& s_;
  Grouping& out_;
  Uses u_;
  std::map<std::string, Value> state_;
  std::set<Value> overwritten_;  // states whose buffer changes in mid-run
  std::vector<Store> stores_;
  std::set<Value> chain_;
  std::vector<std::pair<uint32_t, Value>> writes_over_;  // group, the value whose buffer it changes

 public:
  std::map<Value, uint32_t> made_by_;  // results of stores
};

// What each group waits for.
std::vector<std::vector<uint32_t>> needs(const FuseState& s, const std::map<Value, uint32_t>& stores) {
  std::map<Value, std::vector<uint32_t>> writers;
  const auto count = static_cast<uint32_t>(s.groups.size());
  for (uint32_t g = 0; g < count; ++g) {
    for (size_t i = 0; i < s.groups[g].values.size(); ++i) {
      if (s.groups[g].problem.operands[i].access == Access::write) writers[s.groups[g].values[i]].push_back(g);
    }
  }
  std::vector<std::vector<uint32_t>> out(count);
  for (uint32_t g = 0; g < count; ++g) {
    out[g] = s.groups[g].after;
    for (const Value v : s.waits_for(s.groups[g])) {
      if (const auto store = stores.find(v); store != stores.end()) out[g].push_back(store->second);
      if (const auto w = writers.find(v); w != writers.end())
        out[g].insert(out[g].end(), w->second.begin(), w->second.end());
    }
    for (size_t i = 0; i < s.groups[g].values.size(); ++i) {
      const Value v = s.groups[g].values[i];
      const bool writes = s.groups[g].problem.operands[i].access == Access::write;
      const auto store = stores.find(v);
      if (!writes && store != stores.end() && store->second != g) out[g].push_back(store->second);
      const auto w = writers.find(v);
      if (w == writers.end()) continue;
      // Readers follow all writers of a value; those of a concat are in no order.
      for (const uint32_t other : w->second) {
        if (other != g && (!writes || s.groups[g].over)) out[g].push_back(other);
      }
    }
  }
  return out;
}

// Depth first in the order of the graph, so that what is made is soon read.
Result<std::vector<uint32_t>> sorted(const FuseState& s, const std::map<Value, uint32_t>& stores) {
  const auto count = static_cast<uint32_t>(s.groups.size());
  std::vector<uint32_t> place(s.graph.node_count());
  for (uint32_t i = 0; i < s.order.size(); ++i) place[s.order[i]] = i;
  std::vector<std::pair<uint32_t, uint32_t>> roots;
  for (uint32_t g = 0; g < count; ++g) {
    uint32_t last = 0;
    for (size_t i = 0; i < s.groups[g].values.size(); ++i) {
      if (s.groups[g].problem.operands[i].access != Access::read)
        last = std::max(last, place[s.groups[g].values[i].node]);
    }
    roots.emplace_back(last, g);
  }
  for (const auto& [value, g] : stores) roots[g].first = place[value.node];
  std::sort(roots.begin(), roots.end());
  const auto before = needs(s, stores);
  std::vector<uint32_t> order, stack;
  std::vector<uint8_t> mark(count);
  for (const auto& [at, root] : roots) {
    if (mark[root] == 0) stack.push_back(root);
    while (!stack.empty()) {
      const uint32_t g = stack.back();
      if (mark[g] == 0) {
        mark[g] = 1;
        for (size_t i = before[g].size(); i-- > 0;) {
          const uint32_t w = before[g][i];
          if (mark[w] == 1) {
            return make_error(Code::unsupported,
                              "an update in place must come after '" + s.groups[w].label +
                                  "' and before it; keep one of both uses of the old value",
                              s.groups[g].label);
          }
          if (mark[w] == 0) stack.push_back(w);
        }
        continue;
      }
      stack.pop_back();
      if (mark[g] == 1) order.push_back(g);
      mark[g] = 2;
    }
  }
  return order;
}

// What depends on params only is computed when they change; its sizes must be known by then.
void mark_prepared(Grouping& out, const std::set<Value>& kept) {
  std::map<Value, int> writers;
  for (const Group& g : out.groups) {
    for (size_t i = 0; i < g.values.size(); ++i) writers[g.values[i]] += g.problem.operands[i].access != Access::read;
  }
  std::set<Value> ready;
  const auto known = [](const Shape& shape) {
    return std::all_of(shape.begin(), shape.end(), [](Dim d) { return !d.is_expr(); });
  };
  for (Group& g : out.groups) {
    bool good = known(dims_of(g.problem));  // the places that maps read included
    for (size_t i = 0; i < g.values.size() && good; ++i) {
      const Operand& o = g.problem.operands[i];
      if (o.access == Access::read)
        good = o.origin == Origin::param || ready.contains(g.values[i]);
      else
        good = o.access == Access::write && o.origin == Origin::temp && known(o.type.shape) &&
               writers[g.values[i]] == 1 && !kept.contains(g.values[i]);
    }
    g.prepared = good;
    for (size_t i = 0; i < g.values.size() && g.prepared; ++i) {
      if (g.problem.operands[i].access == Access::write) ready.insert(g.values[i]);
    }
  }
}

}  // namespace

Result<Grouping> finish(FuseState& s) {
  Grouping out;
  States states(s, out);
  TERN_OK(states.run());
  TERN_TRY(const std::vector<uint32_t> order, sorted(s, states.made_by_));
  for (const uint32_t g : order) {
    out.groups.push_back(std::move(s.groups[g]));
    out.groups.back().after.clear();
  }
  for (const uint32_t id : s.order) {
    const Node& node = s.graph.node(id);
    if (const auto symbol = late_symbol(s.dims, node))
      out.late.push_back({*symbol, s.base_of(node.in[0]), label_of(s.graph, id)});
  }
  mark_prepared(out, s.kept);
  return out;
}

}  // namespace tern::lowering
