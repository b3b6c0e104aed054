#include "lower/memory/build.h"

#include <algorithm>
#include <set>

#include "lower/memory/recipe.h"

namespace tern::lowering {
namespace {

struct BufferKey {
  Value value;
  std::string_view layout;
  Tile tile;
  Dim columns;  // of the rows that the layout is made of; dense has none
  auto operator<=>(const BufferKey&) const = default;
};

class Build {
 public:
  Build(const Graph& graph, const Grouping& grouping, const Chosen& chosen, const Caps& caps,
        const std::vector<Bounds>& ranges)
      : graph_(graph),
        dims_(*graph.dims),
        grouping_(grouping),
        chosen_(chosen),
        caps_(caps),
        ranges_(ranges),
        recipes_(chosen.picks.size()) {
    program_.dims = graph.dims;
    program_.guards = graph.guards;
    for (const Group& g : chosen.groups) {
      for (size_t i = 0; i < g.values.size(); ++i) {
        if (g.prepared && g.problem.operands[i].access == Access::write) prepared_.insert(g.values[i]);
      }
    }
    problem_of_.assign(chosen.picks.size(), kNone);
  }

  Result<Program> run() {
    TERN_OK(ports());
    for (size_t r = 0; r < ranges_.size(); ++r) TERN_OK(range(r));
    TERN_OK(prepare());
    for (IoDef& io : program_.io.io) {
      if (io.kind == IoDef::Kind::param) io.buffers = io_of_[io.name];
    }
    program_.kernels = kernels_.take();
    collect_block();
    return std::move(program_);
  }

 private:
  Status ports();
  Result<BufferId> buffer(Value value, const Layout& layout, const TensorType& seen);
  BufferId add_buffer(std::string name, Origin origin, TensorType type, Layout layout, Dim bytes);
  Status group_steps(size_t g, size_t r, std::vector<Step>& steps);
  Result<const Recipe*> recipe(uint32_t pick, const std::string& label);
  Status range(size_t r);
  Status prepare();
  Status copies(const Bounds& bounds, bool early, std::vector<Step>& steps);
  Status binds(size_t made, std::vector<Step>& steps);
  BufferId target(const CopyOut& copy) const;
  void collect_block();

