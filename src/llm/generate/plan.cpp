#include "llm/generate/plan.h"

#include <algorithm>

#include "base/measure/memory.h"
#include "base/platform/within_memory.h"
#include "base/utf8.h"

namespace tern {
namespace llm {
namespace {

constexpr uint32_t kPage = 32;
constexpr uint32_t kDefaultContext = 4096;

Result<MemoryNeed> plan_step(const ModelFile& file, StepShape& shape, const LlmOptions& options, const Device& device) {
  return with_steps_that_fit(file, shape, options, [&](Graph graph, const Options& how) {
    return memory_need(std::move(graph), device, how);
  });
}

Result<MemoryNeed> need_of(const ModelFile& file, const LlmInfo& info, LlmOptions options, const Device& device,
                           uint32_t context) {
  options.context = context;
  TERN_TRY(StepShape shape, shape_for(info, options));
  return plan_step(file, shape, options, device);
}

// The largest context of whole pages with which the model takes at most `available` bytes, 0 where none does. Memory
// grows almost in proportion to the context, so straight lines through what is known find it in a few plans.
Result<uint32_t> largest_context(const ModelFile& file, const LlmInfo& info, const LlmOptions& options,
                                 const Device& device, uint32_t too_large, uint64_t need_of_it, uint64_t available) {
  uint32_t low = 1, high = (too_large + kPage - 1) / kPage;  // pages
  TERN_TRY(MemoryNeed least, need_of(file, info, options, device, std::min(low * kPage, info.context)));
  if (least.total() > available) return 0u;
  uint64_t low_bytes = least.total(), high_bytes = need_of_it;
  for (bool halve = false; high - low > 1; halve = !halve) {
    const double share = static_cast<double>(available - low_bytes) / static_cast<double>(high_bytes - low_bytes);
    const auto guess = halve ? (low + high) / 2 : low + static_cast<uint32_t>(share * (high - low));
    const uint32_t pages = std::clamp(guess, low + 1, high - 1);
    TERN_TRY(const MemoryNeed need, need_of(file, info, options, device, pages * kPage));
    (need.total() <= available ? low : high) = pages;
    (need.total() <= available ? low_bytes : high_bytes) = need.total();
    // A straight line often ends one page off: look at the neighbour before halving.
    if (!halve && need.total() <= available && pages + 1 < high) {
      TERN_TRY(const MemoryNeed next, need_of(file, info, options, device, (pages + 1) * kPage));
      (next.total() <= available ? low : high) = pages + 1;
      (next.total() <= available ? low_bytes : high_bytes) = next.total();
    }
  }
  return std::min(low * kPage, info.context);
}

}  // namespace

uint32_t context_for(const LlmInfo& info, const LlmOptions& options) {
  return options.context != 0 ? options.context : std::min(info.context, kDefaultContext);
}

Result<StepShape> shape_for(const LlmInfo& info, const LlmOptions& options) {
  StepShape shape;
  const uint32_t context = context_for(info, options);
  if (context > info.context) {
    return make_error(Code::invalid, "a context of " + std::to_string(context) + " tokens exceeds the model's " +
                                         std::to_string(info.context));
  }
  if (options.max_sequences == 0 || options.max_sequences > 1024)
    return make_error(Code::invalid, "max_sequences wants 1 .. 1024");
  if (options.chunk == 0 || options.chunk > 65536) return make_error(Code::invalid, "chunk wants 1 .. 65536 tokens");
  if (options.history > 65536) return make_error(Code::invalid, "history wants 0 .. 65536 tokens");
  // Slots of the KV state are counted in i32, over all sequences.
  const uint64_t most = (uint64_t{INT32_MAX} / options.max_sequences) / kPage * kPage;
  if (context > most)
    return make_error(Code::limit, "a context of " + std::to_string(context) + " tokens in each of " +
                                       std::to_string(options.max_sequences) + " sequences exceeds the limit of " +
                                       std::to_string(most));
  shape.max_tokens = std::max(std::min(options.chunk, context), options.max_sequences);
  shape.max_sequences = options.max_sequences;
  shape.max_rows = options.max_sequences;
  shape.page = kPage;
  shape.pages_per_sequence = (context + kPage - 1) / kPage;
  shape.history = std::max(1u, options.history);
  shape.kv = kv_kind(options.kv, options.precise);
  if (auto fits = kv_state_type(shape.kv, true, 1, info.kv_heads, info.head_size, kPage); !fits)
    return fits.take_error();
  return shape;
}

Options compile_options(const StepShape& shape, const LlmOptions& options) {
  Options out;
  out.ranges = step_ranges(shape);
  out.precise = options.precise;
  out.cache_dir = options.cache_dir;
  out.plugin_path = options.plugin_path;
  out.pack_dir = options.pack_dir;
  out.tuning = options.tuning;
  return out;
}

Result<std::pair<Tokenizer, Room>> make_tokenizer(const ModelFile& file, const Device& device) {
  Room room{device.memory(), 0};
  const uint64_t before = heap_in_use();
  TERN_TRY(TokenizerData data, tokenizer_data(file.metadata()));
  TERN_TRY(Tokenizer tokenizer, Tokenizer::create(std::move(data)));
  room.host = heap_in_use() - std::min(before, heap_in_use());
  return std::pair(std::move(tokenizer), room);
}

Status check_fits(const ModelFile& file, const LlmInfo& info, const LlmOptions& options, const Device& device,
                  const MemoryNeed& need, const Room& room) {
  if (room.memory.total == 0) return ok();  // the system does not tell
  // What the host takes counts everywhere: on the CPU it is the same memory, elsewhere a small margin.
  const uint64_t available = room.memory.available - std::min(room.memory.available, room.host);
  if (need.total() <= available) return ok();
  const uint32_t context = context_for(info, options);
  TERN_TRY(const uint32_t fits, largest_context(file, info, options, device, context, need.total(), available));
  const uint64_t total = need.total() + room.host;
  std::string text = (info.name.empty() ? "the model" : "'" + printable(info.name) + "'") + " with a context of " +
                     std::to_string(context) + " tokens needs " + std::to_string(total) + " bytes (weights " +
                     std::to_string(need.weights) + ", state " + std::to_string(need.state) + ", scratch " +
                     std::to_string(need.scratch) + ") and " + std::to_string(room.memory.available) +
                     " are available; " +
                     (fits > 0 ? "a context of " + std::to_string(fits) + " tokens fits (--ctx)"
                               : "not even a context of " + std::to_string(kPage) + " tokens fits");
  return Error{Code::out_of_memory, std::move(text), {}, total, room.memory.available};
}

Error beyond_binding(Error error, const StepShape& shape) {
  const uint64_t pages = error.need > 0 ? shape.pages_per_sequence * error.have / error.need : 0;
  if (pages > 0 && pages < shape.pages_per_sequence)
    error.text += "; a context of " + std::to_string(pages * shape.page) + " tokens would fit (--ctx)";
  return error;
}

}  // namespace llm

Result<LlmPlan> LanguageModel::plan(const ModelFile& file, const LlmOptions& options) try {
  LlmPlan plan;
  TERN_TRY(plan.info, inspect(file));
  TERN_TRY(StepShape shape, llm::shape_for(plan.info, options));
  plan.context = llm::context_for(plan.info, options);
  plan.kv = shape.kv;
  TERN_TRY(const Device device, open_device(options.device, options.device_options));
  TERN_TRY(const auto made, llm::make_tokenizer(file, device));
  const llm::Room& room = made.second;
  plan.memory = room.memory;
  plan.host = room.host;
  TERN_TRY(plan.need, llm::plan_step(file, shape, options, device));
  if (Status fits = llm::check_fits(file, plan.info, options, device, plan.need, room); !fits) {
    if (fits.error().code != Code::out_of_memory) return fits.take_error();
    plan.refusal = fits.take_error();
  }
  return plan;
} catch (const std::bad_alloc&) {
  return memory_ended();
}

}  // namespace tern
