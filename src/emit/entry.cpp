#include "emit/entry.h"

#include <cctype>

#include "kir/serial.h"

namespace tern::emit {

std::string entry_name(const kir::Kernel& kernel) {
  std::string name;
  for (const char c : kernel.name) name += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  return name + "_" + kir::kernel_hash(kernel).hex().substr(0, 16);
}

}  // namespace tern::emit
