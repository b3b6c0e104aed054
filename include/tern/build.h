// What this build of tern is, and what it found beside itself.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tern {

// A pack of kernels that were compiled when tern was built, for one instruction set.
struct KernelPackInfo {
  std::string path;
  std::string level;  // "x86-64-v4+avx512vnni"
  std::string codegen;
  uint32_t kernels = 0;
  uint64_t bytes = 0;
  bool used = false;    // by this processor
  std::string refusal;  // why it is not taken: damaged, or of another build; empty: it is good
};

struct BuildInfo {
  std::string version, compiler, codegen;
  std::string plugin;  // the code generator's name; empty: none
  std::string plugin_path, plugin_refusal;
  std::string packs_folder;  // empty: none was found
  std::vector<KernelPackInfo> packs;
  std::vector<std::string> levels;  // that packs are made for
};

// Looks beside the library (or the program that holds it). Thread-safe. Opens the code generator.
BuildInfo build_info();

}  // namespace tern
