#include "tools/packs/models.h"

#include <string_view>

#include "engine/code/packs.h"
#include "engine/compile.h"

namespace tern::packs {
namespace {

// Sizes that decide nothing are kept small.
ModelShape shortened(ModelShape shape) {
  shape.layers = shape.window != 0 ? 6 : 2;  // where layers differ, one of each
  shape.vocabulary = 1024;
  return shape;
}

struct Mixture {
  std::string_view matrices, values, embedding;
};
// As files are published: the finer format for v, down and the embedding.
constexpr Mixture kMixtures[] = {
    {"q4_k", "q6_k", "q6_k"}, {"q4_k", "q6_k", "q8_0"},     {"q4_k", "q4_k", "q6_k"}, {"q5_k", "q6_k", "q6_k"},
    {"q5_k", "q6_k", "q8_0"}, {"q5_k", "q5_k", "q6_k"},     {"q3_k", "q4_k", "q6_k"}, {"q3_k", "q5_k", "q6_k"},
    {"q3_k", "q3_k", "q6_k"}, {"q2_k", "q3_k", "q6_k"},     {"q2_k", "q4_k", "q6_k"}, {"q4_0", "q4_0", "q6_k"},
    {"q4_0", "q4_1", "q6_k"}, {"q4_0", "q4_0", "q8_0"},     {"q4_1", "q4_1", "q6_k"}, {"q5_0", "q5_0", "q6_k"},
    {"q5_1", "q5_1", "q6_k"}, {"iq4_nl", "iq4_nl", "q6_k"}, {"q4_1", "q4_1", "q8_0"}, {"iq4_nl", "q5_k", "q6_k"},
};

// Widths that are whole blocks of every format.
constexpr std::string_view kOfFamily[] = {"llama-3.2-1b", "qwen3-0.6b"};
constexpr ModelShape kGemma = {"gemma", "gemma3", 6,    2560, 8,    4,     256,  10240, 1024,
                               131072,  1e6,      1e-6, true, true, false, true, 1024};

void add(std::vector<Model>& out, const Model& model) {
  out.push_back(model);
  out.push_back(model);
  out.back().sequences = 8;
}

}  // namespace

std::vector<Model> models() {
  std::vector<Model> out;
  const auto format = [](std::string_view name) { return format_by_name(name); };
  for (const ModelShape& shape : model_shapes()) {
    Model model{shortened(shape), {format("q4_0"), nullptr}, false, 1};
    for (const KvKind kind : kKvKinds) {
      model.kv = kind;
      add(out, model);
    }
    model.kv.reset(), model.precise = true;  // with its own kind of KV only
    add(out, model);
  }
  std::vector<ModelShape> families;
  for (const std::string_view name : kOfFamily) families.push_back(shortened(**model_shape(name)));
  families.push_back(kGemma);
  for (const ModelShape& shape : families) {
    for (const Format* matrices : all_formats()) {
      if (shape.architecture == families.front().architecture) {
        ModelShape untied = shape;  // its embedding lies as in the file
        untied.tied = false;
        out.push_back({untied, {matrices, nullptr}, false, 1});
      }
      out.push_back({shape, {matrices, nullptr}, false, 1});
      if (shape.architecture == families.front().architecture) out.push_back({shape, {matrices, nullptr}, true, 1});
    }
    for (const Mixture& m : kMixtures) {
      SyntheticOptions formats{format(m.matrices), format(m.embedding)};
      formats.values = format(m.values);
      out.push_back({shape, formats, false, 1});
    }
  }
  return out;
}

Status add_kernels(const Model& model, const Device& device, const std::string& level, Kernels& kernels) {
  TERN_TRY(const std::unique_ptr<ModelFile> file, make_synthetic_model(model.shape, model.formats));
  StepShape shape;
  shape.max_sequences = shape.max_rows = model.sequences;
  shape.pages_per_sequence = (model.context + shape.page - 1) / shape.page;
  shape.kv = kv_kind(model.kv, model.precise);
  TERN_TRY(Graph graph, build_step_graph(*file, shape));
  Options options;
  options.ranges = step_ranges(shape);
  options.precise = model.precise;
  options.tuning = std::make_shared<const Tuning>();  // a build does not depend on what its user has tuned
  CompileTimings timings;
  TERN_TRY(Program program, engine::lowered(std::move(graph), device, options, timings));
  for (KernelDef& def : program.kernels) {
    if (def.kind == KernelDef::Kind::kir) kernels.emplace(engine::object_key(def.code, level), std::move(def));
  }
  return ok();
}

}  // namespace tern::packs
