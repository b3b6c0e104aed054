// Kernel texts of one language as one library, made by a host compiler with the language's words, and loaded.
#pragma once

#include <functional>
#include <map>
#include <span>

#include "emit/kernel_text.h"
#include "kir/ir.h"
#include "shim/fibres.h"

namespace tern::shim {

struct Source {
  const kir::Kernel* kernel;
  KernelText text;
};

class Module {
 public:
  // Languages that modules are made of, and the sizes of subgroups that each of them runs with.
  static std::span<const std::string_view> languages();
  static std::span<const uint32_t> subgroups(std::string_view language);
  // Empty, or one sentence that says which compiler is missing.
  static std::string missing(std::string_view language);
  // Each entry once. An error holds what the compiler says.
  static Result<Module> make(std::string_view language, std::span<const Source> sources);

  // One workgroup after the other. An error names the entry and the line of its file.
  Status run(const std::string& entry, void* const* bindings, const uint32_t* dims, const Launch& launch) const;

 private:
  using Call = void (*)(void* const* bindings, const unsigned* dims);
  std::shared_ptr<void> library_;
  std::map<std::string, Call> calls_;
  std::vector<std::string> lines_;
};

}  // namespace tern::shim
