// x86-64: SSSE3, AVX2, AVX-512, VNNI.
#include <llvm/IR/Constants.h>
#include <llvm/IR/IntrinsicsX86.h>
#include <llvm/Support/TargetSelect.h>

#include <algorithm>

#include "emit/llvm/arch.h"

namespace tern::emit {

namespace {

using llvm::Intrinsic::ID;

// VNNI: u8 x s8, nothing saturates.
template <ID id>
llvm::Value* products(Build& b, llvm::Value* acc, llvm::Value* codes, llvm::Value* acts) {
  return b.CreateIntrinsic(id, {}, {acc, codes, acts});
}

// Codes are at most 127, so a pair's sum stays below 2^15 and the saturating instruction is exact.
template <ID pair, ID quad>
llvm::Value* pairs(Build& b, llvm::Value* acc, llvm::Value* codes, llvm::Value* acts) {
  const uint32_t lanes = llvm::cast<llvm::FixedVectorType>(acc->getType())->getNumElements();
  llvm::Type* bytes = llvm::FixedVectorType::get(b.getInt8Ty(), lanes * 4);
  llvm::Value* x = b.CreateBitCast(codes, bytes);
  llvm::Value* p = b.CreateIntrinsic(pair, {}, {x, b.CreateBitCast(acts, bytes)});
  llvm::Value* d = b.CreateIntrinsic(quad, {}, {p, llvm::ConstantInt::get(p->getType(), 1)});
  return b.CreateAdd(acc, d);
}

template <ID id>
llvm::Value* bytes_of(Build& b, llvm::Value* table, llvm::Value* indices) {
  return b.CreateIntrinsic(id, {}, {table, indices});
}

void publish(Build& b) { b.CreateIntrinsic(llvm::Intrinsic::x86_sse_sfence, {}, {}); }

void initialise() {
  LLVMInitializeX86TargetInfo();
  LLVMInitializeX86Target();
  LLVMInitializeX86TargetMC();
  LLVMInitializeX86AsmPrinter();
}

Isa isa_of(const llvm::MCSubtargetInfo& s, uint32_t vector_bits) {
  using namespace llvm::Intrinsic;
  auto has = [&](const char* f) { return s.checkFeatures(std::string("+") + f); };
  const bool ssse3 = has("ssse3"), avx2 = has("avx2");
  const bool avx512 = has("avx512f") && has("avx512vl") && has("avx512dq");
  Isa isa;
  isa.half_casts = has("f16c");
  isa.fma = has("fma") || has("avx512f");
  const uint32_t widest = avx512 ? 512 : has("avx") ? 256 : 128;
  isa.vector_bits = vector_bits ? std::min(vector_bits, widest) : widest;
  const bool vnni = (avx512 && has("avx512vnni")) || has("avxvnni");
  const bool wide = avx512 && isa.vector_bits >= 512, wide_bytes = wide && has("avx512bw");
  isa.fast_gather = avx512 || (avx2 && has("fast-gather"));
  isa.scatter = avx512;
  isa.mask_words = isa.long_casts = true;
  isa.publish = publish;
  if (wide && has("avx512vnni"))
    isa.dot4.push_back({16, products<x86_avx512_vpdpbusd_512>});
  else if (wide_bytes && !vnni)
    isa.dot4.push_back({16, pairs<x86_avx512_pmaddubs_w_512, x86_avx512_pmaddw_d_512>});
  if (vnni) {
    isa.dot4.push_back({8, products<x86_avx512_vpdpbusd_256>});
    isa.dot4.push_back({4, products<x86_avx512_vpdpbusd_128>});
  } else {
    if (avx2) isa.dot4.push_back({8, pairs<x86_avx2_pmadd_ub_sw, x86_avx2_pmadd_wd>});
    if (ssse3) isa.dot4.push_back({4, pairs<x86_ssse3_pmadd_ub_sw_128, x86_sse2_pmadd_wd>});
  }
  if (wide_bytes) isa.lookup.push_back({16, bytes_of<x86_avx512_pshuf_b_512>});
  if (avx2) isa.lookup.push_back({8, bytes_of<x86_avx2_pshuf_b>});
  if (ssse3) isa.lookup.push_back({4, bytes_of<x86_ssse3_pshuf_b_128>});
  return isa;
}

}  // namespace

const Arch kX86{"x86_64-unknown-linux-gnu", "x86-64", initialise, isa_of};

}  // namespace tern::emit
