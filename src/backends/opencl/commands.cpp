#include "backends/opencl/commands.h"

#include <chrono>

namespace tern::opencl {
namespace {

// Launches under way at most while a run can be cancelled: what is in the queue runs to its end.
constexpr uint32_t kInFlight = 64;

cl_mem memory_of(const hal::Placed& p) { return static_cast<const ClBuffer*>(p.buffer)->memory(); }

}  // namespace

Result<std::unique_ptr<ClCommands>> ClCommands::record(std::shared_ptr<Context> context, const Program& program,
                                                       uint32_t list,
                                                       std::span<const std::shared_ptr<hal::Kernel>> kernels) {
  auto out = std::make_unique<ClCommands>();
  out->context_ = std::move(context);
  TERN_TRY(std::vector<hal::RecordedStep> steps, hal::record_steps(program, list, kernels.size(), "an OpenCL device"));
  for (hal::RecordedStep& step : steps) {
    Item item;
    if (step.kind == hal::RecordedStep::Kind::launch) {
      item.kernel = std::dynamic_pointer_cast<ClKernel>(kernels[step.kernel]);
      if (!item.kernel) return make_error(Code::internal, "a launch names a kernel of another device");
      TERN_TRY(item.object, item.kernel->make());
      item.placed.resize(step.uses.size());
      item.given.resize(step.scalars.size());
    }
    item.step = std::move(step);
    out->items_.push_back(std::move(item));
  }
  return out;
}

// A buffer of OpenCL is bound whole: where a binding begins is an argument of its own (emit's text for OpenCL C).
Status ClCommands::launch(cl_command_queue queue, Item& item, const hal::Binding& binding) {
  const Driver& cl = context_->cl;
  TERN_TRY(const uint32_t groups, hal::groups_of(item.step.groups, binding.block));
  const auto give = [&](size_t index, size_t bytes, const void* value) {
    return checked(cl.SetKernelArg(item.object.get(), static_cast<cl_uint>(index), bytes, value),
                   "arguments of " + item.kernel->entry);
  };
  const size_t bindings = item.placed.size();
  for (size_t i = 0; i < bindings; ++i) {
    TERN_TRY(const hal::Placed p, hal::place(item.step.uses[i], binding));
    const cl_mem memory = memory_of(p);
    const uint64_t serial = static_cast<const ClBuffer*>(p.buffer)->serial();
    Argument& now = item.placed[i];
    if (item.fresh || serial != now.buffer) TERN_OK(give(i, sizeof(cl_mem), static_cast<const void*>(&memory)));
    if (item.fresh || p.offset != now.offset) TERN_OK(give(bindings + i, sizeof(cl_ulong), &p.offset));
    now = {serial, p.offset};
  }
  for (size_t i = 0; i < item.given.size(); ++i) {
    TERN_TRY(const uint32_t word, hal::scalar_word(item.step.scalars[i], binding.block));
    if (item.fresh || word != item.given[i]) TERN_OK(give(2 * bindings + i, sizeof word, &word));
    item.given[i] = word;
  }
  item.fresh = false;
  if (groups == 0) return ok();
  const size_t local = item.kernel->work_items, global = groups * local;
  return checked(cl.EnqueueNDRangeKernel(queue, item.object.get(), 1, nullptr, &global, &local, 0, nullptr, nullptr),
                 "launching " + item.kernel->entry);
}

Status ClCommands::enqueue(cl_command_queue queue, Item& item, const hal::Binding& binding) {
  if (item.kernel) return launch(queue, item, binding);
  const Driver& cl = context_->cl;
  TERN_TRY(const hal::Placed first, hal::place(item.step.uses[0], binding));
  if (first.bytes == 0) return ok();
  if (item.step.kind == hal::RecordedStep::Kind::fill) {  // whole words: buffers are allocated in more than those
    return checked(cl.EnqueueFillBuffer(queue, memory_of(first), &item.step.word, sizeof item.step.word, first.offset,
                                        (first.bytes + 3) / 4 * 4, 0, nullptr, nullptr),
                   "filling");
  }
  TERN_TRY(const hal::Placed second, hal::place(item.step.uses[1], binding));
  return checked(cl.EnqueueCopyBuffer(queue, memory_of(first), memory_of(second), first.offset, second.offset,
                                      first.bytes, 0, nullptr, nullptr),
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
    options.profile->push_back({item.step.step, std::chrono::duration<double>(Clock::now() - start).count()});
  }
  return finish();
}

}  // namespace tern::opencl
