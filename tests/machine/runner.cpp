// Runs kernels of an architecture that the tests' machine does not have: built for that architecture, linked
// statically, started under an emulator. It loads objects as the CPU device does.
#include <sys/resource.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "backends/cpu/object_loader.h"
#include "machine/wire.h"

namespace tern::test {
namespace {

using Entry = void (*)(void* const* buffers, const uint32_t* dims, uint32_t group0, uint32_t group1);

void read(void* to, size_t bytes) {
  if (bytes > 0 && std::fread(to, 1, bytes, stdin) != bytes) std::exit(2);
}

template <class T>
std::vector<T> read_many(size_t count) {
  std::vector<T> out(count);
  read(out.data(), count * sizeof(T));
  return out;
}

void write(const void* from, size_t bytes) {
  if (bytes > 0 && std::fwrite(from, 1, bytes, stdout) != bytes) std::exit(2);
}

struct Memory {
  std::vector<std::byte> block;
  std::byte* at;
  size_t bytes;
};

Memory place(const WireBuffer& b) {
  Memory m{std::vector<std::byte>(b.bytes + 2 * kWireLine), nullptr, b.bytes};
  const auto start = reinterpret_cast<uintptr_t>(m.block.data());
  m.at = m.block.data() + (kWireLine - start % kWireLine) % kWireLine + b.offset % kWireLine;
  return m;
}

std::string run(const std::vector<std::byte>& object, const std::vector<Memory>& memory,
                const std::vector<uint32_t>& dims, const std::vector<WireRange>& ranges) {
  const auto loaded = cpu::load_object(object);
  if (!loaded) return loaded.error().message();
  const auto symbol = (*loaded)->symbol("kernel");
  if (!symbol) return symbol.error().message();
  std::vector<void*> pointers;
  for (const Memory& m : memory) pointers.push_back(m.at);
  for (const WireRange& r : ranges) reinterpret_cast<Entry>(*symbol)(pointers.data(), dims.data(), r.first, r.last);
  return {};
}

void serve() {
  WireHead head;
  while (std::fread(&head, 1, sizeof head, stdin) == sizeof head) {
    const auto buffers = read_many<WireBuffer>(head.buffers);
    const auto dims = read_many<uint32_t>(head.dims);
    const auto ranges = read_many<WireRange>(head.ranges);
    const auto object = read_many<std::byte>(head.object_bytes);
    std::vector<Memory> memory;
    for (const WireBuffer& b : buffers) {
      memory.push_back(place(b));
      read(memory.back().at, b.bytes);
    }
    const std::string error = run(object, memory, dims, ranges);
    const auto length = static_cast<uint32_t>(error.size());
    write(&length, sizeof length);
    write(error.data(), length);
    if (length == 0) {
      for (const Memory& m : memory) write(m.at, m.bytes);
    }
    std::fflush(stdout);
  }
}

}  // namespace
}  // namespace tern::test

int main() {
  const rlimit none{0, 0};
  setrlimit(RLIMIT_CORE, &none);  // a kernel that faults is a failed test, and no file
  tern::test::serve();
}
