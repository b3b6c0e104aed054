#include "backends/vulkan/commands.h"

#include <algorithm>
#include <chrono>

namespace tern::vulkan {
namespace {

// Steps in a command buffer: what is submitted runs to its end, so cancelled runs end behind one.
constexpr uint32_t kPiece = 64;

uint64_t whole_words(uint64_t bytes) { return std::max<uint64_t>(4, (bytes + 3) / 4 * 4); }

VkWriteDescriptorSet write_of(VkDescriptorSet set, uint32_t number, VkDescriptorType type) {
  VkWriteDescriptorSet out{};
  out.sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET;
  out.dstSet = set;
  out.dstBinding = number;
  out.descriptorCount = 1;
  out.descriptorType = type;
  return out;
}

}  // namespace

Result<std::unique_ptr<VulkanCommands>> VulkanCommands::record(std::shared_ptr<Context> context, const Program& program,
                                                               uint32_t list,
                                                               std::span<const std::shared_ptr<hal::Kernel>> kernels) {
  auto out = std::make_unique<VulkanCommands>();
  out->context_ = std::move(context);
  TERN_TRY(out->submitter_, Submitter::open(out->context_));
  TERN_TRY(std::vector<hal::RecordedStep> steps, hal::record_steps(program, list, kernels.size(), "a Vulkan device"));
  for (hal::RecordedStep& step : steps) {
    Item item;
    if (step.kind == hal::RecordedStep::Kind::launch) {
      item.kernel = std::dynamic_pointer_cast<VulkanKernel>(kernels[step.kernel]);
      if (!item.kernel) return make_error(Code::internal, "a launch names a kernel of another device");
      if (item.kernel->bindings != step.uses.size())
        return make_error(Code::internal, "a launch of " + item.kernel->entry + " has not the bindings of its kernel");
      item.words.resize(step.scalars.size() + 1);
    }
    item.placed.resize(step.uses.size());
    item.step = std::move(step);
    out->items_.push_back(std::move(item));
  }
  TERN_OK(out->make_sets());
  return out;
}

Status VulkanCommands::make_sets() {
  const Driver& vk = context_->vk;
  std::vector<VkDescriptorSetLayout> layouts;
  uint32_t bindings = 0, texels = 0;
  for (const Item& item : items_) {
    if (!item.kernel) continue;
    layouts.push_back(item.kernel->layout->set.get());
    bindings += item.kernel->bindings;
    texels += static_cast<uint32_t>(item.kernel->texels.size());
    if (!item.kernel->texels.empty()) layouts.push_back(item.kernel->layout->texels.get());
  }
  if (layouts.empty()) return ok();
  sets_ = Owned<VkDescriptorPool>(context_, vk.DestroyDescriptorPool);
  const VkDescriptorPoolSize sizes[] = {{VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, std::max(1u, bindings)},
                                        {VK_DESCRIPTOR_TYPE_UNIFORM_TEXEL_BUFFER, std::max(1u, texels)}};
  VkDescriptorPoolCreateInfo pool{};
  pool.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO;
  pool.maxSets = static_cast<uint32_t>(layouts.size());
  pool.poolSizeCount = 2;
  pool.pPoolSizes = sizes;
  TERN_OK(checked(vk.CreateDescriptorPool(context_->device, &pool, nullptr, sets_.put()), "making room for bindings"));
  VkDescriptorSetAllocateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO;
  info.descriptorPool = sets_.get();
  info.descriptorSetCount = pool.maxSets;
  info.pSetLayouts = layouts.data();
  std::vector<VkDescriptorSet> sets(layouts.size());
  TERN_OK(checked(vk.AllocateDescriptorSets(context_->device, &info, sets.data()), "making room for bindings"));
  size_t next = 0;
  for (Item& item : items_) {
    if (!item.kernel) continue;
    item.sets[0] = sets[next++];
    if (!item.kernel->texels.empty()) item.sets[1] = sets[next++];
  }
  return ok();
}

Result<bool> VulkanCommands::resolve(Item& item, const hal::Binding& binding) {
  bool changed = false, moved = false;
  const auto now = [&](auto& place, const auto& value) {
    if (place == value) return false;
    place = value;
    return true;
  };
  for (size_t i = 0; i < item.placed.size(); ++i) {
    TERN_TRY(const hal::Placed p, hal::place(item.step.uses[i], binding));
    const auto& buffer = static_cast<const VulkanBuffer&>(*p.buffer);
    moved |= now(item.placed[i], Place{buffer.serial(), buffer.handle(), p.offset, p.bytes});
  }
  if (item.kernel) {
    TERN_TRY(const uint32_t groups, hal::groups_of(item.step.groups, binding.block));
    changed |= now(item.groups, groups);
    for (size_t i = 0; i < item.step.scalars.size(); ++i) {
      TERN_TRY(const uint32_t word, hal::scalar_word(item.step.scalars[i], binding.block));
      changed |= now(item.words[i + 1], word);
    }
    if (moved) {
      TERN_OK(check(item));
      point_storage(item);
      TERN_OK(point_texels(item));
    }
  }
  return changed || moved;
}

Status VulkanCommands::check(const Item& item) const {
  for (const Place& p : item.placed) {
    const uint64_t bytes = whole_words(p.bytes);
    if (bytes > context_->most_binding) {
      return Error{Code::limit,
                   "a binding of " + item.kernel->entry + " has " + std::to_string(bytes) +
                       " bytes; the device takes " + std::to_string(context_->most_binding),
                   {},
                   bytes,
                   context_->most_binding};
    }
    if (p.offset % context_->offset_alignment != 0) {
      return make_error(Code::internal, "a binding of " + item.kernel->entry + " begins at byte " +
                                            std::to_string(p.offset) + "; the device wants multiples of " +
                                            std::to_string(context_->offset_alignment));
    }
  }
  return ok();
}

void VulkanCommands::point_storage(const Item& item) const {
  std::vector<VkDescriptorBufferInfo> where;
  for (const Place& p : item.placed) where.push_back({p.handle, p.offset, whole_words(p.bytes)});
  std::vector<VkWriteDescriptorSet> writes;
  for (size_t i = 0; i < where.size(); ++i) {
    writes.push_back(write_of(item.sets[0], static_cast<uint32_t>(i), VK_DESCRIPTOR_TYPE_STORAGE_BUFFER));
    writes.back().pBufferInfo = &where[i];
  }
  context_->vk.UpdateDescriptorSets(context_->device, static_cast<uint32_t>(writes.size()), writes.data(), 0, nullptr);
}

Status VulkanCommands::point_texels(Item& item) const {
  constexpr VkFormat kFormats[] = {VK_FORMAT_R32_UINT, VK_FORMAT_R32G32_UINT, VK_FORMAT_R32G32B32A32_UINT};
  constexpr size_t kWord = 2;  // the logarithm of the first one's bytes
  item.views.clear();
  const std::vector<uint32_t>& texels = item.kernel->texels;
  for (const uint32_t number : texels) {
    const size_t binding = number / 8, logarithm = number % 8;
    if (binding >= item.placed.size() || logarithm < kWord || logarithm - kWord >= std::size(kFormats))
      return make_error(Code::internal, "a module of " + item.kernel->entry + " has a binding that is not there");
    const Place& p = item.placed[binding];
    const uint64_t texel = uint64_t{1} << logarithm;  // buffers end at a whole one (VulkanBuffer::allocate)
    VkBufferViewCreateInfo info{};
    info.sType = VK_STRUCTURE_TYPE_BUFFER_VIEW_CREATE_INFO;
    info.buffer = p.handle;
    info.format = kFormats[logarithm - kWord];
    info.offset = p.offset;
    info.range = (whole_words(p.bytes) + texel - 1) / texel * texel;
    Owned<VkBufferView> view(context_, context_->vk.DestroyBufferView);
    TERN_OK(checked(context_->vk.CreateBufferView(context_->device, &info, nullptr, view.put()), "viewing a buffer"));
    item.views.push_back(std::move(view));
  }
  std::vector<VkBufferView> views;
  for (const auto& view : item.views) views.push_back(view.get());
  std::vector<VkWriteDescriptorSet> writes;
  for (size_t i = 0; i < views.size(); ++i) {
    writes.push_back(write_of(item.sets[1], texels[i], VK_DESCRIPTOR_TYPE_UNIFORM_TEXEL_BUFFER));
    writes.back().pTexelBufferView = &views[i];
  }
  context_->vk.UpdateDescriptorSets(context_->device, static_cast<uint32_t>(writes.size()), writes.data(), 0, nullptr);
  return ok();
}

void VulkanCommands::encode(VkCommandBuffer buffer, Item& item) {
  const Driver& vk = context_->vk;
  if (!item.kernel) {
    const Place& first = item.placed[0];
    if (first.bytes == 0) return;
    if (item.step.kind == hal::RecordedStep::Kind::fill)
      return vk.CmdFillBuffer(buffer, first.handle, first.offset, whole_words(first.bytes), item.step.word);
    const VkBufferCopy region{first.offset, item.placed[1].offset, first.bytes};
    return vk.CmdCopyBuffer(buffer, first.handle, item.placed[1].handle, 1, &region);
  }
  if (item.groups == 0) return;
  const VkPipelineLayout layout = item.kernel->layout->pipeline.get();
  vk.CmdBindPipeline(buffer, VK_PIPELINE_BIND_POINT_COMPUTE, item.kernel->pipeline.get());
  vk.CmdBindDescriptorSets(buffer, VK_PIPELINE_BIND_POINT_COMPUTE, layout, 0, item.sets[1] == VK_NULL_HANDLE ? 1 : 2,
                           item.sets, 0, nullptr);
  const auto bytes = static_cast<uint32_t>(item.words.size() * sizeof(uint32_t));
  for (uint64_t first = 0; first < item.groups; first += context_->most_groups) {
    item.words[0] = static_cast<uint32_t>(first);
    vk.CmdPushConstants(buffer, layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, bytes, item.words.data());
    vk.CmdDispatch(buffer, static_cast<uint32_t>(std::min<uint64_t>(context_->most_groups, item.groups - first)), 1, 1);
  }
}

Status VulkanCommands::record_pieces(uint32_t steps) {
  piece_ = 0;
  const size_t pieces = (items_.size() + steps - 1) / steps;
  if (buffers_.size() < pieces) {
    TERN_TRY(const std::vector<VkCommandBuffer> more,
             submitter_.buffers(static_cast<uint32_t>(pieces - buffers_.size())));
    buffers_.insert(buffers_.end(), more.begin(), more.end());
  }
  for (size_t piece = 0; piece < pieces; ++piece) {
    const VkCommandBuffer buffer = buffers_[piece];
    TERN_OK(submitter_.begin(buffer));
    const size_t first = piece * steps, end = std::min(items_.size(), first + steps);
    for (size_t i = first; i < end; ++i) {
      if (i == first || items_[i].step.phase != items_[i - 1].step.phase) submitter_.barrier(buffer);
      encode(buffer, items_[i]);
    }
    TERN_OK(submitter_.end(buffer));
  }
  piece_ = steps;
  return ok();
}

Status VulkanCommands::run_pieces(const hal::SubmitOptions& options) {
  using Clock = std::chrono::steady_clock;
  const std::span<const VkCommandBuffer> all(buffers_.data(), (items_.size() + piece_ - 1) / piece_);
  if (options.cancel == nullptr && options.profile == nullptr) return submitter_.run(all);
  for (size_t i = 0; i < all.size(); ++i) {
    if (options.cancel != nullptr && options.cancel->load(std::memory_order_relaxed))
      return make_error(Code::cancelled, "run cancelled");
    const auto start = Clock::now();
    TERN_OK(submitter_.run(all.subspan(i, 1)));
    if (options.profile == nullptr) continue;
    options.profile->push_back({items_[i].step.step, std::chrono::duration<double>(Clock::now() - start).count()});
  }
  return ok();
}

Status VulkanCommands::run(const hal::Binding& binding, const hal::SubmitOptions& options) {
  if (options.profile != nullptr) options.profile->clear();
  const uint32_t steps = options.profile != nullptr ? 1 : kPiece;
  bool changed = piece_ != steps;
  for (Item& item : items_) {
    const auto is_new = resolve(item, binding);
    if (!is_new) {  // nothing of it counts as said to the driver
      piece_ = 0;
      item.placed.assign(item.placed.size(), {});
      return is_new.error();
    }
    changed |= *is_new;
  }
  if (changed) TERN_OK(record_pieces(steps));
  return run_pieces(options);
}

}  // namespace tern::vulkan
