// What a model family provides: reading its hyper-parameters from a file's own keys, and its step as a graph.
#pragma once

#include "tern/llm.h"

namespace tern::llm {

struct ModelFamily {
  std::string_view architecture;  // general.architecture
  // Checks every key and tensor that the graph will use, so that an error comes before any weight is packed.
  Result<LlmInfo> (*inspect)(const ModelFile& file);
  Result<Graph> (*build)(const ModelFile& file, const StepShape& shape);
};

Result<const ModelFamily*> family_of(const ModelFile& file);

// ---- shared by families
// The tensor in the shape that the family wants (row-major), or an error naming it and both shapes.
Result<const WeightInfo*> tensor(const ModelFile& file, const std::string& name, std::vector<int64_t> shape);
// An unsigned key in [low, high], named in the error.
Result<uint32_t> size_key(const ModelFile& file, const std::string& key, uint64_t low, uint64_t high);
// General keys, tensor counts and the chat template.
Result<LlmInfo> general_info(const ModelFile& file);

struct StepInputs {
  Value ids, position, slot, row_start, kv_length, pages, rows, settings, history, seeds;
  Dim tokens, rows_dim;
};
StepInputs step_inputs(Builder& b, const StepShape& shape);
// Norm, rows to sample, output matrix, sampling.
void finish_step(Builder& b, const StepInputs& in, Value hidden, Value norm, double eps, Value output_weight);
// A parameter of the type that the file stores.
Value weight(Builder& b, const WeightInfo& info);

}  // namespace tern::llm
