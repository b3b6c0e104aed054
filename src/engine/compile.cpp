#include "engine/compile.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <set>

#include "base/cache/disk_cache.h"
#include "base/cpu.h"
#include "base/platform/within_memory.h"
#include "engine/code/emit_kernels.h"
#include "engine/executable.h"
#include "graph/op.h"
#include "kernels/kernels.h"
#include "lower/lower.h"
#include "passes/pass.h"

namespace tern {
namespace {

using Clock = std::chrono::steady_clock;
double since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

Status check_ties(const Graph& graph, const std::vector<std::pair<std::string, std::string>>& ties) {
  std::set<std::string_view> outputs, inputs;
  for (const auto& [output, input] : ties) {
    const auto refuse = [&](const std::string& why) { return make_error(Code::invalid, "tie: " + why); };
    const Port* port = graph.port(input);
    if (port == nullptr || port->kind != PortKind::input) return refuse("the graph has no input '" + input + "'");
    const auto named = [&](const OutputPort& o) { return o.name == output; };
    if (std::none_of(graph.outputs().begin(), graph.outputs().end(), named))
      return refuse("the graph has no output '" + output + "'");
    if (!inputs.insert(input).second) return refuse("the input '" + input + "' is tied twice");
    if (!outputs.insert(output).second) return refuse("the output '" + output + "' is tied twice");
  }
  return ok();
}

// {output, input} pairs become states: a copy of the graph in which the input is a state of the output's name.
Result<Graph> tie(Graph graph, const std::vector<std::pair<std::string, std::string>>& ties) {
  if (ties.empty()) return graph;
  TERN_OK(check_ties(graph, ties));
  Graph out(graph.dims);
  out.guards = graph.guards;
  std::map<Value, Value> moved;
  const auto tied_input = [&](std::string_view name) -> const std::string* {
    for (const auto& [output, input] : ties) {
      if (input == name) return &output;
    }
    return nullptr;
  };
  for (const Port& port : graph.ports()) {
    const TensorType& type = graph.type(port.value);
    const std::string* state = port.kind == PortKind::input ? tied_input(port.name) : nullptr;
    const Loc& loc = graph.at(port.value).loc;
    TERN_TRY(const Value v, state != nullptr               ? out.state(*state, type, loc)
                            : port.kind == PortKind::input ? out.input(port.name, type, loc)
                            : port.kind == PortKind::param ? out.param(port.name, type, loc)
                                                           : out.state(port.name, type, loc));
    moved[port.value] = v;
  }
  for (const uint32_t id : graph.order()) {
    const Node& node = graph.node(id);
    if (moved.contains({id, 0})) continue;
    std::vector<Value> in;
    for (const Value v : node.in) in.push_back(moved.at(v));
    if (!node.regions.empty())
      return make_error(Code::unsupported, "ties do not reach into graphs with regions", node.loc.text);
    TERN_TRY(const std::vector<Value> results, out.add(*node.op, in, node.attrs, node.loc));
    for (size_t r = 0; r < results.size(); ++r) moved[{id, static_cast<uint16_t>(r)}] = results[r];
  }
  for (const StateUpdate& u : graph.updates()) TERN_OK(out.update(u.state, moved.at(u.next)));
  for (const OutputPort& o : graph.outputs()) {
    bool tied = false;
    for (const auto& [output, input] : ties) tied |= output == o.name;
    if (tied)
      TERN_OK(out.update(o.name, moved.at(o.value)));
    else
      TERN_OK(out.output(o.name, moved.at(o.value)));
  }
  return out;
}

Result<std::vector<Bounds>> bounds_of(const DimTable& dims, const std::vector<Range>& ranges) {
  std::vector<Bounds> out;
  for (const Range& range : ranges) {
    Bounds bounds;
    for (const SymbolBound& b : range) {
      const auto symbol = dims.find_symbol(b.symbol);
      if (!symbol)
        return make_error(Code::not_found,
                          "a range names the size symbol '" + b.symbol + "', which the graph does not have");
      if (b.min > b.max) return make_error(Code::invalid, "a range of '" + b.symbol + "' is empty");
      bounds.push_back({*symbol, b.min, b.max});
    }
    out.push_back(std::move(bounds));
  }
  return out;
}

std::string shape_text(const DimTable& dims, const Shape& shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) text += (i ? ", " : "") + dims.text(shape[i]);
  return text + "]";
}

// Tensors that the graph itself holds are packed once and shared by all sessions.
Status load_constants(runtime::LoadedProgram& loaded) {
  loaded.constants.resize(loaded.program.buffers.size());
  for (const ConstantDef& c : loaded.program.constants) {
    const BufferDef& def = loaded.program.buffers[c.buffer];
    const auto bytes = static_cast<uint64_t>(def.bytes.constant().value_or(0));
    std::vector<std::byte> packed(bytes);
    Planes planes;
    planes.p[0] = *c.value.data;
    int64_t rows = 1;
    for (size_t i = 0; i + 1 < c.value.shape.size(); ++i) rows *= c.value.shape[i];
    if (def.layout.def->pack == nullptr)
      return make_error(Code::internal, "a constant cannot be packed into its layout", def.name);
    TERN_OK(def.layout.def->pack(def.type, planes, def.layout.tile, 0, rows, packed.data()));
    TERN_TRY(std::unique_ptr<hal::Buffer> buffer, loaded.device->allocate(bytes, hal::MemoryKind::device));
    TERN_TRY(std::unique_ptr<hal::Queue> queue, loaded.device->queue());
    TERN_TRY(const hal::Ticket ticket, queue->upload(packed, *buffer, 0));
    TERN_OK(queue->wait(ticket, -1));
    loaded.constants[c.buffer] = std::move(buffer);
  }
  return ok();
}

}  // namespace

