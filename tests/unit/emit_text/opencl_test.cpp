// Kernels as OpenCL C, in both forms, compiled and run by the driver, against kir's interpreter.
#include "backends/opencl/device.h"
#include "emit/kernel_text.h"
#include "unit/emit_text/cases.h"
#include "unit/places.h"

namespace tern::test {
namespace {

// All kernels as one program, run as one list.
struct Bench {
  std::unique_ptr<hal::Device> device;
  Program program;
  std::vector<std::unique_ptr<hal::Buffer>> buffers;
  std::vector<hal::Slot> slots;

  void add(const TextCase& c) {
    auto text = emit_text(c.kernel, device->caps());
    ASSERT_TRUE(text.ok()) << c.name << ": " << text.error().message();
    KernelDef def;
    def.name = c.name;
    def.kind = KernelDef::Kind::text;
    const auto bytes = std::as_bytes(std::span(text->text));
    def.code.assign(bytes.begin(), bytes.end());
    def.entry = text->entry, def.work_items = text->work_items;
    Launch launch;
    launch.kernel = static_cast<KernelId>(program.kernels.size());
    launch.groups = Dim(int64_t{c.groups});
    for (const uint32_t d : c.dims) launch.scalars.push_back(Dim(int64_t{d}));
    Step step;
    step.what = launch;
    for (const auto& b : c.buffers) {
      step.uses.push_back(
          {{static_cast<BufferId>(slots.size()), Dim(0), Dim(static_cast<int64_t>(b.size()))}, Access::update});
      auto buffer = device->allocate(b.size() + 64, hal::MemoryKind::device);
      ASSERT_TRUE(buffer.ok()) << buffer.error().message();
      slots.push_back({buffer->get(), 64});  // no binding begins where its buffer does
      buffers.push_back(std::move(*buffer));
    }
    program.kernels.push_back(std::move(def));
    program.lists[0].push_back(std::move(step));
  }
};

void run_and_compare(Bench& bench, const std::vector<TextCase>& cases) {
  std::vector<std::shared_ptr<hal::Kernel>> kernels;
  for (const KernelDef& def : bench.program.kernels) {
    auto kernel = bench.device->load(bench.program, def);
    ASSERT_TRUE(kernel.ok()) << kernel.error().message();
    kernels.push_back(std::move(*kernel));
  }
  auto commands = bench.device->record(bench.program, 0, kernels);
  ASSERT_TRUE(commands.ok()) << commands.error().message();
  auto queue = bench.device->queue();
  ASSERT_TRUE(queue.ok()) << queue.error().message();
  size_t slot = 0;
  for (const TextCase& c : cases) {
    for (const auto& b : c.buffers) ASSERT_TRUE((*queue)->upload(b, *bench.slots[slot++].buffer, 64).ok());
  }
  const auto ticket = (*queue)->submit(**commands, {bench.slots, {}}, {}, {});
  ASSERT_TRUE(ticket.ok()) << ticket.error().message();
  const Status done = (*queue)->wait(*ticket, -1);
  ASSERT_TRUE(done.ok()) << done.error().message();
  slot = 0;
  for (const TextCase& c : cases) {
    SCOPED_TRACE(c.name);
    Bytes expected = c.buffers, got = c.buffers;
    std::vector<kir::InterpBuffer> in;
    for (auto& b : expected) in.push_back({b.data(), b.size()});
    const Status ran = kir::interpret(c.kernel, in, c.dims, 0, c.groups);
    ASSERT_TRUE(ran.ok()) << ran.error().message() << "\n" << kir::print(c.kernel);
    for (auto& b : got) {
      const auto read = (*queue)->download(*bench.slots[slot++].buffer, 64, b);
      ASSERT_TRUE(read.ok() && (*queue)->wait(*read, -1).ok());
    }
    for (size_t i = 0; i < got.size(); ++i) {
      std::string where;
      EXPECT_TRUE(same(c.kernel.bindings[i], expected[i], got[i], &where))
          << where << "\n"
          << emit_text(c.kernel, bench.device->caps())->text;
    }
  }
}

class TextOpencl : public testing::TestWithParam<const char*> {};

TEST_P(TextOpencl, DoesWhatTheInterpreterDoes) {
  if (kSanitized) GTEST_SKIP() << "drivers are not made for sanitizers";
  auto device = opencl::open_opencl({0, GetParam(), ""});
  if (!device && device.error().code == Code::not_found && !promised("opencl"))
    GTEST_SKIP() << device.error().message();
  ASSERT_TRUE(device.ok()) << device.error().message();
  Bench bench;
  bench.device = std::move(*device);
  bench.program.dims = std::make_shared<DimTable>();
  bench.program.lists.resize(1);
  const std::vector<TextCase> cases = text_cases(bench.device->caps(), 4);
  ASSERT_FALSE(HasFatalFailure());
  for (const TextCase& c : cases) bench.add(c);
  ASSERT_FALSE(HasFatalFailure());
  run_and_compare(bench, cases);
}
INSTANTIATE_TEST_SUITE_P(Forms, TextOpencl, testing::Values("vectors", "lanes"));

}  // namespace
}  // namespace tern::test
