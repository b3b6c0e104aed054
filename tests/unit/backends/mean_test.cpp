// The mean device keeps what it says: a list that breaks one of its limits is refused with a typed error, and what the
// compiler makes for it breaks none.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "backends/mean/device.h"
#include "engine/executable.h"
#include "tern/ops/elementwise.h"
#include "tern/ops/linear.h"
#include "tern/ops/reduce.h"
#include "tern/session.h"
#include "unit/sanitized.h"

namespace tern {
namespace {

using mean_device::MeanOptions;

std::shared_ptr<hal::Device> open(const MeanOptions& options) {
  auto device = mean_device::open_mean(options);
  EXPECT_TRUE(device.ok()) << (device.ok() ? "" : device.error().message());
  return std::move(*device);
}

Options compile_options() {
  Options options;
  options.plugin_path = TERN_LLVM_PLUGIN_PATH;
  options.cache_dir = "none";
  return options;
}

constexpr int64_t kMost = 4096;

// y = x * 2 + 1 over N floats: one launch that reads x and writes y.
Result<Executable> one_launch(const std::shared_ptr<hal::Device>& device) {
  Builder b;
  const Value x = b.input("x", DType::f32, {b.symbol("N", 1, kMost)});
  b.output("y", add(b, mul(b, x, 2), 1));
  TERN_TRY(Graph graph, b.finish());
  return compile(std::move(graph), Device(device), compile_options());
}

// A compiled list that a test may bend, on a device that may be stricter than the one it was compiled for.
class Bench {
 public:
  explicit Bench(const MeanOptions& options = {}) : device_(open(options)) {
    auto exe = one_launch(open({}));
    EXPECT_TRUE(exe.ok()) << (exe.ok() ? "" : exe.error().message());
    program = exe->impl()->loaded->program;
    kernels_ = exe->impl()->loaded->kernels;
    EXPECT_EQ(step().uses.size(), 2u) << program_text(program);
    queue = std::move(*device_->queue());
  }

  Step& step() { return program.lists[program.ranges[0].list].at(0); }
  Signature& signature() { return program.kernels[std::get<Launch>(step().what).kernel].sig; }
  std::unique_ptr<hal::Buffer> buffer(uint64_t bytes) {
    auto made = device_->allocate(bytes, hal::MemoryKind::device);
    EXPECT_TRUE(made.ok()) << (made.ok() ? "" : made.error().message());
    return std::move(*made);
  }
  // Slots of the step's bindings, in order.
  Status submit(int64_t n, std::vector<hal::Slot> slots) {
    TERN_TRY(commands_, device_->record(program, program.ranges[0].list, kernels_));
    std::vector<hal::Slot> all(program.buffers.size());
    for (size_t i = 0; i < slots.size(); ++i) all[step().uses[i].ref.id] = slots[i];
    const std::vector<int64_t> symbols = {n};
    std::vector<int64_t> block;
    for (const Dim d : program.block) block.push_back(*program.dims->eval(d, symbols));
    TERN_TRY(ticket, queue->submit(*commands_, {all, block}, {}, {}));
    return queue->wait(ticket, -1);
  }
  std::vector<float> run(int64_t n, hal::Slot x, hal::Slot y) {
    const std::vector<float> in(static_cast<size_t>(n), 3);
    std::vector<float> out(in.size());
    EXPECT_TRUE(queue->wait(*queue->upload(std::as_bytes(std::span(in)), *x.buffer, x.offset), -1).ok());
    const Status done = submit(n, reads_first() ? std::vector{x, y} : std::vector{y, x});
    EXPECT_TRUE(done.ok()) << (done.ok() ? "" : done.error().message());
    EXPECT_TRUE(queue->wait(*queue->download(*y.buffer, y.offset, std::as_writable_bytes(std::span(out))), -1).ok());
    return out;
  }
  bool reads_first() { return step().uses[0].access == Access::read; }

  Program program;
  std::unique_ptr<hal::Queue> queue;
  hal::Ticket ticket = 0;

