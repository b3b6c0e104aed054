// Kernels as OpenCL C, in both forms, compiled and run by the driver, against kir's interpreter.
#include "backends/opencl/device.h"
#include "emit/kernel_text.h"
#include "unit/emit_text/driver_bench.h"
#include "unit/places.h"

namespace tern::test {
namespace {

class TextOpencl : public testing::TestWithParam<const char*> {};

TEST_P(TextOpencl, DoesWhatTheInterpreterDoes) {
  if (kSanitized) GTEST_SKIP() << "drivers are not made for sanitizers";
  auto device = opencl::open_opencl({0, GetParam(), ""});
  if (!device && device.error().code == Code::not_found && !promised("opencl"))
    GTEST_SKIP() << device.error().message();
  ASSERT_TRUE(device.ok()) << device.error().message();
  DriverBench bench(std::move(*device));
  const Caps& caps = bench.device->caps();
  const std::vector<TextCase> cases = text_cases(caps, 4);
  ASSERT_FALSE(HasFatalFailure());
  for (const TextCase& c : cases) {
    bench.add(c, [&](const kir::Kernel& kernel) -> Result<KernelDef> {
      TERN_TRY(const KernelText text, emit_text(kernel, caps));
      KernelDef def;
      def.kind = KernelDef::Kind::text;
      const auto bytes = std::as_bytes(std::span(text.text));
      def.code.assign(bytes.begin(), bytes.end());
      def.entry = text.entry, def.work_items = text.work_items;
      return def;
    });
  }
  ASSERT_FALSE(HasFatalFailure());
  bench.run_and_compare([&](const kir::Kernel& kernel) { return emit_text(kernel, caps)->text; });
}
INSTANTIATE_TEST_SUITE_P(Forms, TextOpencl, testing::Values("vectors", "lanes"));

}  // namespace
}  // namespace tern::test
