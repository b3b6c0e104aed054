// What a model will take before it is loaded: sizes of a step, memory, the context that fits.
#pragma once

#include <algorithm>
#include <utility>

#include "tern/llm.h"

namespace tern::llm {

// Tokens a sequence may hold.
uint32_t context_for(const LlmInfo& info, const LlmOptions& options);
// The sizes that options ask for, or the reason why the model cannot have them.
Result<StepShape> shape_for(const LlmInfo& info, const LlmOptions& options);
// How a step graph of that shape is compiled.
Options compile_options(const StepShape& shape, const LlmOptions& options);

// What there was before a model was opened, and what the process has taken for it beside the device's memory. Both are
// read at the same point by plan() and open(), so that they come to the same answer.
struct Room {
  DeviceMemory memory;
  uint64_t host = 0;
};
// The tokenizer of a file, and the room around making it.
Result<std::pair<Tokenizer, Room>> make_tokenizer(const ModelFile& file, const Device& device);

// ok where there is room for `need`; else Code::out_of_memory, naming what it takes, what there is, and the largest
// context that fits.
Status check_fits(const ModelFile& file, const LlmInfo& info, const LlmOptions& options, const Device& device,
                  const MemoryNeed& need, const Room& room);

// A limit that steps of the fewest tokens exceed: the context is to blame; names the one that would fit.
Error beyond_binding(Error error, const StepShape& shape);
// make(graph, options) with steps of as many tokens as the device's bindings hold: halved until it takes them.
template <class Make>
auto with_steps_that_fit(const ModelFile& file, StepShape& shape, const LlmOptions& options, const Make& make)
    -> decltype(make(std::declval<Graph>(), std::declval<const Options&>())) {
  for (;;) {
    TERN_TRY(Graph graph, build_step_graph(file, shape));
    auto made = make(std::move(graph), compile_options(shape, options));
    if (made || made.error().code != Code::limit) return made;
    const uint32_t fewer = std::max(shape.max_tokens / 2, shape.max_sequences);
    if (fewer == shape.max_tokens) return beyond_binding(made.take_error(), shape);
    shape.max_tokens = fewer;
  }
}

}  // namespace tern::llm
