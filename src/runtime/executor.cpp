#include "runtime/executor.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>

#include "core/guard.h"

namespace tern::runtime {
namespace {

// Where a symbol's value comes from: an axis of an input that is exactly it, else whoever calls.
std::string source_of(const Program& program, uint32_t symbol) {
  for (const IoDef& io : program.io.io) {
    if (io.kind != IoDef::Kind::input) continue;
    for (size_t axis = 0; axis < io.type.shape.size(); ++axis) {
      if (program.dims->as_symbol(io.type.shape[axis]) == symbol)
        return "input '" + io.name + "' axis " + std::to_string(axis);
    }
  }
  return program.dims->symbols()[symbol].late ? "a step of the run" : "the caller";
}

std::vector<uint32_t> lists_of(const Program& program) {
  std::vector<uint32_t> lists;
  for (const RangeDef& range : program.ranges) lists.push_back(range.list);
  if (program.prepare_list != kNone) lists.push_back(program.prepare_list);
  return lists;
}

// The sizes that a list is run at.
Bounds bounds_of(const Program& program, uint32_t list) {
  for (const RangeDef& range : program.ranges) {
    if (range.list == list) return range.when;
  }
  return {};
}

}  // namespace

Result<MemoryPlan> plan_list(const LoadedProgram& loaded, uint32_t list) {
  return plan_range(loaded.program, list, bounds_of(loaded.program, list), loaded.device->caps().offset_alignment);
}

bool holds(const RangeDef& range, std::span<const int64_t> symbols) {
  return std::all_of(range.when.begin(), range.when.end(),
                     [&](const Bound& b) { return symbols[b.symbol] >= b.min && symbols[b.symbol] <= b.max; });
}

Result<Sizes> instance_sizes(const LoadedProgram& loaded) {
  const Program& program = loaded.program;
  TERN_TRY(const std::vector<uint64_t> bytes, most_buffer_bytes(program, {}));
  Sizes sizes;
  for (BufferId id = 0; id < bytes.size(); ++id) {
    const Origin origin = program.buffers[id].origin;
    if (origin == Origin::state) sizes.state += bytes[id];
    if (origin == Origin::io) sizes.io += bytes[id];
  }
  for (const uint32_t list : lists_of(program)) {
    TERN_TRY(const MemoryPlan plan, plan_list(loaded, list));
    sizes.scratch = std::max(sizes.scratch, plan.arena);
  }
  return sizes;
}

Result<std::unique_ptr<Instance>> Instance::open(std::shared_ptr<const LoadedProgram> loaded,
                                                 std::vector<std::shared_ptr<hal::Buffer>> params) {
  std::unique_ptr<Instance> out(new Instance());
  out->loaded_ = std::move(loaded);
  TERN_TRY(out->queue_, out->loaded_->device->queue());
  TERN_OK(out->allocate(std::move(params)));
  TERN_OK(out->plan_lists());
  out->symbols_.assign(out->program().dims->symbols().size(), 0);
  return out;
}

Status Instance::allocate(std::vector<std::shared_ptr<hal::Buffer>> params) {
  const Program& p = program();
  TERN_TRY(const std::vector<uint64_t> bytes, most_buffer_bytes(p, {}));
  buffers_ = std::move(params);
  buffers_.resize(p.buffers.size());
  for (BufferId id = 0; id < p.buffers.size(); ++id) {
    const BufferDef& def = p.buffers[id];
    if (def.origin == Origin::temp) continue;
    if (def.origin == Origin::param) {
      if (!buffers_[id])
        return make_error(Code::invalid, "parameter '" + def.name + "' has no value; set or load it first", def.name);
      continue;
    }
    TERN_TRY(std::unique_ptr<hal::Buffer> buffer, loaded_->device->allocate(bytes[id], hal::MemoryKind::device));
    buffers_[id] = std::move(buffer);
    if (def.origin == Origin::state && !loaded_->device->caps().host_visible)
      TERN_OK(zero(id));  // host pages start as zero
  }
  return ok();
}

Status Instance::plan_lists() {
  const Program& p = program();
  slots_.resize(p.lists.size());
  commands_.resize(p.lists.size());
  std::vector<MemoryPlan> plans(p.lists.size());
  uint64_t arena = 0;
  for (const uint32_t list : lists_of(p)) {
    TERN_TRY(plans[list], plan_list(*loaded_, list));
    arena = std::max(arena, plans[list].arena);
  }
  TERN_TRY(std::unique_ptr<hal::Buffer> buffer,
           loaded_->device->allocate(std::max<uint64_t>(arena, 64), hal::MemoryKind::device));
  arena_ = std::move(buffer);
  for (const uint32_t list : lists_of(p)) {
    std::vector<hal::Slot>& slots = slots_[list];
    slots.resize(p.buffers.size());
    for (BufferId id = 0; id < p.buffers.size(); ++id) {
      if (p.buffers[id].origin == Origin::temp) {
        slots[id] = {arena_.get(), plans[list].offset[id]};
      } else {
        slots[id] = {buffers_[id].get(), 0};
      }
    }
  }
  std::set<uint32_t> recorded;
  for (const RangeDef& range : p.ranges) {
    if (range.parts.empty()) recorded.insert(range.list);
    recorded.insert(range.parts.begin(), range.parts.end());
  }
  if (p.prepare_list != kNone) recorded.insert(p.prepare_list);
  for (const uint32_t list : recorded) {
    TERN_TRY(commands_[list], loaded_->device->record(p, list, loaded_->kernels));
  }
  return ok();
}

Status Instance::bind(std::span<const int64_t> symbols) {
  const Program& p = program();
  if (symbols.size() != p.dims->symbols().size()) return make_error(Code::internal, "wrong number of symbol values");
  if (bound_ && std::equal(symbols.begin(), symbols.end(), symbols_.begin())) return ok();
  for (size_t i = 0; i < symbols.size(); ++i) {
    const Symbol& s = p.dims->symbols()[i];
    if (s.late) continue;
    if (symbols[i] < s.min || symbols[i] > s.max) {
      return make_error(Code::invalid, s.name + " = " + std::to_string(symbols[i]) + " lies outside [" +
                                           std::to_string(s.min) + ", " + std::to_string(s.max) + "]");
    }
    if (s.multiple > 1 && symbols[i] % s.multiple != 0) {
      return make_error(Code::invalid, s.name + " = " + std::to_string(symbols[i]) + " is no multiple of " +
                                           std::to_string(s.multiple));
    }
  }
  bound_ = false;
  symbols_.assign(symbols.begin(), symbols.end());
  late_known_.clear();
  TERN_OK(check_guards(std::nullopt));
  const auto range =
      std::find_if(p.ranges.begin(), p.ranges.end(), [&](const RangeDef& r) { return holds(r, symbols_); });
  if (range == p.ranges.end()) return make_error(Code::internal, "no range holds for these sizes");
  range_ = static_cast<size_t>(range - p.ranges.begin());
  TERN_OK(fill_block());
  bound_ = true;
  return ok();
}

Status Instance::check_guards(std::optional<uint32_t> given) const {
  const Program& p = program();
  for (const Guard& g : p.guards) {
    if (!guard_is_due(*p.dims, g, late_known_, given)) continue;
    TERN_OK(check_guard(*p.dims, g, symbols_, [&](uint32_t symbol) { return source_of(p, symbol); }));
  }
  return ok();
}

Status Instance::fill_block() {
  const Program& p = program();
  block_.resize(p.block.size());
  for (size_t i = 0; i < p.block.size(); ++i) {
    TERN_TRY(block_[i], p.dims->eval(p.block[i], symbols_));
  }
  return ok();
}

uint64_t Instance::bytes(BufferId id) const {
  const auto b = program().dims->eval(program().buffers[id].bytes, symbols_);
  return b ? static_cast<uint64_t>(*b) : 0;
}

Sizes Instance::held() const {
  Sizes sizes;
  sizes.scratch = arena_->size();
  for (BufferId id = 0; id < buffers_.size(); ++id) {
    const Origin origin = program().buffers[id].origin;
    if (origin == Origin::state) sizes.state += buffers_[id]->size();
    if (origin == Origin::io) sizes.io += buffers_[id]->size();
  }
  return sizes;
}

Result<hal::Ticket> Instance::submit(const hal::SubmitOptions& options) {
  const RangeDef& range = program().ranges[range_];
  if (!range.parts.empty()) return submit_parts(range, options);
  return queue_->submit(*commands_[range.list], {slots_[range.list], block_}, {}, options);
}

Result<hal::Ticket> Instance::submit_parts(const RangeDef& range, const hal::SubmitOptions& options) {
  const Program& p = program();
  const std::vector<Step>& steps = p.lists[range.list];
  std::vector<hal::StepTiming> timings, part;
  hal::Ticket ticket = 0;
  bound_ = false;  // late sizes of this run are none of the next one's
  late_known_.clear();
  uint32_t at = 0;  // in the whole list
  for (size_t i = 0; i < range.parts.size(); ++i) {
    const bool last = i + 1 == range.parts.size();
    hal::SubmitOptions own = options;
    own.profile = options.profile != nullptr ? &part : nullptr;
    own.blocking = options.blocking || !last;
    part.clear();
    TERN_TRY(ticket, queue_->submit(*commands_[range.parts[i]], {slots_[range.list], block_}, {}, own));
    if (!last || options.profile != nullptr) TERN_OK(queue_->wait(ticket, -1));
    for (const hal::StepTiming& t : part) timings.push_back({t.step + at, t.seconds});
    at += static_cast<uint32_t>(p.lists[range.parts[i]].size());
    if (last) break;
    if (at >= steps.size()) return make_error(Code::internal, "the parts of a list are not the list");
    TERN_OK(take_late(range.list, steps[at++]));
  }
  if (options.profile != nullptr) *options.profile = std::move(timings);
  return ticket;
}

Status Instance::take_late(uint32_t list, const Step& step) {
  const Program& p = program();
  const auto* bind = std::get_if<Bind>(&step.what);
  if (bind == nullptr) return make_error(Code::internal, "the parts of a list are not the list");
  const Ref& ref = step.uses[0].ref;
  const DType dtype = p.buffers[ref.id].type.dtype;
  const hal::Slot& slot = slots_[list][ref.id];
  const auto at = slot.offset + static_cast<uint64_t>(ref.offset.constant().value_or(0));
  std::array<std::byte, 8> bytes{};
  const uint64_t size = dtype_bytes(dtype);
  if ((dtype != DType::i32 && dtype != DType::i64) || at + size > slot.buffer->size())
    return make_error(Code::internal, "a bind reads no integer", step.label);
  if (const std::span<std::byte> host = slot.buffer->host(); !host.empty()) {
    std::memcpy(bytes.data(), host.data() + at, size);
  } else {
    TERN_TRY(const hal::Ticket ticket, queue_->download(*slot.buffer, at, std::span(bytes).first(size)));
    TERN_OK(queue_->wait(ticket, -1));
  }
  int64_t value = 0;
  int32_t narrow = 0;
  std::memcpy(&value, bytes.data(), sizeof value);
  std::memcpy(&narrow, bytes.data(), sizeof narrow);
  if (dtype == DType::i32) value = narrow;
  TERN_OK(check_symbol(*p.dims, bind->late_symbol, value, "step '" + step.label + "'"));
  symbols_[bind->late_symbol] = value;
  late_known_.insert(bind->late_symbol);
  TERN_OK(check_guards(bind->late_symbol));
  return fill_block();
}

Status Instance::prepare() {
  const uint32_t list = program().prepare_list;
  if (list == kNone || program().lists[list].empty()) return ok();
  std::vector<int64_t> block(program().block.size());
  std::vector<int64_t> top;  // what is prepared depends on no size
  for (const Symbol& s : program().dims->symbols()) top.push_back(s.max);
  for (size_t i = 0; i < block.size(); ++i) {
    TERN_TRY(block[i], program().dims->eval(program().block[i], top));
  }
  TERN_TRY(const hal::Ticket ticket, queue_->submit(*commands_[list], {slots_[list], block}, {}, {}));
  return queue_->wait(ticket, -1);
}

Status Instance::zero(BufferId id) {
  const std::vector<std::byte> piece(std::min<uint64_t>(buffers_[id]->size(), uint64_t{1} << 20));
  for (uint64_t at = 0; at < buffers_[id]->size(); at += piece.size()) {
    const uint64_t n = std::min<uint64_t>(piece.size(), buffers_[id]->size() - at);
    TERN_TRY(const hal::Ticket ticket, queue_->upload(std::span(piece).first(n), *buffers_[id], at));
    TERN_OK(queue_->wait(ticket, -1));
  }
  return ok();
}

}  // namespace tern::runtime