 private:
  std::shared_ptr<hal::Device> device_;
  std::vector<std::shared_ptr<hal::Kernel>> kernels_;
  std::unique_ptr<hal::Commands> commands_;
};

void expect_refused(const Status& status, Code code, const std::string& words) {
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, code) << status.error().message();
  EXPECT_NE(status.error().text.find(words), std::string::npos) << status.error().text;
}

TEST(Mean, RunsWhatKeepsItsLimits) {
  Bench b;
  const auto x = b.buffer(kMost * 4), y = b.buffer(kMost * 4);
  EXPECT_EQ(b.run(100, {x.get(), 0}, {y.get(), 0}), std::vector<float>(100, 7));
  EXPECT_EQ(b.run(64, {x.get(), 256}, {y.get(), 512}), std::vector<float>(64, 7));
}

TEST(Mean, RefusesALargeBinding) {
  MeanOptions strict;
  strict.max_binding_bytes = 1024;
  Bench b(strict);
  const auto x = b.buffer(kMost * 4), y = b.buffer(kMost * 4);
  EXPECT_EQ(b.run(256, {x.get(), 0}, {y.get(), 0}).back(), 7);
  const Status refused = b.submit(257, {{x.get(), 0}, {y.get(), 0}});
  expect_refused(refused, Code::limit, "has 1028 bytes, the device takes 1024");
  EXPECT_EQ(refused.error().need, 1028u);
  EXPECT_EQ(refused.error().have, 1024u);
}

TEST(Mean, RefusesManyBindingsWhenRecorded) {
  MeanOptions strict;
  strict.max_bindings = 1;
  Bench b(strict);
  const auto x = b.buffer(1024), y = b.buffer(1024);
  expect_refused(b.submit(1, {{x.get(), 0}, {y.get(), 0}}), Code::limit, "2 bindings, the device takes 1");
}

TEST(Mean, RefusesUnalignedOffsets) {
  Bench b;
  const auto x = b.buffer(1024), y = b.buffer(1024);
  expect_refused(b.submit(4, {{x.get(), 128}, {y.get(), 0}}), Code::invalid, "no multiple of 256");
}

TEST(Mean, RefusesMixedAccessToOneBuffer) {
  Bench b;
  const auto arena = b.buffer(8192);
  const hal::Slot first{arena.get(), 0}, second{arena.get(), 4096};
  expect_refused(b.submit(16, {first, second}), Code::invalid, "bound for reading and for writing in one launch");
  // Both read-write: allowed, and the numbers are the same.
  for (Access& a : b.signature().bindings) a = Access::update;
  EXPECT_EQ(b.run(16, first, second), std::vector<float>(16, 7));
}

TEST(Mean, RefusesWritableBindingsOfTheSameBytes) {
  Bench b;
  const auto arena = b.buffer(8192);
  for (Access& a : b.signature().bindings) a = Access::update;
  expect_refused(b.submit(128, {{arena.get(), 0}, {arena.get(), 256}}), Code::invalid,
                 "writable bindings of the same bytes");
  EXPECT_TRUE(b.submit(64, {{arena.get(), 0}, {arena.get(), 256}}).ok());
}

TEST(Mean, RefusesToWriteThroughABindingForReading) {
  Bench b;
  const auto x = b.buffer(1024), y = b.buffer(1024);
  for (Access& a : b.signature().bindings) a = Access::read;
  expect_refused(b.submit(4, {{x.get(), 0}, {y.get(), 0}}), Code::invalid, "through a binding for reading");
}

TEST(Mean, FoldsGroupsIntoTwoDimensionsAndRefusesMore) {
  MeanOptions strict;
  strict.max_groups = 1;
  Bench b(strict);
  const auto x = b.buffer(kMost * 4), y = b.buffer(kMost * 4);
  EXPECT_EQ(b.run(1, {x.get(), 0}, {y.get(), 0}).back(), 7);
  expect_refused(b.submit(kMost, {{x.get(), 0}, {y.get(), 0}}), Code::limit, "groups, the device takes 1 in each");
}

TEST(Mean, MemoryEndsAndComesBack) {
  MeanOptions small;
  small.memory_limit = 4096;
  const auto device = open(small);
  auto held = device->allocate(3000, hal::MemoryKind::device);
  ASSERT_TRUE(held.ok());
  EXPECT_EQ(device->memory().available, 1096u);
  const auto refused = device->allocate(1097, hal::MemoryKind::device);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, Code::out_of_memory);
  EXPECT_EQ(refused.error().need, 1097u);
  EXPECT_EQ(refused.error().have, 1096u);
  EXPECT_TRUE((*held)->host().empty());
  held->reset();
  EXPECT_TRUE(device->allocate(4096, hal::MemoryKind::device).ok());
}

