// One candidate on one Problem, compiled for this machine and timed on one thread.
#pragma once

#include <sys/mman.h>

#include <cstring>
#include <ctime>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "backends/cpu/object_loader.h"
#include "emit/llvm_compiler.h"
#include "kernels/kernels.h"
#include "kir/ir.h"
#include "kir/serial.h"

namespace tern::bench {

struct Aligned {
  static constexpr uint64_t kHuge = uint64_t{2} << 20;
  std::unique_ptr<std::byte[]> raw;
  std::byte* data = nullptr;
  uint64_t bytes = 0;
  void make(uint64_t n) {
    // Huge pages for what is large, as devices hold it.
    const uint64_t page = n > kHuge ? kHuge : 4096;
    bytes = n;
    raw = std::make_unique_for_overwrite<std::byte[]>(n + page);
    data = reinterpret_cast<std::byte*>((reinterpret_cast<uintptr_t>(raw.get()) + page - 1) / page * page);
    if (n > kHuge) madvise(data, n, MADV_HUGEPAGE);
    std::memset(data, 0, n);
  }
};

Caps host_caps();
extern bool show_assembly;  // print what is compiled from here on
// An entry for a kernel, or the program ends with the reason. The object stays loaded.
kir::CpuEntry compile(const std::vector<std::byte>& kir);
const std::vector<double>& compile_seconds();  // of every kernel compiled so far

class Instance {
 public:
  DimTable dims;
  Problem p;

  Instance() { p.parts.resize(1); }
  uint16_t add(Role role, TensorType type, Access access = Access::read, Origin origin = Origin::temp);
  void output(uint16_t operand, uint16_t result = 0) {
    p.parts[0].outs.push_back({operand, result, Output::Kind::map, {}});
  }
  // Chooses the first bid, allocates every operand with harmless noise, builds and compiles.
  void prepare(std::string_view candidate);
  void run() const;
  template <class T>
  T* data(uint16_t operand) {
    return reinterpret_cast<T*>(memory_[operand].data);
  }
  uint64_t bytes(uint16_t operand) const { return memory_[operand].bytes; }

 private:
  struct Call {
    kir::CpuEntry entry;
    std::vector<void*> buffers;
    std::vector<uint32_t> dims;
    uint32_t groups;
  };
  friend class Ctx;
  std::vector<Aligned> memory_;
  Aligned scratch_;
  std::vector<Call> calls_;
};

// Processor time of this thread: on a shared machine the wall clock measures the neighbours.
inline double now() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}
// Median seconds of several functions, taken in turns (A B A B ...), each round long enough to be read off the clock.
std::vector<double> medians(const std::vector<std::function<void()>>& functions, int rounds = 7);

struct Roofs {
  double read = 0, flop = 0, int8 = 0;  // bytes/s, FLOP/s, 8-bit operations/s of one thread
};
Roofs measure_roofs();

}  // namespace tern::bench
