// Loads a relocatable ELF64 object of one kernel into executable memory, without a linker or LLVM.
//
// Objects come from the code generator or from a disk cache, so every offset is checked; a damaged object is an error.
// Source of the layouts: System V ABI (gABI chapter 4) and its AMD64 and AArch64 supplements.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>

#include "tern/result.h"

namespace tern::cpu {

class LoadedObject {
 public:
  ~LoadedObject();
  LoadedObject(const LoadedObject&) = delete;
  LoadedObject& operator=(const LoadedObject&) = delete;

  // The address of a defined symbol.
  Result<void*> symbol(std::string_view name) const;

 private:
  friend Result<std::unique_ptr<LoadedObject>> load_object(std::span<const std::byte>);
  struct Impl;
  explicit LoadedObject(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

Result<std::unique_ptr<LoadedObject>> load_object(std::span<const std::byte> object);

}  // namespace tern::cpu
