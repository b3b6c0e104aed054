// The device interface. The unit of work is a recorded command list; a launch is data, not a virtual call.
// No default bodies: a backend answers every question; abilities are data in Caps.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/caps.h"
#include "program/candidate.h"
#include "program/program.h"
#include "tern/result.h"

namespace tern::hal {

using Ticket = uint64_t;  // increases along one queue; 0: nothing to wait for

struct Native {
  void* handle = nullptr;
  std::string_view kind;  // "host", "cuda", ...
};

struct Buffer {
  virtual ~Buffer() = default;
  virtual uint64_t size() const = 0;
  virtual Native native() = 0;
  virtual std::span<std::byte> host() = 0;  // empty where the host cannot see it
};
struct Kernel {
  virtual ~Kernel() = default;
};
struct Commands {
  virtual ~Commands() = default;
};

struct Slot {
  Buffer* buffer = nullptr;
  uint64_t offset = 0;
};
// slots: one per BufferId of the Program (temps share the arena); block: values of Program::block.
struct Binding {
  std::span<const Slot> slots;
  std::span<const int64_t> block;
};

struct StepTiming {
  uint32_t step;
  double seconds;
};
struct SubmitOptions {
  const std::atomic<bool>* cancel = nullptr;   // looked at between phases; the run ends with Code::cancelled
  std::vector<StepTiming>* profile = nullptr;  // filled by the time the ticket is done; slows the run
  bool blocking = false;                       // the caller waits at once: a host device may run on the calling thread
};

// Work of a queue is done in order. Used by one thread at a time. Transfers may happen later: their spans stay valid
// until the ticket is done.
struct Queue {
  virtual ~Queue() = default;
  // Runs after everything submitted to this queue before, and after the given tickets of other queues.
  virtual Result<Ticket> submit(Commands& commands, const Binding& binding, std::span<const Ticket> after,
                                const SubmitOptions& options) = 0;
  virtual Result<Ticket> upload(std::span<const std::byte> from, Buffer& to, uint64_t at) = 0;
  virtual Result<Ticket> download(const Buffer& from, uint64_t at, std::span<std::byte> to) = 0;
  virtual Result<Ticket> copy(const Buffer& from, uint64_t from_at, Buffer& to, uint64_t to_at, uint64_t bytes) = 0;
  virtual void then(Ticket ticket, std::function<void(Status)> done) = 0;  // a browser may not block
  virtual Status wait(Ticket ticket, int64_t nanoseconds) = 0;             // negative: no limit
};

struct MemoryInfo {
  uint64_t total = 0, available = 0;  // bytes
};
enum class MemoryKind : uint8_t { device, staging };

struct Device {
  virtual ~Device() = default;
  virtual const Caps& caps() const = 0;
  virtual MemoryInfo memory() const = 0;
  virtual std::span<const Candidate> native() const = 0;
  virtual std::span<const StepFuser> fusers() const = 0;
  virtual Result<std::unique_ptr<Buffer>> allocate(uint64_t bytes, MemoryKind kind) = 0;
  // The KernelDef's code is in the form that caps().form names.
  virtual Result<std::shared_ptr<Kernel>> load(const Program& program, const KernelDef& def) = 0;
  // kernels: one per KernelDef of the Program.
  virtual Result<std::unique_ptr<Commands>> record(const Program& program, uint32_t list,
                                                   std::span<const std::shared_ptr<Kernel>> kernels) = 0;
  virtual Result<std::unique_ptr<Queue>> queue() = 0;
};

}  // namespace tern::hal