TEST(Mean, WorkIsLate) {
  MeanOptions slow;
  slow.delay_us = 20000;
  const auto device = open(slow);
  auto queue = std::move(*device->queue());
  auto buffer = std::move(*device->allocate(4, hal::MemoryKind::device));
  std::vector<std::byte> from(4, std::byte{1}), to(4);
  const hal::Ticket up = *queue->upload(from, *buffer, 0);
  const hal::Ticket down = *queue->download(*buffer, 0, to);
  const Status early = queue->wait(down, 0);
  ASSERT_FALSE(early.ok());
  EXPECT_EQ(early.error().code, Code::limit);
  EXPECT_EQ(to, std::vector<std::byte>(4)) << "nothing has come back yet";
  if (!test::kSanitized) from.assign(4, std::byte{2});  // a caller that does not wait for its ticket sends this: a race
  EXPECT_TRUE(queue->wait(up, -1).ok());
  EXPECT_TRUE(queue->wait(down, -1).ok());
  EXPECT_EQ(to, from);
}

TEST(Mean, InjectedFailuresAreTypedAndPass) {
  MeanOptions options;
  options.failures = std::make_shared<MeanOptions::Failures>();
  const auto device = open(options);
  options.failures->load = 1;
  EXPECT_EQ(one_launch(device).error().code, Code::device_lost);
  auto exe = one_launch(device);
  ASSERT_TRUE(exe.ok()) << exe.error().message();
  options.failures->allocation = 2;
  EXPECT_EQ(exe->open(exe->params()).error().code, Code::out_of_memory);
  auto session = exe->open(exe->params());
  auto other = exe->open(exe->params());
  ASSERT_TRUE(session.ok() && other.ok());
  const std::vector<float> x = {1, 2};
  std::vector<float> y(2);
  const std::vector<IoBinding> io = {{*exe->io("x"), view<float>(x, {2})},
                                     {*exe->io("y"), mutable_view<float>(y, {2})}};
  options.failures->submission = 1;
  EXPECT_EQ(session->run(io).error().code, Code::device_lost);
  EXPECT_TRUE(other->run(io).ok()) << "the other session lives";
  EXPECT_TRUE(session->run(io).ok());
  EXPECT_EQ(y, (std::vector<float>{3, 5}));
}

// ---- what the compiler does with the limits

TEST(MeanCompile, NarrowsNoDoubleAndNoLong) {
  for (const DType dtype : {DType::f64, DType::i64}) {
    Builder b;
    b.scope("where");
    const Value x = b.input("x", dtype, {b.symbol("N", 1, 8)});
    b.output("y", mul(b, x, x));
    const auto exe = compile(std::move(*b.finish()), Device(open({})), compile_options());
    ASSERT_FALSE(exe.ok()) << dtype_name(dtype);
    EXPECT_EQ(exe.error().code, Code::unsupported);
    EXPECT_NE(exe.error().message().find("where"), std::string::npos) << exe.error().message();
  }
}

TEST(MeanCompile, HalvesComeOutOfWords) {
  Builder b;
  const Value x = b.input("x", DType::f16, {4});
  b.output("y", cast(b, mul(b, x, x), DType::f32));
  auto exe = compile(std::move(*b.finish()), Device(open({})), compile_options());
  ASSERT_TRUE(exe.ok()) << exe.error().message();
  auto session = exe->open(exe->params());
  ASSERT_TRUE(session.ok());
  const std::vector<uint16_t> bits = {0x3c00, 0x4000, 0xc200, 0x3800};  // 1, 2, -3, 0.5
  std::vector<float> y(4);
  const TensorView in{DType::f16, {4}, std::as_bytes(std::span(bits)), nullptr};
  ASSERT_TRUE(session->run({{{*exe->io("x"), in}, {*exe->io("y"), mutable_view<float>(y, {4})}}}).ok());
  EXPECT_EQ(y, (std::vector<float>{1, 4, 9, 0.25f}));
}

