// What packs promise: models that nobody listed find all their kernels, whatever their width, depth, vocabulary and
// context.
#include <gtest/gtest.h>

#include <set>

#include "engine/registry.h"
#include "tools/packs/models.h"

namespace tern::packs {
namespace {

Kernels all_kernels(const Device& device, const std::string& level) {
  Kernels out;
  for (const Model& model : models()) {
    const Status added = add_kernels(model, device, level, out);
    EXPECT_TRUE(added.ok()) << (added.ok() ? "" : added.error().message());
  }
  return out;
}

Model unlisted(std::string_view like, uint32_t hidden, uint32_t heads, uint32_t kv_heads, uint32_t ffn,
               uint32_t vocabulary) {
  Model m;
  m.shape = **model_shape(like);
  m.shape.layers = 3;
  m.shape.hidden = hidden, m.shape.heads = heads, m.shape.kv_heads = kv_heads, m.shape.ffn = ffn;
  m.shape.vocabulary = vocabulary;
  m.shape.context = 1 << 20;
  return m;
}

std::vector<Model> unlisted_models() {
  const auto format = [](std::string_view name) { return format_by_name(name); };
  std::vector<Model> out;
  for (const std::string_view like : {"llama-3-8b", "qwen3-8b"}) {
    for (const std::string_view matrices : {"q4_0", "q4_k", "q8_0", "q6_k", "f16", "q2_0"}) {
      Model m = unlisted(like, 1536, 12, 3, 8960, 40000);
      m.formats = {format(matrices), format("q6_k")};
      if (matrices != "q4_k") m.formats.embedding = nullptr;
      if (matrices == "q4_k") m.formats.values = format("q6_k");
      m.context = 100000;
      out.push_back(m);
      m.kv = matrices == "q8_0"   ? std::optional(KvKind::q8)
             : matrices == "q6_k" ? std::optional(KvKind::q4)
                                  : std::nullopt;
      if (m.kv) out.push_back(m);
      m.kv.reset();
      m.sequences = 5;
      m.context = 777;
      if (m.formats.embedding == nullptr && matrices == "q4_0") out.push_back(m);
    }
  }
  Model gemma = unlisted("gemma-3-270m", 1280, 4, 1, 5120, 200000);
  gemma.formats = {format("q4_k"), format("q6_k")};
  gemma.formats.values = format("q6_k");
  gemma.shape.layers = 7;
  out.push_back(gemma);
  return out;
}

// What is part of the kernel: the numbers a graph itself names.
TEST(PackCoverage, UnlistedModelsFindTheirKernels) {
  const auto levels = engine::pack_levels();
  for (const std::string_view level : {levels.front(), levels.back()}) {
    const auto device = open_device("cpu", {.threads = 1, .isa = std::string(level), .cache_dir = {}});
    ASSERT_TRUE(device.ok());
    const Kernels have = all_kernels(*device, std::string(level));
    EXPECT_GT(have.size(), 300u);
    EXPECT_LT(have.size(), 1000u) << "kernels have come to know the width of a model";
    for (const Model& model : unlisted_models()) {
      Kernels want;
      const Status added = add_kernels(model, *device, std::string(level), want);
      ASSERT_TRUE(added.ok()) << added.error().message();
      std::multiset<std::string> missing;
      for (const auto& [key, def] : want) {
        if (!have.contains(key)) missing.insert(def.name);
      }
      // Gemma scales its embedding by a number of its own width.
      if (model.shape.architecture == "gemma3" && missing.contains("region")) missing.erase(missing.find("region"));
      std::string names;
      for (const std::string& name : missing) names += " " + name;
      EXPECT_EQ(names, "") << level << ", " << model.shape.name << ", " << model.formats.matrices->name;
    }
  }
}

}  // namespace
}  // namespace tern::packs
