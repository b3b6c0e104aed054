#include "backends/vulkan/programs.h"

#include <algorithm>
#include <cstring>
#include <numeric>

namespace tern::vulkan {
namespace {

constexpr uint32_t kPushBytes = 128;  // what every driver has room for (emit/kernel_spirv.h)
constexpr uint32_t kMagic = 0x07230203;

// Drivers trust what they are given, so what is no module at all is told here.
Result<std::vector<uint32_t>> words_of(const KernelDef& def) {
  std::vector<uint32_t> words(def.code.size() / 4);
  std::memcpy(words.data(), def.code.data(), words.size() * 4);
  if (def.code.size() % 4 != 0 || words.size() < 5 || words[0] != kMagic)
    return make_error(Code::malformed, "kernel '" + def.name + "' is no SPIR-V module");
  return words;
}

// What the module has in set 1.
std::vector<uint32_t> texels_of(std::span<const uint32_t> words) {
  constexpr uint32_t kHead = 5, kDecorate = 71, kBinding = 33, kSet = 34;
  std::map<uint32_t, uint32_t> sets, bindings;  // by id
  for (size_t i = kHead; i < words.size();) {
    const uint32_t length = words[i] >> 16;
    if (length == 0 || length > words.size() - i) break;
    if ((words[i] & 0xffff) == kDecorate && length == 4) {
      if (words[i + 2] == kSet) sets[words[i + 1]] = words[i + 3];
      if (words[i + 2] == kBinding) bindings[words[i + 1]] = words[i + 3];
    }
    i += length;
  }
  std::vector<uint32_t> out;
  for (const auto& [id, binding] : bindings) {
    if (sets[id] == 1) out.push_back(binding);
  }
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

Result<Owned<VkDescriptorSetLayout>> set_layout(const std::shared_ptr<Context>& context, VkDescriptorType type,
                                                std::span<const uint32_t> numbers) {
  std::vector<VkDescriptorSetLayoutBinding> all(numbers.size());
  for (size_t i = 0; i < numbers.size(); ++i) {
    all[i].binding = numbers[i];
    all[i].descriptorType = type;
    all[i].descriptorCount = 1;
    all[i].stageFlags = VK_SHADER_STAGE_COMPUTE_BIT;
  }
  VkDescriptorSetLayoutCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO;
  info.bindingCount = static_cast<uint32_t>(all.size());
  info.pBindings = all.data();
  Owned<VkDescriptorSetLayout> out(context, context->vk.DestroyDescriptorSetLayout);
  TERN_OK(checked(context->vk.CreateDescriptorSetLayout(context->device, &info, nullptr, out.put()),
                  "describing bindings"));
  return out;
}

}  // namespace

Result<std::shared_ptr<hal::Kernel>> Programs::load(const Program& program, const KernelDef& def) {
  if (def.kind != KernelDef::Kind::binary) {
    return make_error(Code::unsupported,
                      "a Vulkan device takes kernels as SPIR-V; '" + def.name + "' comes in another form");
  }
  return table_.load(program, def, [this](std::span<const KernelDef* const> defs) { return build(defs); });
}

Result<Programs::Kernels> Programs::build(std::span<const KernelDef* const> defs) {
  Hasher hasher;
  hasher.text(identity_);
  for (const KernelDef* d : defs) hasher.bytes(d->code);
  const Hash key = hasher.done();
  const auto kept = cache_.find(key);
  TERN_TRY(const Owned<VkPipelineCache> cache,
           open_cache(kept ? std::span<const std::byte>(*kept) : std::span<const std::byte>()));
  Kernels out;
  for (const KernelDef* d : defs) {
    TERN_TRY(auto kernel, make(*d, cache.get()));
    out.push_back(std::move(kernel));
  }
  const std::vector<std::byte> data = data_of(cache.get());
  if (!data.empty() && (!kept || data != *kept)) cache_.store(key, data);
  return out;
}

Result<std::shared_ptr<VulkanKernel>> Programs::make(const KernelDef& def, VkPipelineCache cache) {
  const Driver& vk = context_->vk;
  const auto refused = [&](VkResult code, std::string_view what) {
    return make_error(Code::unsupported, "the Vulkan driver makes no " + std::string(what) + " of kernel '" + def.name +
                                             "' (code " + std::to_string(code) + ")");
  };
  TERN_TRY(const std::vector<uint32_t> words, words_of(def));
  auto kernel = std::make_shared<VulkanKernel>();
  kernel->entry = def.entry;
  kernel->bindings = static_cast<uint32_t>(def.sig.bindings.size());
  kernel->texels = texels_of(words);
  TERN_TRY(kernel->layout, layout(kernel->bindings, kernel->texels));
  Owned<VkShaderModule> module(context_, vk.DestroyShaderModule);
  VkShaderModuleCreateInfo code{};
  code.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO;
  code.codeSize = def.code.size();
  code.pCode = words.data();
  const auto out_of_memory = [](VkResult r) {
    return r == VK_ERROR_OUT_OF_HOST_MEMORY || r == VK_ERROR_OUT_OF_DEVICE_MEMORY || r == VK_ERROR_DEVICE_LOST;
  };
  VkResult done = vk.CreateShaderModule(context_->device, &code, nullptr, module.put());
  if (out_of_memory(done)) return failure(done, "compiling " + def.name);
  if (done != VK_SUCCESS) return refused(done, "module");
  kernel->pipeline = Owned<VkPipeline>(context_, vk.DestroyPipeline);
  VkComputePipelineCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO;
  info.stage.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO;
  info.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
  info.stage.module = module.get();
  info.stage.pName = kernel->entry.c_str();
  info.layout = kernel->layout->pipeline.get();
  done = vk.CreateComputePipelines(context_->device, cache, 1, &info, nullptr, kernel->pipeline.put());
  if (out_of_memory(done)) return failure(done, "compiling " + def.name);
  if (done != VK_SUCCESS) return refused(done, "pipeline");
  return kernel;
}

Result<std::shared_ptr<const Layout>> Programs::layout(uint32_t bindings, const std::vector<uint32_t>& texels) {
  std::shared_ptr<const Layout>& known = layouts_[{bindings, texels}];
  if (known != nullptr) return known;
  const Driver& vk = context_->vk;
  auto out = std::make_shared<Layout>();
  out->pipeline = Owned<VkPipelineLayout>(context_, vk.DestroyPipelineLayout);
  std::vector<uint32_t> numbers(bindings);
  std::iota(numbers.begin(), numbers.end(), 0);
  TERN_TRY(out->set, set_layout(context_, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, numbers));
  if (!texels.empty()) {
    TERN_TRY(out->texels, set_layout(context_, VK_DESCRIPTOR_TYPE_UNIFORM_TEXEL_BUFFER, texels));
  }
  const VkPushConstantRange push{VK_SHADER_STAGE_COMPUTE_BIT, 0, kPushBytes};
  const VkDescriptorSetLayout sets[] = {out->set.get(), out->texels.get()};
  VkPipelineLayoutCreateInfo pipeline{};
  pipeline.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO;
  pipeline.setLayoutCount = texels.empty() ? 1 : 2;
  pipeline.pSetLayouts = sets;
  pipeline.pushConstantRangeCount = 1;
  pipeline.pPushConstantRanges = &push;
  TERN_OK(checked(vk.CreatePipelineLayout(context_->device, &pipeline, nullptr, out->pipeline.put()),
                  "describing bindings"));
  return known = std::move(out);
}

// Drivers look at the head of what was kept, and begin anew where it is not theirs.
Result<Owned<VkPipelineCache>> Programs::open_cache(std::span<const std::byte> kept) {
  Owned<VkPipelineCache> out(context_, context_->vk.DestroyPipelineCache);
  VkPipelineCacheCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO;
  info.initialDataSize = kept.size();
  info.pInitialData = kept.data();
  TERN_OK(checked(context_->vk.CreatePipelineCache(context_->device, &info, nullptr, out.put()),
                  "opening a pipeline cache"));
  return out;
}

std::vector<std::byte> Programs::data_of(VkPipelineCache cache) const {
  size_t bytes = 0;
  if (context_->vk.GetPipelineCacheData(context_->device, cache, &bytes, nullptr) != VK_SUCCESS) return {};
  std::vector<std::byte> out(bytes);
  if (context_->vk.GetPipelineCacheData(context_->device, cache, &bytes, out.data()) != VK_SUCCESS) return {};
  out.resize(bytes);
  return out;
}

}  // namespace tern::vulkan
