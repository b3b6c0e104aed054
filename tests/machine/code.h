// Objects of kernels, run on this processor or, where it is of another kind, in the runner under an emulator.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "backends/cpu/object_loader.h"
#include "machine/wire.h"
#include "tern/result.h"

namespace tern::test {

class LoadedCode {
 public:
  struct Memory {
    void* data;
    size_t bytes;
    bool written = true;  // else what it holds stays
  };
  // object: made for isa, one of levels().
  static Result<LoadedCode> load(std::vector<std::byte> object, const std::string& isa);
  // The ranges of groups one after the other. An emulated kernel sees addresses that lie in their lines as these do.
  Status run(std::span<const Memory> memory, std::span<const uint32_t> dims, std::span<const WireRange> ranges) const;

 private:
  std::string isa_;
  std::vector<std::byte> object_;              // for the runner
  std::unique_ptr<cpu::LoadedObject> loaded_;  // here
};

}  // namespace tern::test