Result<Program> engine::lowered(Graph input, const Device& device, const Options& options, CompileTimings& timings) {
  const auto start = Clock::now();
  TERN_TRY(Graph graph, tie(std::move(input), options.ties));
  TERN_OK(graph.verify());
  const Caps& caps = device.impl().caps();
  const Policy policy{options.precise, options.deterministic};
  const TakesCtx takes_ctx{kernel_candidates(), &caps, policy};
  const Target target{&caps, &takes_ctx, takes};
  PassOptions pass_options;
  pass_options.skip = options.skip_passes;
  pass_options.changed = options.on_pass;
  TERN_OK(run_passes(graph, target, default_passes(), pass_options));
  timings.passes_s = since(start);

  const auto lower_start = Clock::now();
  LowerOptions lower_options;
  TERN_TRY(lower_options.ranges, bounds_of(*graph.dims, options.ranges));
  lower_options.policy = policy;
  Tuning kept;
  if (options.tuning == nullptr) {
    auto loaded = load_tuning(device);
    if (loaded)
      kept = std::move(*loaded);
    else
      timings.notes.push_back(loaded.error().message() + "; kernels are taken as usual");
  }
  lower_options.tuning = options.tuning != nullptr ? options.tuning.get() : &kept;
  auto program = lower(graph, kernel_candidates(), caps, lower_options);
  timings.lower_s = since(lower_start);
  return program;
}

Result<MemoryNeed> memory_need(Graph graph, const Device& device, const Options& options) try {
  CompileTimings timings;
  runtime::LoadedProgram loaded;
  TERN_TRY(loaded.program, engine::lowered(std::move(graph), device, options, timings));
  loaded.device = device.shared();
  return engine::memory_need(loaded);
} catch (const std::bad_alloc&) {
  return memory_ended();
}

Result<Executable> compile(Graph graph, const Device& device, const Options& options) try {
  const auto start = Clock::now();
  CompileTimings timings;
  auto loaded = std::make_shared<runtime::LoadedProgram>();
  TERN_TRY(loaded->program, engine::lowered(std::move(graph), device, options, timings));
  const Caps& caps = device.impl().caps();
  const auto kernels_start = Clock::now();
  engine::EmitOptions emit;
  emit.cache_dir = options.cache_dir == "none" ? ""
                   : options.cache_dir.empty() ? user_cache_dir("kernels")
                                               : options.cache_dir;
  emit.plugin_path = options.plugin_path;
  emit.pack_dir = options.pack_dir;
  emit.threads = options.compile_threads != 0 ? options.compile_threads : allowed_cores();
  TERN_TRY(auto sources, engine::emit_kernels(loaded->program, caps, emit, timings));
  loaded->device = device.shared();
  for (const KernelDef& def : loaded->program.kernels) {
    TERN_TRY(std::shared_ptr<hal::Kernel> kernel, device.impl().load(loaded->program, def));
    loaded->kernels.push_back(std::move(kernel));
  }
  TERN_OK(load_constants(*loaded));
  timings.kernels_s = since(kernels_start);
  timings.total_s = since(start);

  auto exe = std::make_shared<Executable::Impl>(Executable::Impl{loaded, device, {}, timings, std::move(sources)});
  for (const IoDef& def : loaded->program.io.io) {
    exe->io.push_back({static_cast<IoId>(exe->io.size()), static_cast<IoKind>(def.kind), def.name, def.type,
                       shape_text(*loaded->program.dims, def.type.shape)});
  }
  return Executable(std::move(exe));
} catch (const std::bad_alloc&) {
  return memory_ended();
}

}  // namespace tern