TEST(MeanCompile, NamesTheLargestSizeThatFits) {
  Builder b;
  const Value x = b.input("x", DType::f32, {b.symbol("N", 1, 1000), 1024});
  b.output("y", add(b, x, x));
  const auto exe = compile(std::move(*b.finish()), Device(open({})), compile_options());
  ASSERT_FALSE(exe.ok());
  EXPECT_EQ(exe.error().code, Code::limit);
  EXPECT_EQ(exe.error().need, 4096000u);
  EXPECT_EQ(exe.error().have, uint64_t{1} << 20);
  EXPECT_NE(exe.error().text.find("N <= 256 would fit"), std::string::npos) << exe.error().text;
}

// A launch that reads one temporary and writes another: both lie in the arena, so both are bound read-write; the uses
// keep what is really done.
TEST(MeanCompile, BindsTemporariesReadWrite) {
  Builder b;
  const Value x = b.input("x", DType::f32, {b.symbol("N", 1, 64), 64});
  Value v = x;
  for (int i = 0; i < 3; ++i) v = sub(b, v, reduce_max(b, v, {1}, true));
  b.output("y", v);
  auto exe = compile(std::move(*b.finish()), Device(open({})), compile_options());
  ASSERT_TRUE(exe.ok()) << exe.error().message();
  const Program& p = exe->impl()->loaded->program;
  int widened = 0;
  for (const Step& step : p.lists[p.ranges[0].list]) {
    const auto* launch = std::get_if<Launch>(&step.what);
    if (launch == nullptr) continue;
    const Signature& sig = p.kernels[launch->kernel].sig;
    bool writes = false;
    for (const Use& use : step.uses)
      writes |= use.access != Access::read && p.buffers[use.ref.id].origin == Origin::temp;
    for (size_t i = 0; i < step.uses.size(); ++i) {
      const bool temp = p.buffers[step.uses[i].ref.id].origin == Origin::temp;
      if (step.uses[i].access != Access::read) continue;
      EXPECT_EQ(sig.bindings[i], temp && writes ? Access::update : Access::read) << step.label;
      widened += temp && writes;
    }
  }
  EXPECT_GT(widened, 0) << program_text(p);
  auto session = exe->open(exe->params());
  ASSERT_TRUE(session.ok());
  const std::vector<float> in(128, 5);
  std::vector<float> out(128, 1);
  const Status done =
      session->run({{{*exe->io("x"), view<float>(in, {2, 64})}, {*exe->io("y"), mutable_view<float>(out, {2, 64})}}});
  ASSERT_TRUE(done.ok()) << done.error().message();
  EXPECT_EQ(out, std::vector<float>(128, 0));
}

// A product of a value with itself: both operands would be writable bindings of the same bytes.
TEST(MeanCompile, BindsWhatIsReadTwiceOnce) {
  constexpr size_t kSide = 8;
  Builder b;
  const Value x = b.input("x", DType::f32, {kSide, kSide});
  const Value v = sub(b, x, reduce_max(b, x, {1}, true));
  b.output("y", reduce_sum(b, tanh(b, matmul(b, v, v)), {1}));
  auto exe = compile(std::move(*b.finish()), Device(open({})), compile_options());
  ASSERT_TRUE(exe.ok()) << exe.error().message();
  auto session = exe->open(exe->params());
  ASSERT_TRUE(session.ok());
  std::vector<float> in(kSide * kSide), out(kSide);
  for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<float>(i * 7 % 11) / 16;
  const Status done = session->run(
      {{{*exe->io("x"), view<float>(in, {kSide, kSide})}, {*exe->io("y"), mutable_view<float>(out, {kSide})}}});
  ASSERT_TRUE(done.ok()) << done.error().message();
  for (size_t r = 0; r < kSide; ++r) {
    const float top =
        *std::max_element(in.begin() + static_cast<long>(r * kSide), in.begin() + static_cast<long>((r + 1) * kSide));
    double want = 0;
    for (size_t c = 0; c < kSide; ++c) {
      double dot = 0;
      for (size_t k = 0; k < kSide; ++k) {
        const float other = *std::max_element(in.begin() + static_cast<long>(k * kSide),
                                              in.begin() + static_cast<long>((k + 1) * kSide));
        dot += double{in[r * kSide + k] - top} * double{in[k * kSide + c] - other};
      }
      want += std::tanh(dot);
    }
    EXPECT_NEAR(out[r], want, 1e-4) << r;
  }
}

}  // namespace
}  // namespace tern
