#include "lower/build.h"

#include <algorithm>
#include <set>

namespace tern::lowering {
namespace {

struct BufferKey {
  Value value;
  std::string_view layout;
  Tile tile;
  auto operator<=>(const BufferKey&) const = default;
};

class Build {
 public:
  Build(const Graph& graph, const Grouping& grouping, const Chosen& chosen, const Caps& caps, const std::vector<Bounds>& ranges)
      : graph_(graph), dims_(*graph.dims), grouping_(grouping), chosen_(chosen), caps_(caps), ranges_(ranges) {
    program_.dims = graph.dims;
    program_.guards = graph.guards;
  }

  Result<Program> run() {
    TERN_OK(ports());
    for (size_t r = 0; r < ranges_.size(); ++r) TERN_OK(range(r));
    collect_block();
    return std::move(program_);
  }

  Value root(Value v) const {
    for (auto it = grouping_.same_buffer.find(v); it != grouping_.same_buffer.end(); it = grouping_.same_buffer.find(v)) v = it->second;
    return v;
  }

  // The buffer that holds a value in a layout; type: as its users see it, for the layouts that care about rows.
  Result<BufferId> buffer(Value value, const Layout& layout, const TensorType& seen) {
    const Value home = root(value);
    const BufferKey key{home, layout.def->name, layout.tile};
    if (const auto it = buffers_.find(key); it != buffers_.end()) return it->second;
    BufferDef def;
    const OpDef* op = graph_.node(home.node).op;
    const Port* port = graph_.port_of(home);
    const auto output = grouping_.outputs.find(home);
    def.origin = op == &kParamOp || op == &kConstantOp ? Origin::param : op == &kStateOp ? Origin::state : op == &kInputOp ? Origin::io : Origin::temp;
    def.name = port != nullptr ? port->name : (graph_.node(home.node).loc.text.empty() ? std::string(op->name) : graph_.node(home.node).loc.text) + "#" + std::to_string(home.node);
    if (output != grouping_.outputs.end() && layout.def == &kDense) {
      def.origin = Origin::io;
      def.name = output->second;
    }
    def.type = layout.def == &kDense ? graph_.type(home) : seen;
    def.layout = layout;
    auto bytes = layout.def->bytes(dims_, def.type, layout.tile);
    if (!bytes) return make_error(Code::internal, "layout " + std::string(layout.def->name) + " refuses '" + def.name + "': " + bytes.why());
    def.bytes = *bytes;
    const auto id = static_cast<BufferId>(program_.buffers.size());
    if (def.origin == Origin::param && port != nullptr) io_of_[port->name].push_back(id);
    if (op == &kConstantOp) program_.constants.push_back({id, std::get<Const>(graph_.node(home.node).attrs[0])});
    program_.buffers.push_back(std::move(def));
    buffers_[key] = id;
    return id;
  }

  KernelId kernel(KernelDef def) {
    if (def.hash == Hash{}) def.hash = Hasher().text(def.name).u64(static_cast<uint64_t>(def.kind)).bytes(def.code).done();
    const auto [it, fresh] = kernels_.emplace(def.hash, static_cast<KernelId>(program_.kernels.size()));
    if (fresh) program_.kernels.push_back(std::move(def));
    return it->second;
  }

  DimTable& dims() { return dims_; }
  Program& program() { return program_; }
  const Caps& caps() const { return caps_; }

 private:
  // Inputs, states and outputs have their buffers whatever reads them.
  Status ports() {
    const Layout dense{&kDense, {}};
    for (const Port& port : graph_.ports()) {
      IoDef io;
      io.name = port.name;
      io.type = graph_.type(port.value);
      io.kind = port.kind == PortKind::input ? IoDef::Kind::input : port.kind == PortKind::state ? IoDef::Kind::state : IoDef::Kind::param;
      if (port.kind != PortKind::param) {
        TERN_TRY(const BufferId id, buffer(port.value, dense, io.type));
        io.buffers = {id};
      }
      program_.io.io.push_back(std::move(io));
    }
    for (const OutputPort& o : graph_.outputs()) {
      IoDef io;
      io.name = o.name;
      io.type = graph_.type(o.value);
      io.kind = IoDef::Kind::output;
      const auto own = grouping_.outputs.find(o.value);
      if (own != grouping_.outputs.end() && own->second == o.name) {
        TERN_TRY(const BufferId id, buffer(o.value, dense, io.type));
        io.buffers = {id};
      } else {
        auto bytes = kDense.bytes(dims_, io.type, {});
        if (!bytes) return make_error(Code::unsupported, "output '" + o.name + "': " + bytes.why());
        io.buffers = {static_cast<BufferId>(program_.buffers.size())};
        program_.buffers.push_back({o.name, Origin::io, io.type, dense, *bytes});
      }
      program_.io.io.push_back(std::move(io));
    }
    return ok();
  }

  Status range(size_t r);
  Status copies(const Bounds& bounds, std::vector<Step>& steps);
  void collect_block();
  uint32_t problem_id(const Pick& pick);

