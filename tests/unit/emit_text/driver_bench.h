// Kernels on a device behind a driver, against kir's interpreter.
#pragma once

#include "hal/device.h"
#include "unit/emit_text/cases.h"

namespace tern::test {

// All kernels as one program, run as one list: software drivers take long for each program.
struct DriverBench {
  // The code, entry and work-items of a kernel in the form that the device takes.
  using Write = std::function<Result<KernelDef>(const kir::Kernel&)>;

  explicit DriverBench(std::unique_ptr<hal::Device> opened) : device(std::move(opened)) {
    program.dims = std::make_shared<DimTable>();
    program.lists.resize(1);
  }

  // No binding begins where its buffer does.
  static constexpr uint64_t kOffset = 256;

  void add(const TextCase& c, const Write& write) {
    auto def = write(c.kernel);
    ASSERT_TRUE(def.ok()) << c.name << ": " << def.error().message();
    def->name = c.name;
    def->sig.bindings.assign(c.kernel.bindings.size(), Access::update);
    def->sig.scalars = static_cast<uint32_t>(c.kernel.dims.size());
    Launch launch;
    launch.kernel = static_cast<KernelId>(program.kernels.size());
    launch.groups = Dim(int64_t{c.groups});
    for (const uint32_t d : c.dims) launch.scalars.push_back(Dim(int64_t{d}));
    Step step;
    step.what = launch;
    for (const auto& b : c.buffers) {
      step.uses.push_back(
          {{static_cast<BufferId>(slots.size()), Dim(0), Dim(static_cast<int64_t>(b.size()))}, Access::update});
      auto buffer = device->allocate(b.size() + kOffset, hal::MemoryKind::device);
      ASSERT_TRUE(buffer.ok()) << buffer.error().message();
      slots.push_back({buffer->get(), kOffset});
      buffers.push_back(std::move(*buffer));
    }
    program.kernels.push_back(std::move(*def));
    program.lists[0].push_back(std::move(step));
    cases.push_back(c);
  }

  Result<std::unique_ptr<hal::Commands>> record() {
    std::vector<std::shared_ptr<hal::Kernel>> kernels;
    for (const KernelDef& def : program.kernels) {
      TERN_TRY(auto kernel, device->load(program, def));
      kernels.push_back(std::move(kernel));
    }
    return device->record(program, 0, kernels);
  }

  void run(Bytes& left) {
    const auto commands = record();
    ASSERT_TRUE(commands.ok()) << commands.error().message();
    auto queue = device->queue();
    ASSERT_TRUE(queue.ok()) << queue.error().message();
    size_t slot = 0;
    for (const TextCase& c : cases) {
      for (const auto& b : c.buffers) ASSERT_TRUE((*queue)->upload(b, *slots[slot++].buffer, kOffset).ok());
    }
    const auto ticket = (*queue)->submit(**commands, {slots, {}}, {}, {});
    ASSERT_TRUE(ticket.ok()) << ticket.error().message();
    const Status done = (*queue)->wait(*ticket, -1);
    ASSERT_TRUE(done.ok()) << done.error().message();
    slot = 0;
    for (const TextCase& c : cases) {
      for (std::vector<std::byte> b : c.buffers) {
        const auto read = (*queue)->download(*slots[slot++].buffer, kOffset, b);
        ASSERT_TRUE(read.ok() && (*queue)->wait(*read, -1).ok());
        left.push_back(std::move(b));
      }
    }
  }

  // `shown`: a kernel as people read it.
  void run_and_compare(const std::function<std::string(const kir::Kernel&)>& shown) {
    Bytes left;
    run(left);
    if (testing::Test::HasFatalFailure()) return;
    size_t next = 0;
    const Caps& caps = device->caps();
    kir::InterpOptions options;
    options.subgroup = caps.lockstep || caps.subgroup.max == 1 ? 0 : caps.subgroup.max;
    for (const TextCase& c : cases) {
      SCOPED_TRACE(c.name);
      Bytes expected = c.buffers;
      std::vector<kir::InterpBuffer> in;
      for (auto& b : expected) in.push_back({b.data(), b.size()});
      const Status ran = kir::interpret(c.kernel, in, c.dims, 0, c.groups, options);
      ASSERT_TRUE(ran.ok()) << ran.error().message() << "\n" << kir::print(c.kernel);
      for (size_t i = 0; i < expected.size(); ++i) {
        std::string where;
        EXPECT_TRUE(same(c.kernel.bindings[i], expected[i], left[next++], &where)) << where << "\n" << shown(c.kernel);
      }
    }
  }

  std::unique_ptr<hal::Device> device;
  Program program;
  std::vector<TextCase> cases;
  std::vector<std::unique_ptr<hal::Buffer>> buffers;
  std::vector<hal::Slot> slots;
};

}  // namespace tern::test