  const Graph& graph_;
  DimTable& dims_;
  const Grouping& grouping_;
  const Chosen& chosen_;
  const Caps& caps_;
  const std::vector<Bounds>& ranges_;
  Program program_;
  KernelTable kernels_;
  std::vector<std::optional<Recipe>> recipes_;  // of each pick
  std::vector<uint32_t> problem_of_;            // the same
  std::map<BufferKey, BufferId> buffers_;
  std::map<std::string, std::vector<BufferId>> io_of_;  // parameters
  std::map<std::string, BufferId> waiting_;             // old values of states that become other states
  std::set<Value> prepared_;
};

BufferId Build::add_buffer(std::string name, Origin origin, TensorType type, Layout layout, Dim bytes) {
  program_.buffers.push_back({std::move(name), origin, std::move(type), layout, bytes});
  return static_cast<BufferId>(program_.buffers.size() - 1);
}

// The buffer that holds a value in a layout; seen: the type as its users see it, for layouts that care about rows.
Result<BufferId> Build::buffer(Value value, const Layout& layout, const TensorType& seen) {
  const bool dense = layout.def == &kDense;
  const Value home = dense ? grouping_.home(value) : value;
  const Dim columns = dense || seen.shape.empty() ? Dim(0) : seen.shape.back();
  const BufferKey key{home, layout.def->name, layout.tile, columns};
  if (const auto it = buffers_.find(key); it != buffers_.end()) return it->second;
  const Node& node = graph_.node(home.node);
  const Port* port = graph_.port_of(home);
  std::string name = port != nullptr ? port->name : label_of(graph_, home.node) + "#" + std::to_string(home.node);
  Origin origin = origin_of(graph_, home);
  if (!dense && origin != Origin::param) origin = Origin::temp;  // another form of an input is made anew in every run
  if (prepared_.contains(home)) origin = Origin::state;          // stays from one run to the next
  const auto output = grouping_.outputs.find(home);
  if (output != grouping_.outputs.end() && dense) origin = Origin::io, name = output->second;
  const TensorType type = dense ? graph_.type(home) : seen;
  auto bytes = layout.def->bytes(dims_, type, layout.tile);
  if (!bytes)
    return make_error(Code::unsupported,
                      "layout " + std::string(layout.def->name) + " refuses '" + name + "': " + bytes.why(),
                      label_of(graph_, home.node));
  const BufferId id = add_buffer(std::move(name), origin, type, layout, *bytes);
  if (origin == Origin::param && port != nullptr) io_of_[port->name].push_back(id);
  if (node.op == &kConstantOp) program_.constants.push_back({id, std::get<Const>(node.attrs[0])});
  buffers_[key] = id;
  return id;
}

// Inputs, states and outputs have their buffers whatever reads them.
Status Build::ports() {
  const Layout dense{&kDense, {}};
  constexpr IoDef::Kind kKinds[] = {IoDef::Kind::input, IoDef::Kind::param,
                                    IoDef::Kind::state};  // in the order of PortKind
  for (const Port& port : graph_.ports()) {
    IoDef io{port.name, kKinds[static_cast<size_t>(port.kind)], graph_.type(port.value), {}, false};
    if (port.kind != PortKind::param) {
      TERN_TRY(const BufferId id, buffer(port.value, dense, io.type));
      io.buffers = {id};
    }
    program_.io.io.push_back(std::move(io));
  }
  for (const OutputPort& o : graph_.outputs()) {
    IoDef io{o.name, IoDef::Kind::output, graph_.type(o.value), {}, false};
    const auto own = grouping_.outputs.find(o.value);
    if (own != grouping_.outputs.end() && own->second == o.name) {
      TERN_TRY(const BufferId id, buffer(o.value, dense, io.type));
      io.buffers = {id};
    } else {
      auto bytes = kDense.bytes(dims_, io.type, {});
      if (!bytes) return make_error(Code::unsupported, "output '" + o.name + "': " + bytes.why());
      io.buffers = {add_buffer(o.name, Origin::io, io.type, dense, *bytes)};
    }
    program_.io.io.push_back(std::move(io));
  }
  return ok();
}

Result<const Recipe*> Build::recipe(uint32_t index, const std::string& label) {
  if (recipes_[index]) return &*recipes_[index];
  const Pick& pick = chosen_.picks[index];
  problem_of_[index] = static_cast<uint32_t>(program_.problems.size());
  auto made = make_recipe(pick, problem_of_[index], Asked{caps_, dims_}, kernels_);
  if (!made) {
    Error e = made.take_error();
    e.where = label + (e.where.empty() ? "" : ": " + e.where);
    return e;
  }
  recipes_[index] = std::move(*made);
  program_.problems.push_back(pick.problem);
  program_.choices.push_back({problem_of_[index], std::string(pick.candidate->name), pick.bid.variant,
                              pick.bid.numerics, pick.bid.bytes, pick.bid.flop, pick.bid.seconds, pick.refusals});
  return &*recipes_[index];
}

Status Build::group_steps(size_t g, size_t r, std::vector<Step>& steps) {
  const Group& group = chosen_.groups[g];
  const uint32_t index = chosen_.which[r][g];
  const Pick& pick = chosen_.picks[index];
  TERN_TRY(const Recipe* const recipe_of, recipe(index, group.label));
  std::vector<BufferId> ids;
  for (size_t i = 0; i < group.values.size(); ++i) {
    TERN_TRY(const BufferId id,
             buffer(group.values[i], pick.problem.operands[i].layout, group.problem.operands[i].type));
    ids.push_back(id);
  }
  for (const Dim bytes : recipe_of->scratch) {
    ids.push_back(
        add_buffer(group.label + " scratch", Origin::temp, {DType::u8, {bytes}, nullptr}, {&kDense, {}}, bytes));
  }
  for (const Step& from : recipe_of->steps) {
    Step step = from;
    for (Use& use : step.uses) use.ref.id = ids[use.ref.id];
    step.label = group.label;
    step.on = group.device;
    steps.push_back(std::move(step));
  }
  return ok();
}

Status Build::range(size_t r) {
  std::vector<Step> steps;
  TERN_OK(copies(ranges_[r], true, steps));
  TERN_OK(binds(0, steps));
  for (size_t g = 0; g < chosen_.groups.size(); ++g) {
    if (!chosen_.groups[g].prepared) TERN_OK(group_steps(g, r, steps));
    TERN_OK(binds(g + 1, steps));
  }
  TERN_OK(copies(ranges_[r], false, steps));
  const auto list = static_cast<uint32_t>(program_.lists.size());
  program_.lists.push_back(std::move(steps));
  program_.ranges.push_back({ranges_[r], list});
  assign_phases(program_, list);
  return ok();
}

// The late sizes that are known once the first `made` groups have run, and not before.
Status Build::binds(size_t made, std::vector<Step>& steps) {
  for (const LateBind& late : grouping_.late) {
    const Value home = grouping_.home(late.from);
    size_t last = 0;
    for (size_t g = 0; g < chosen_.groups.size(); ++g) {
      const Group& group = chosen_.groups[g];
      for (size_t i = 0; i < group.values.size() && !group.prepared; ++i) {
        const Access access = group.problem.operands[i].access;
        if (access != Access::read && grouping_.home(group.values[i]) == home) last = g + 1;
      }
    }
    if (last != made) continue;
    TERN_TRY(const BufferId from, buffer(late.from, {&kDense, {}}, graph_.type(late.from)));
    Step step;
    step.what = Bind{late.symbol};
    step.uses = {{{from, 0, program_.buffers[from].bytes}, Access::read}};
    step.label = late.label;
    steps.push_back(std::move(step));
  }
  return ok();
}

// What depends on params only; its sizes are constants, so any range's choice serves.
Status Build::prepare() {
  std::vector<Step> steps;
  for (size_t g = 0; g < chosen_.groups.size(); ++g) {
    if (chosen_.groups[g].prepared) TERN_OK(group_steps(g, ranges_.size() - 1, steps));
  }
  if (steps.empty()) return ok();
  program_.prepare_list = static_cast<uint32_t>(program_.lists.size());
  program_.lists.push_back(std::move(steps));
  assign_phases(program_, program_.prepare_list);
  return ok();
}

BufferId Build::target(const CopyOut& copy) const {
  const IoDef::Kind kind = copy.state ? IoDef::Kind::state : IoDef::Kind::output;
  for (const IoDef& io : program_.io.io) {
    if (io.name == copy.name && io.kind == kind) return io.buffers[0];
  }
  return kNone;
}

// What leaves under a second name, and states whose next value lies elsewhere.
Status Build::copies(const Bounds& bounds, bool early, std::vector<Step>& steps) {
  const Layout dense{&kDense, {}};
  for (const CopyOut& copy : grouping_.copies) {
    if (early && !copy.early) continue;
    if (!early && copy.early && !copy.saved) continue;
    TERN_TRY(BufferId from, buffer(copy.from, dense, graph_.type(copy.from)));
    BufferId to = target(copy);
    if (copy.saved) {
      auto [it, fresh] = waiting_.try_emplace(copy.name, kNone);
      if (fresh)
        it->second = add_buffer(copy.name + " (next)", Origin::temp, graph_.type(copy.from), dense,
                                program_.buffers[from].bytes);
      (early ? to : from) = it->second;
    }
    const Dim bytes = dims_.substitute(program_.buffers[to].bytes, bounds);
    Step step;
    step.what = Copy{};
    step.uses = {{{from, 0, bytes}, Access::read}, {{to, 0, bytes}, Access::write}};
    step.label = copy.name;
    steps.push_back(std::move(step));
  }
  return ok();
}

void Build::collect_block() {
  std::set<Dim> all;
  const auto add = [&](Dim d) {
    if (d.is_expr()) all.insert(d);
  };
  for (const std::vector<Step>& list : program_.lists) {
    for (const Step& step : list) {
      if (const auto* launch = std::get_if<Launch>(&step.what)) {
        add(launch->groups);
        for (const Dim d : launch->scalars) add(d);
      }
      if (const auto* call = std::get_if<Call>(&step.what)) {
        for (const Dim d : call->scalars) add(d);
      }
      for (const Use& use : step.uses) add(use.ref.offset), add(use.ref.bytes);
    }
  }
  program_.block.assign(all.begin(), all.end());
}

}  // namespace

Result<Program> build_program(const Graph& graph, const Grouping& grouping, const Chosen& chosen, const Caps& caps,
                              const std::vector<Bounds>& ranges) {
  return Build(graph, grouping, chosen, caps, ranges).run();
}

}  // namespace tern::lowering