  const Graph& graph_;
  DimTable& dims_;
  const Grouping& grouping_;
  const Chosen& chosen_;
  const Caps& caps_;
  const std::vector<Bounds>& ranges_;
  Program program_;
  std::map<BufferKey, BufferId> buffers_;
  std::map<Hash, KernelId> kernels_;
  std::map<std::string, std::vector<BufferId>> io_of_;  // parameters
};

class Ctx final : public BuildCtx {
 public:
  Ctx(Build& build, const Pick& pick, const Group& group, const Bounds& bounds, uint32_t problem, std::vector<Step>& steps)
      : BuildCtx(Asked{build.caps(), build.dims()}), build_(build), pick_(pick), group_(group), bounds_(bounds), problem_(problem), steps_(steps) {}

  Status prepare() {
    for (size_t i = 0; i < group_.values.size(); ++i) {
      TERN_TRY(const BufferId id, build_.buffer(group_.values[i], pick_.problem.operands[i].layout, group_.problem.operands[i].type));
      ids_.push_back(id);
    }
    return ok();
  }
  Use whole(uint16_t operand) override {
    DimTable& dims = build_.dims();
    const Dim bytes = dims.substitute(build_.program().buffers[ids_[operand]].bytes, bounds_);
    return {{ids_[operand], 0, bytes}, pick_.problem.operands[operand].access};
  }
  Use window(uint16_t operand, Dim byte_offset, Dim bytes) override { return {{ids_[operand], byte_offset, bytes}, pick_.problem.operands[operand].access}; }
  Use scratch(Dim bytes) override {
    BufferDef def;
    def.name = group_.label + " scratch";
    def.origin = Origin::temp;
    def.type = {DType::u8, {bytes}, nullptr};
    def.layout = {&kDense, {}};
    def.bytes = bytes;
    const auto id = static_cast<BufferId>(build_.program().buffers.size());
    build_.program().buffers.push_back(std::move(def));
    return {{id, 0, bytes}, Access::write};
  }
  KernelId kernel(KernelDef def) override {
    if (def.problem == kNone) def.problem = problem_;
    return build_.kernel(std::move(def));
  }
  void step(Step step) override {
    step.problem = problem_;
    step.label = group_.label;
    steps_.push_back(std::move(step));
  }

 private:
  Build& build_;
  const Pick& pick_;
  const Group& group_;
  const Bounds& bounds_;
  uint32_t problem_;
  std::vector<Step>& steps_;
  std::vector<BufferId> ids_;
};

uint32_t Build::problem_id(const Pick& pick) {
  const auto id = static_cast<uint32_t>(program_.problems.size());
  program_.problems.push_back(pick.problem);
  Choice choice;
  choice.problem = id;
  choice.chosen = std::string(pick.candidate->name) + (pick.bid.variant.empty() ? "" : " " + pick.bid.variant);
  choice.numerics = pick.bid.numerics;
  choice.bytes = pick.bid.bytes;
  choice.flop = pick.bid.flop;
  choice.seconds = pick.bid.seconds;
  choice.refusals = pick.refusals;
  program_.choices.push_back(std::move(choice));
  return id;
}

Status Build::range(size_t r) {
  std::vector<Step> steps;
  for (size_t g = 0; g < chosen_.groups.size(); ++g) {
    const Pick& pick = chosen_.picks[r][g];
    Ctx ctx(*this, pick, chosen_.groups[g], ranges_[r], problem_id(pick), steps);
    TERN_OK(ctx.prepare());
    if (Status s = pick.candidate->build(pick.problem, pick.bid, ctx); !s) {
      Error e = s.take_error();
      e.where = chosen_.groups[g].label + (e.where.empty() ? "" : ": " + e.where);
      e.text = std::string(pick.candidate->name) + ": " + e.text;
      return e;
    }
  }
  TERN_OK(copies(ranges_[r], steps));
  const auto list = static_cast<uint32_t>(program_.lists.size());
  program_.lists.push_back(std::move(steps));
  program_.ranges.push_back({ranges_[r], list});
  assign_phases(program_, list);
  for (IoDef& io : program_.io.io) {
    if (io.kind == IoDef::Kind::param) io.buffers = io_of_[io.name];
  }
  return ok();
}

// What leaves under a second name, and states whose next value was computed elsewhere.
Status Build::copies(const Bounds& bounds, std::vector<Step>& steps) {
  const Layout dense{&kDense, {}};
  for (const Grouping::CopyOut& copy : grouping_.copies) {
    TERN_TRY(const BufferId from, buffer(copy.from, dense, graph_.type(copy.from)));
    BufferId to = kNone;
    for (const IoDef& io : program_.io.io) {
      if (io.name == copy.name && (io.kind == IoDef::Kind::state) == copy.state && io.kind != IoDef::Kind::param && io.kind != IoDef::Kind::input) to = io.buffers[0];
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
    if (!d.constant()) all.insert(d);
  };
  for (const std::vector<Step>& list : program_.lists) {
    for (const Step& step : list) {
      if (const auto* launch = std::get_if<Launch>(&step.what)) {
        add(launch->groups);
        for (const Dim d : launch->scalars) add(d);
      }
      for (const Use& use : step.uses) {
        add(use.ref.offset);
        add(use.ref.bytes);
      }
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
