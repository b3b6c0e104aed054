// What one processor architecture adds to the code generator: its machine in LLVM, what its features mean, and the few
// instructions that are written out by name. A further architecture is one file and one line in arch.cpp.
#pragma once

#include <llvm/IR/IRBuilder.h>
#include <llvm/MC/MCSubtargetInfo.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tern::emit {

using Build = llvm::IRBuilder<>;

// dot4 (ir.h) of `lanes` lanes at once: <lanes x i32> each.
struct Dot4Unit {
  uint32_t lanes;
  llvm::Value* (*make)(Build& b, llvm::Value* acc, llvm::Value* codes, llvm::Value* acts);
};
// lookup of `lanes` lanes at once: both operands are <4 * lanes x i8>, the table repeated for every 16 bytes.
struct LookupUnit {
  uint32_t lanes;
  llvm::Value* (*make)(Build& b, llvm::Value* table, llvm::Value* indices);
};

// What of the instruction set decides which instructions come out.
struct Isa {
  uint32_t vector_bits = 128;
  bool fma = false;
  bool half_casts = false;        // between f32 and f16, rounded and NaN as ir.h says
  bool fast_gather = false;       // of words, by signed 32-bit offsets
  bool scatter = false;           // of words
  bool mask_words = false;        // one instruction makes a number of a mask of lanes
  bool saturating_casts = false;  // from float to integer, NaN to 0
  bool long_casts = false;        // of vectors of 64-bit integers to f32, rounded once
  std::vector<Dot4Unit> dot4;     // widest first; none: shifts and multiplications
  std::vector<LookupUnit> lookup;
  // After a kernel's streaming stores, so that other threads see them; null: they are ordered like all stores.
  void (*publish)(Build& b) = nullptr;
};

struct Arch {
  const char* triple;
  const char* least_cpu;  // LLVM's name of the processor that all of them can stand in for
  void (*initialise)();   // of LLVM's target; once a process
  Isa (*isa)(const llvm::MCSubtargetInfo& features, uint32_t vector_bits);
};

extern const Arch kX86, kArm;

// By the first word of a triple, "aarch64" or "aarch64-unknown-linux-gnu"; empty: the architecture this was built for.
// Null where there is none.
const Arch* arch_of(std::string_view triple);

}  // namespace tern::emit
