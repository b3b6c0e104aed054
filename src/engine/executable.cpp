#include "engine/executable.h"

#include <algorithm>

namespace tern {
namespace {

std::string when_text(const Program& program, const RangeDef& range) {
  std::string text;
  for (const Bound& b : range.when) {
    const Symbol& s = program.dims->symbols()[b.symbol];
    text += (text.empty() ? "" : ", ") + std::to_string(std::max(b.min, s.min)) + " <= " + s.name +
            " <= " + std::to_string(std::min(b.max, s.max));
  }
  return text.empty() ? "any size" : text;
}

StepInfo step_info(const Program& program, const std::vector<std::optional<KernelSource>>& sources, const Step& step) {
  StepInfo info;
  info.label = step.label;
  info.phase = step.phase;
  info.bytes = info.flop = info.seconds = 0;
  if (const auto* launch = std::get_if<Launch>(&step.what)) {
    info.kernel = program.kernels[launch->kernel].name;
    info.source = sources[launch->kernel];
  }
  if (std::holds_alternative<Copy>(step.what)) info.kernel = "copy";
  if (std::holds_alternative<Fill>(step.what)) info.kernel = "fill";
  if (std::holds_alternative<Bind>(step.what)) info.kernel = "bind";
  if (step.problem == kNone) return info;
  info.problem = problem_text(program.problems[step.problem], *program.dims);
  for (const Choice& choice : program.choices) {
    if (choice.problem != step.problem) continue;
    info.variant = choice.candidate + (choice.variant.empty() ? "" : " " + choice.variant);
    info.bytes = choice.bytes;
    info.flop = choice.flop;
    info.seconds = choice.seconds;
    info.refusals = choice.refusals;
  }
  return info;
}

}  // namespace

std::string_view kernel_source_name(KernelSource source) {
  constexpr std::string_view names[] = {"pack", "cache", "compiled", "interpreted", "text"};
  return names[static_cast<size_t>(source)];
}

const std::vector<IoInfo>& Executable::io() const { return impl_->io; }

Result<IoId> Executable::io(std::string_view name) const {
  for (const IoInfo& info : impl_->io) {
    if (info.name == name) return info.id;
  }
  return make_error(Code::not_found,
                    "the program has no input, output, parameter or state '" + std::string(name) + "'");
}

Params Executable::params() const {
  auto impl = std::make_shared<Params::Impl>();
  impl->loaded = impl_->loaded;
  impl->buffers = impl_->loaded->constants;
  impl->buffers.resize(impl_->loaded->program.buffers.size());
  impl->set.resize(impl_->loaded->program.io.io.size());
  return Params(std::move(impl));
}

Explanation Executable::explain() const {
  const Program& program = impl_->loaded->program;
  Explanation out;
  out.timings = impl_->timings;
  for (const RangeDef& range : program.ranges) {
    RangeInfo info;
    info.when = when_text(program, range);
    for (const Step& step : program.lists[range.list]) {
      info.steps.push_back(step_info(program, impl_->sources, step));
      info.phases = std::max(info.phases, step.phase + 1);
    }
    if (const auto plan = runtime::plan_list(*impl_->loaded, range.list)) info.arena_bytes = plan->arena;
    out.ranges.push_back(std::move(info));
  }
  return out;
}

Result<MemoryNeed> engine::memory_need(const runtime::LoadedProgram& loaded) {
  MemoryNeed need;
  for (const BufferDef& def : loaded.program.buffers) {
    if (def.origin == Origin::param) need.weights += static_cast<uint64_t>(def.bytes.constant().value_or(0));
  }
  TERN_TRY(const runtime::Sizes sizes, runtime::instance_sizes(loaded));
  need.state = sizes.state;
  need.scratch = sizes.scratch;
  need.io = sizes.io;
  return need;
}

MemoryNeed Executable::memory() const {
  const auto need = engine::memory_need(*impl_->loaded);
  return need ? *need : MemoryNeed{};
}

std::string Executable::program_text() const { return tern::program_text(impl_->loaded->program); }
const CompileTimings& Executable::timings() const { return impl_->timings; }
const Device& Executable::device() const { return impl_->device; }

}  // namespace tern
