#include "backends/opencl/commands.h"

#include <chrono>

namespace tern::opencl {
namespace {

// Launches under way at most while a run can be cancelled: what is in the queue runs to its end.
constexpr uint32_t kInFlight = 64;

int64_t value_of(int64_t constant, int32_t block, std::span<const int64_t> values) {
  return block < 0 ? constant : values[static_cast<size_t>(block)];
}

}  // namespace

Result<ClCommands::Number> ClCommands::number(Dim dim, const std::map<Dim, int32_t>& block) {
  if (const auto c = dim.constant()) return Number{*c, -1};
  const auto it = block.find(dim);
  if (it == block.end()) return make_error(Code::internal, "a step uses a size that the program's dims block lacks");
  return Number{0, it->second};
}

Result<ClCommands::Item> ClCommands::record_item(const Step& step,
                                                 std::span<const std::shared_ptr<hal::Kernel>> kernels,
                                                 const std::map<Dim, int32_t>& block) {
  Item item;
  for (const Use& use : step.uses) {
    RecordedUse r{use.ref.id, {}, {}};
    TERN_TRY(r.offset, number(use.ref.offset, block));
    TERN_TRY(r.bytes, number(use.ref.bytes, block));
    item.uses.push_back(r);
  }
  if (const auto* launch = std::get_if<Launch>(&step.what)) {
    if (launch->kernel >= kernels.size()) return make_error(Code::internal, "a launch names no kernel");
    item.kernel = std::dynamic_pointer_cast<ClKernel>(kernels[launch->kernel]);
    if (!item.kernel) return make_error(Code::internal, "a launch names a kernel of another device");
    TERN_TRY(item.object, item.kernel->make());
    TERN_TRY(item.groups, number(launch->groups, block));
    for (const Dim d : launch->scalars) {
      TERN_TRY(const Number n, number(d, block));
      item.scalars.push_back(n);
    }
    item.placed.resize(item.uses.size());
    item.given.resize(item.scalars.size());
  } else if (const auto* fill = std::get_if<Fill>(&step.what)) {
    item.kind = Item::Kind::fill;
    item.word = fill->word;
  } else if (std::holds_alternative<Copy>(step.what)) {
    item.kind = Item::Kind::copy;
  } else {
    return make_error(Code::unsupported,
                      "an OpenCL device records launches, copies and fills; step '" + step.label + "' is neither");
  }
  return item;
}

Result<std::unique_ptr<ClCommands>> ClCommands::record(std::shared_ptr<Context> context, const Program& program,
                                                       uint32_t list,
                                                       std::span<const std::shared_ptr<hal::Kernel>> kernels) {
  if (list >= program.lists.size()) return make_error(Code::internal, "no such step list");
  std::map<Dim, int32_t> block;
  for (size_t i = 0; i < program.block.size(); ++i) block.emplace(program.block[i], static_cast<int32_t>(i));
  auto out = std::make_unique<ClCommands>();
  out->context_ = std::move(context);
  const std::vector<Step>& steps = program.lists[list];
  for (uint32_t i = 0; i < steps.size(); ++i) {
    TERN_TRY(Item item, record_item(steps[i], kernels, block));
    item.step = i;
    item.phase = steps[i].phase;
    out->items_.push_back(std::move(item));
  }
  return out;
}

Result<ClCommands::Placed> ClCommands::place(const RecordedUse& use, const hal::Binding& binding) const {
  if (use.buffer >= binding.slots.size() || binding.slots[use.buffer].buffer == nullptr)
    return make_error(Code::internal, "slot " + std::to_string(use.buffer) + " of a list is empty");
  const hal::Slot& slot = binding.slots[use.buffer];
  Placed p{static_cast<ClBuffer*>(slot.buffer)->memory(),
           slot.offset + static_cast<uint64_t>(value_of(use.offset.constant, use.offset.block, binding.block)),
           static_cast<uint64_t>(value_of(use.bytes.constant, use.bytes.block, binding.block))};
  if (p.offset + p.bytes > slot.buffer->size()) {
    return Error{Code::internal, "a window lies past its buffer", "slot " + std::to_string(use.buffer),
                 p.offset + p.bytes, slot.buffer->size()};
  }
  return p;
}

// A buffer of OpenCL is bound whole: where a binding begins is an argument of its own (emit's text for OpenCL C).
Status ClCommands::launch(cl_command_queue queue, Item& item, const hal::Binding& binding) {
  const Driver& cl = context_->cl;
  const int64_t groups = value_of(item.groups.constant, item.groups.block, binding.block);
  if (groups < 0 || groups > int64_t{UINT32_MAX}) return make_error(Code::limit, "a launch has too many groups");
  const auto give = [&](size_t index, size_t bytes, const void* value) {
    return checked(cl.SetKernelArg(item.object.get(), static_cast<cl_uint>(index), bytes, value),
                   "arguments of " + item.kernel->entry);
  };
  const size_t bindings = item.uses.size();
  for (size_t i = 0; i < bindings; ++i) {
    TERN_TRY(const Placed p, place(item.uses[i], binding));
    Placed& now = item.placed[i];
    if (item.fresh || p.memory != now.memory) TERN_OK(give(i, sizeof p.memory, &p.memory));
    if (item.fresh || p.offset != now.offset) TERN_OK(give(bindings + i, sizeof(cl_ulong), &p.offset));
    now = p;
  }
  for (size_t i = 0; i < item.scalars.size(); ++i) {
    const int64_t v = value_of(item.scalars[i].constant, item.scalars[i].block, binding.block);
    if (v < INT32_MIN || v > int64_t{UINT32_MAX})
      return make_error(Code::limit, "a kernel's size argument does not fit 32 bits");
    const auto word = static_cast<uint32_t>(v);
    if (item.fresh || word != item.given[i]) TERN_OK(give(2 * bindings + i, sizeof word, &word));
    item.given[i] = word;
  }
  item.fresh = false;
  if (groups == 0) return ok();
  const size_t local = item.kernel->work_items, global = static_cast<size_t>(groups) * local;
  return checked(cl.EnqueueNDRangeKernel(queue, item.object.get(), 1, nullptr, &global, &local, 0, nullptr, nullptr),
                 "launching " + item.kernel->entry);
}

Status ClCommands::enqueue(cl_command_queue queue, Item& item, const hal::Binding& binding) {
  if (item.kind == Item::Kind::launch) return launch(queue, item, binding);
  const Driver& cl = context_->cl;
  TERN_TRY(const Placed first, place(item.uses[0], binding));
  if (first.bytes == 0) return ok();
  if (item.kind == Item::Kind::fill) {  // whole words: buffers are allocated in more than those
    return checked(cl.EnqueueFillBuffer(queue, first.memory, &item.word, sizeof item.word, first.offset,
                                        (first.bytes + 3) / 4 * 4, 0, nullptr, nullptr),
                   "filling");
  }
  TERN_TRY(const Placed second, place(item.uses[1], binding));
  return checked(cl.EnqueueCopyBuffer(queue, first.memory, second.memory, first.offset, second.offset, first.bytes, 0,
                                      nullptr, nullptr),
                 "copying");
}

// The queue runs in order, so steps need no barriers between them.
Status ClCommands::run(cl_command_queue queue, const hal::Binding& binding, const hal::SubmitOptions& options) {
  using Clock = std::chrono::steady_clock;
  const Driver& cl = context_->cl;
  const auto finish = [&] { return checked(cl.Finish(queue), "running"); };
  if (options.profile != nullptr) options.profile->clear();
  uint32_t in_flight = 0;
  for (Item& item : items_) {
    if (options.cancel != nullptr) {
      const bool cancelled = options.cancel->load(std::memory_order_relaxed);
      if (cancelled || ++in_flight == kInFlight) {
        in_flight = 0;
        TERN_OK(finish());
      }
      if (cancelled) return make_error(Code::cancelled, "run cancelled");
    }
    const auto start = Clock::now();
    Status status = enqueue(queue, item, binding);
    if (!status) {
      static_cast<void>(finish());  // what is under way still reads the caller's buffers
      return status;
    }
    if (options.profile == nullptr) continue;
    TERN_OK(finish());
    options.profile->push_back({item.step, std::chrono::duration<double>(Clock::now() - start).count()});
  }
  return finish();
}

}  // namespace tern::opencl
