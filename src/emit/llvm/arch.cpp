#include "emit/llvm/arch.h"

#include <llvm/TargetParser/Host.h>

namespace tern::emit {

namespace {

constexpr const Arch* kAll[] = {&kX86, &kArm};

std::string_view first_word(std::string_view triple) { return triple.substr(0, triple.find('-')); }

}  // namespace

const Arch* arch_of(std::string_view triple) {
  const std::string here = llvm::sys::getProcessTriple();
  const std::string_view wanted = first_word(triple.empty() ? std::string_view(here) : triple);
  for (const Arch* a : kAll) {
    if (first_word(a->triple) == wanted) return a;
  }
  return nullptr;
}

}  // namespace tern::emit
