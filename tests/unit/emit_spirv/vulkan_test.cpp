// Modules made and run by the first Vulkan device, against kir's interpreter.
#include "backends/vulkan/device.h"
#include "unit/emit_spirv/modules.h"
#include "unit/emit_text/driver_bench.h"
#include "unit/places.h"
#include "unit/temp_folder.h"

namespace tern::test {
namespace {

using namespace kir;

DriverBench::Write writer(const Caps& caps) {
  return [caps](const Kernel& kernel) -> Result<KernelDef> {
    TERN_TRY(const KernelSpirv module, emit_spirv(kernel, caps));
    KernelDef def;
    def.kind = KernelDef::Kind::binary;
    const auto bytes = std::as_bytes(std::span(module.words));
    def.code.assign(bytes.begin(), bytes.end());
    def.entry = module.entry, def.work_items = module.invocations;
    return def;
  };
}

// Why tests of the device are skipped; empty, and the device: they are not.
std::string open(const std::string& form, std::unique_ptr<hal::Device>& device) {
  if (kSanitized) return "drivers are not made for sanitizers";
  auto opened = vulkan::open_vulkan({0, form, ""});
  if (opened) {
    device = std::move(*opened);
    return {};
  }
  EXPECT_EQ(opened.error().code, Code::not_found) << opened.error().message();
  EXPECT_FALSE(promised("vulkan")) << opened.error().message();
  return opened.error().message();
}

void compare(const std::string& form, const std::function<Caps(Caps)>& change, uint32_t random) {
  std::unique_ptr<hal::Device> device;
  if (const std::string why = open(form, device); device == nullptr) GTEST_SKIP() << why;
  DriverBench bench(std::move(device));
  const Caps caps = change(bench.device->caps());
  for (const TextCase& c : text_cases(caps, random)) bench.add(c, writer(caps));
  bench.add(alike_case(caps), writer(caps));
  ASSERT_FALSE(testing::Test::HasFatalFailure());
  bench.run_and_compare(print);
}

TEST(SpirvVulkan, DoesWhatTheInterpreterDoes) {
  compare("", [](Caps caps) { return caps; }, 40);
}
TEST(SpirvVulkan, WithoutSmallStorageSubgroupsAndWideTypes) { compare("staged", poor, 0); }
TEST(SpirvVulkan, WithProductsOfBytes) {
  compare(
      "",
      [](Caps caps) {
        caps.dot4 = Dot4::fast;
        return caps;
      },
      0);
}

// More groups than a dispatch takes.
TEST(SpirvVulkan, GroupsBeyondADispatch) {
  std::unique_ptr<hal::Device> device;
  if (const std::string why = open("", device); device == nullptr) GTEST_SKIP() << why;
  DriverBench bench(std::move(device));
  const Caps caps = bench.device->caps();
  constexpr uint32_t kMany = 2 * 65535 + 3;
  B b("numbers", 4, caps);
  Buffer y = buffer("y", kir::u32, kir::write);
  y.store(group() * 4 + lane(), group() * 10 + lane());
  auto kernel = b.finish();
  ASSERT_TRUE(kernel.ok()) << kernel.error().message();
  bench.add({"numbers", *kernel, {std::vector<std::byte>(kMany * 16)}, {}, kMany}, writer(caps));
  Bytes left;
  bench.run(left);
  ASSERT_FALSE(HasFatalFailure());
  std::vector<uint32_t> got(kMany * 4);
  std::memcpy(got.data(), left[0].data(), left[0].size());
  for (uint32_t i = 0; i < got.size(); ++i) ASSERT_EQ(got[i], i / 4 * 10 + i % 4) << i;
}

// A run that was refused leaves nothing behind: the next with the same slots is refused as well.
TEST(VulkanDevice, RefusesABindingEachTime) {
  std::unique_ptr<hal::Device> device;
  if (const std::string why = open("", device); device == nullptr) GTEST_SKIP() << why;
  DriverBench bench(std::move(device));
  const Caps caps = bench.device->caps();
  if (caps.offset_alignment <= 4) GTEST_SKIP() << "the device takes every offset";
  bench.add(alike_case(caps), writer(caps));
  const auto commands = bench.record();
  ASSERT_TRUE(commands.ok()) << commands.error().message();
  const auto queue = bench.device->queue();
  ASSERT_TRUE(queue.ok()) << queue.error().message();
  const auto run = [&] {
    const auto ticket = (*queue)->submit(**commands, {bench.slots, {}}, {}, {});
    return ticket ? (*queue)->wait(*ticket, -1) : Status(ticket.error());
  };
  ASSERT_TRUE(run().ok());
  bench.slots[0].offset = 4;
  for (int time = 0; time < 2; ++time) EXPECT_FALSE(run().ok()) << time;
  bench.slots[0].offset = DriverBench::kOffset;
  EXPECT_TRUE(run().ok());
}

TEST(VulkanDevice, FailsWithReasonsAndGoesOn) {
  std::unique_ptr<hal::Device> device;
  if (const std::string why = open("", device); device == nullptr) GTEST_SKIP() << why;
  const uint64_t before = device->memory().available;
  const auto huge = device->allocate(uint64_t{1} << 50, hal::MemoryKind::device);
  ASSERT_FALSE(huge.ok());
  EXPECT_EQ(huge.error().code, Code::out_of_memory);
  EXPECT_EQ(huge.error().need, uint64_t{1} << 50);
  EXPECT_GT(huge.error().have, 0u);

  Program program;
  KernelDef& def = program.kernels.emplace_back();
  def.kind = KernelDef::Kind::binary;
  def.name = "zeros", def.entry = "zeros";
  def.code.resize(64);
  const auto zeros = device->load(program, def);
  ASSERT_FALSE(zeros.ok());
  EXPECT_EQ(zeros.error().code, Code::malformed);
  EXPECT_NE(zeros.error().message().find("zeros"), std::string::npos);
  def.kind = KernelDef::Kind::text;
  EXPECT_EQ(device->load(program, def).error().code, Code::unsupported);

  const auto small = device->allocate(1000, hal::MemoryKind::device);
  ASSERT_TRUE(small.ok()) << small.error().message();
  EXPECT_LT(device->memory().available, before);

  EXPECT_EQ(vulkan::open_vulkan({97, "", ""}).error().code, Code::not_found);
  EXPECT_EQ(vulkan::open_vulkan({0, "sideways", ""}).error().code, Code::invalid);
}

// What the driver made is kept, taken again, and no harm where it is damaged.
TEST(VulkanDevice, KeepsPipelines) {
  std::unique_ptr<hal::Device> device;
  if (const std::string why = open("", device); device == nullptr) GTEST_SKIP() << why;
  const TempFolder folder;
  const TextCase c = alike_case(device->caps());
  for (int start = 0; start < 3; ++start) {
    auto opened = vulkan::open_vulkan({0, "", folder.file("kept")});
    ASSERT_TRUE(opened.ok()) << opened.error().message();
    DriverBench bench(std::move(*opened));
    bench.add(c, writer(bench.device->caps()));
    bench.run_and_compare(print);
    ASSERT_FALSE(HasFailure());
    size_t files = 0;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder.file("kept"))) {
      if (!entry.is_regular_file()) continue;
      ++files;
      if (start == 1) std::ofstream(entry.path(), std::ios::binary) << "damaged";
    }
    EXPECT_EQ(files, 1u);
  }
}

