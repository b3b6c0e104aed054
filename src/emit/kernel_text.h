// Kernels as source text, for devices whose drivers compile it.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "core/caps.h"
#include "kir/ir.h"

namespace tern {

struct KernelText {
  std::string text;
  std::string entry;  // of the text; unequal kernels have unequal ones, so that many fit one program
  uint32_t work_items =
      1;  // of a workgroup, as the language counts them: the kernel's lanes, or 1 where a workgroup is one vector
};

// The kernel in the language that caps.language names. Pure: equal kernels and caps give equal bytes on every host.
// Expects a kernel that verify() took for these caps. Code::unsupported, with the op, for what the language cannot say.
// Thread-safe.
Result<KernelText> emit_text(const kir::Kernel& kernel, const Caps& caps);

// What caps.language may be.
std::span<const std::string_view> text_languages();

}  // namespace tern
