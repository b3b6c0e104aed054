// AArch64: NEON, with the dot products of bytes where the features have them.
#include <llvm/IR/IntrinsicsAArch64.h>
#include <llvm/Support/TargetSelect.h>

#include <numeric>

#include "emit/llvm/arch.h"

namespace tern::emit {

namespace {

using llvm::Intrinsic::ID;

llvm::Type* vector(llvm::Type* element, uint32_t count) { return llvm::FixedVectorType::get(element, count); }

llvm::Value* as_bytes(Build& b, llvm::Value* words) { return b.CreateBitCast(words, vector(b.getInt8Ty(), 16)); }

// USDOT takes codes up to 255; SDOT takes them as signed, which is the same for codes below 128.
template <ID id>
llvm::Value* products(Build& b, llvm::Value* acc, llvm::Value* codes, llvm::Value* acts) {
  llvm::Value* x = as_bytes(b, codes);
  return b.CreateIntrinsic(id, {acc->getType(), x->getType()}, {acc, x, as_bytes(b, acts)});
}

// Products of codes below 128 lie within ±2^14, so a pair's sum stays in 16 bits: SMULL, ADDP, and SADALP into acc.
llvm::Value* pairs(Build& b, llvm::Value* acc, llvm::Value* codes, llvm::Value* acts) {
  llvm::Type* shorts = vector(b.getInt16Ty(), 8);
  llvm::Value *x = as_bytes(b, codes), *y = as_bytes(b, acts);
  auto half = [&](int first) {
    std::vector<int> mask(8);
    std::iota(mask.begin(), mask.end(), first);
    llvm::Value *p = b.CreateShuffleVector(x, mask), *q = b.CreateShuffleVector(y, mask);
    return b.CreateIntrinsic(llvm::Intrinsic::aarch64_neon_smull, {shorts}, {p, q});
  };
  llvm::Value *low = half(0), *high = half(8);
  llvm::Value* sums = b.CreateIntrinsic(llvm::Intrinsic::aarch64_neon_addp, {shorts}, {low, high});
  return b.CreateAdd(
      acc, b.CreateIntrinsic(llvm::Intrinsic::aarch64_neon_saddlp, {vector(b.getInt32Ty(), 4), shorts}, {sums}));
}

llvm::Value* bytes_of(Build& b, llvm::Value* table, llvm::Value* indices) {
  return b.CreateIntrinsic(llvm::Intrinsic::aarch64_neon_tbl1, {indices->getType()}, {table, indices});
}

void initialise() {
  LLVMInitializeAArch64TargetInfo();
  LLVMInitializeAArch64Target();
  LLVMInitializeAArch64TargetMC();
  LLVMInitializeAArch64AsmPrinter();
}

Isa isa_of(const llvm::MCSubtargetInfo& s, uint32_t) {
  using namespace llvm::Intrinsic;
  Isa isa;
  isa.fma = isa.half_casts = isa.saturating_casts = true;
  isa.dot4.push_back({4, s.checkFeatures("+i8mm")      ? products<aarch64_neon_usdot>
                         : s.checkFeatures("+dotprod") ? products<aarch64_neon_sdot>
                                                       : pairs});
  isa.lookup.push_back({4, bytes_of});
  return isa;
}

}  // namespace

const Arch kArm{"aarch64-unknown-linux-gnu", "generic", initialise, isa_of};

}  // namespace tern::emit
