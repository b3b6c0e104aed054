// What a model will take before it is loaded: sizes of a step, memory, the context that fits.
#pragma once

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

}  // namespace tern::llm