// Bytes that pass through the staging buffer in several pieces, and a copy on the device.
TEST(VulkanDevice, MovesBytes) {
  for (const std::string form : {"", "staged"}) {
    SCOPED_TRACE(form);
    std::unique_ptr<hal::Device> device;
    if (const std::string why = open(form, device); device == nullptr) GTEST_SKIP() << why;
    constexpr size_t kBytes = (9 << 20) + 5;
    std::vector<std::byte> in(kBytes), out(kBytes - 3);
    Random r(5);
    for (auto& b : in) b = static_cast<std::byte>(r.next());
    const auto a = device->allocate(kBytes, hal::MemoryKind::device),
               b = device->allocate(kBytes, hal::MemoryKind::device);
    ASSERT_TRUE(a.ok() && b.ok());
    const auto queue = device->queue();
    ASSERT_TRUE(queue.ok());
    ASSERT_TRUE((*queue)->upload(in, **a, 0).ok());
    ASSERT_TRUE((*queue)->copy(**a, 3, **b, 1, kBytes - 3).ok());
    const auto read = (*queue)->download(**b, 1, out);
    ASSERT_TRUE(read.ok() && (*queue)->wait(*read, -1).ok());
    EXPECT_TRUE(std::equal(out.begin(), out.end(), in.begin() + 3));
    EXPECT_FALSE((*queue)->upload(in, **a, 1).ok());
  }
}

}  // namespace
}  // namespace tern::test
