// Loads and stores: which instruction an index wants.
#include <llvm/IR/Constants.h>
#include <llvm/IR/Intrinsics.h>

#include <algorithm>
#include <numeric>

#include "emit/llvm/codegen.h"

namespace tern::emit {

namespace {

constexpr uint32_t kSpan = 64;  // elements that one load may cover for the sake of some of them

bool consecutive(const std::vector<uint32_t>& p) {
  for (size_t i = 1; i < p.size(); ++i) {
    if (p[i] != p[0] + i) return false;
  }
  return true;
}

// Patterns may lie below the base: index(lane) - 1.
bool below(uint32_t a, uint32_t b) { return static_cast<int32_t>(a) < static_cast<int32_t>(b); }

// Indices of the lanes a constant mask leaves on; false when the mask is no constant.
bool constant_mask(llvm::Value* mask, std::vector<uint32_t>* on) {
  auto* c = llvm::dyn_cast_or_null<llvm::Constant>(mask);
  auto* t = mask ? llvm::dyn_cast<llvm::FixedVectorType>(mask->getType()) : nullptr;
  if (!c || !t) return false;
  for (uint32_t i = 0; i < t->getNumElements(); ++i) {
    auto* e = llvm::dyn_cast_or_null<llvm::ConstantInt>(c->getAggregateElement(i));
    if (!e) return false;
    if (!e->isZero()) on->push_back(i);
  }
  return true;
}

}  // namespace

llvm::Value* Codegen::shuffle(llvm::Value* a, const std::vector<int>& mask) { return b_.CreateShuffleVector(a, mask); }

llvm::Value* Codegen::concat(std::vector<llvm::Value*> parts) {
  while (parts.size() > 1) {
    std::vector<llvm::Value*> next;
    for (size_t i = 0; i + 1 < parts.size(); i += 2) {
      auto count = [](llvm::Value* v) { return llvm::cast<llvm::FixedVectorType>(v->getType())->getNumElements(); };
      llvm::Value *x = parts[i], *y = parts[i + 1];
      const uint32_t nx = count(x), ny = count(y);
      std::vector<int> mask(nx + ny);
      if (nx != ny) {  // shuffles want equal widths
        std::vector<int> grow(nx, -1);
        for (uint32_t j = 0; j < ny; ++j) grow[j] = static_cast<int>(j);
        y = shuffle(y, grow);
      }
      std::iota(mask.begin(), mask.end(), 0);
      next.push_back(b_.CreateShuffleVector(x, y, mask));
    }
    if (parts.size() % 2) next.push_back(parts.back());
    parts = std::move(next);
  }
  return parts[0];
}

Codegen::Place Codegen::view_place(uint64_t index) {
  const kir::View& v = k_.views[index];
  const kir::Binding& b = k_.bindings[v.binding];
  return {buffers_[v.binding],
          type(v.type),
          v.type,
          kir::type_bytes(v.type),
          b.access == kir::Access::read,
          b.streaming,
          scope_[v.binding],
          noalias_[v.binding]};
}

Codegen::Place Codegen::array_place(uint64_t index) {
  const kir::Array& a = k_.arrays[index];
  const size_t at = k_.bindings.size() + index;
  return {arrays_[index], type(a.type), a.type, kir::type_bytes(a.type), false, false, scope_[at], noalias_[at]};
}

void Codegen::tag(llvm::Instruction* i, const Place& p, bool is_load) {
  i->setMetadata(llvm::LLVMContext::MD_alias_scope, p.scope);
  if (p.noalias) i->setMetadata(llvm::LLVMContext::MD_noalias, p.noalias);
  if (is_load && p.read_only) i->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(c_, {}));
}

llvm::Value* Codegen::address(const Place& p, llvm::Value* index) {
  if (!index) return p.pointer;
  return b_.CreateInBoundsGEP(p.element, p.pointer, b_.CreateZExt(index, b_.getInt64Ty()));
}

// Storage to value: f16 arrives as bits, small integers grow.
llvm::Value* Codegen::widen(const Place& p, llvm::Value* raw) {
  if (p.bytes >= 4) return raw;
  llvm::Type* t = shaped(b_.getInt32Ty(), raw->getType());
  if (p.stored == kir::f16) {
    if (isa_.half_casts)
      return b_.CreateFPExt(b_.CreateBitCast(raw, shaped(b_.getHalfTy(), raw->getType())), shaped(b_.getFloatTy(), t));
    return half_to_f32(b_.CreateZExt(raw, t));
  }
  return kir::is_signed(p.stored) ? b_.CreateSExt(raw, t) : b_.CreateZExt(raw, t);
}

llvm::Value* Codegen::narrow(const Place& p, llvm::Value* value) {
  if (p.bytes >= 4) return value;
  if (p.stored == kir::f16) value = f32_to_half(value);
  return b_.CreateTrunc(value, shaped(p.element, value->getType()));
}

llvm::Value* Codegen::load_scalar(const Place& p, llvm::Value* index) {
  llvm::LoadInst* l = b_.CreateAlignedLoad(p.element, address(p, index), llvm::Align(p.bytes));
  tag(l, p, true);
  return l;
}

llvm::Value* Codegen::load_vector(const Place& p, llvm::Value* index, uint32_t count) {
  llvm::Type* t = llvm::FixedVectorType::get(p.element, count);
  llvm::LoadInst* l = b_.CreateAlignedLoad(t, address(p, index), llvm::Align(p.bytes));
  tag(l, p, true);
  return l;
}

// All lanes on. base + pattern, cut into pieces that one load covers.
llvm::Value* Codegen::load_pattern(const Place& p, llvm::Value* base, const Lanes& pattern) {
  const auto [lo, hi] = std::minmax_element(pattern.begin(), pattern.end(), below);
  const uint32_t first = *lo, span = *hi - *lo, count = static_cast<uint32_t>(pattern.size());
  llvm::Value* at = base ? (first ? b_.CreateAdd(base, word(first)) : base) : word(first);
  if (span == 0) return b_.CreateVectorSplat(count, load_scalar(p, at));
  if (consecutive(pattern)) return load_vector(p, at, count);
  if (span < kSpan && (span < 4 * count || span < 16)) {
    llvm::Value* all = load_vector(p, at, span + 1);
    std::vector<int> mask;
    for (uint32_t v : pattern) mask.push_back(static_cast<int>(v - first));
    return shuffle(all, mask);
  }
  if (count <= 4 || count % 2) {
    llvm::Value* out = llvm::PoisonValue::get(llvm::FixedVectorType::get(p.element, count));
    for (uint32_t i = 0; i < count; ++i) {
      llvm::Value* one = load_scalar(p, base ? b_.CreateAdd(base, word(pattern[i])) : word(pattern[i]));
      out = b_.CreateInsertElement(out, one, word(i));
    }
    return out;
  }
  const auto middle = pattern.begin() + count / 2;
  llvm::Value* low = load_pattern(p, base, Lanes(pattern.begin(), middle));
  return concat({low, load_pattern(p, base, Lanes(middle, pattern.end()))});
}

llvm::Value* Codegen::gather(const Place& p, llvm::Value* index) {
  if (p.bytes < 4 && isa_.fast_gather) {  // bindings are whole words: gather those
    const uint32_t shift = p.bytes == 2 ? 1 : 2;
    auto c = [&](uint32_t v) { return llvm::ConstantInt::get(index->getType(), v); };
    Place words = p;
    words.element = b_.getInt32Ty();
    words.stored = kir::u32;
    words.bytes = 4;
    llvm::Value* w = gather(words, b_.CreateLShr(index, c(shift)));
    llvm::Value* by = b_.CreateShl(b_.CreateAnd(index, c((1u << shift) - 1)), c(shift == 1 ? 4 : 3));
    return b_.CreateTrunc(b_.CreateLShr(w, by), shaped(p.element, index->getType()));
  }
  llvm::Type* t = shaped(p.element, index->getType());
  llvm::Value* pointers = nullptr;
  if (isa_.fast_gather) {
    // The instruction takes signed 32-bit offsets: from 2^31 elements behind the start they reach every index.
    constexpr uint32_t kMiddle = 1u << 31;
    llvm::Value* middle = b_.CreateGEP(p.element, p.pointer, b_.getInt64(kMiddle));
    llvm::Value* offset = b_.CreateAdd(index, llvm::ConstantInt::get(index->getType(), kMiddle));
    pointers = b_.CreateGEP(p.element, middle, b_.CreateSExt(offset, shaped(b_.getInt64Ty(), index->getType())));
  } else {
    llvm::Value* wide = b_.CreateZExt(index, shaped(b_.getInt64Ty(), index->getType()));
    pointers = b_.CreateInBoundsGEP(p.element, p.pointer, wide);
  }
  if (!isa_.fast_gather) {  // one by one
    const uint32_t count = llvm::cast<llvm::FixedVectorType>(t)->getNumElements();
    if (!mask_) {
      llvm::Value* out = llvm::PoisonValue::get(t);
      for (uint32_t i = 0; i < count; ++i) {
        llvm::LoadInst* l = b_.CreateAlignedLoad(p.element, extract(pointers, i), llvm::Align(p.bytes));
        tag(l, p, true);
        out = b_.CreateInsertElement(out, l, word(i));
      }
      return out;
    }
  }
  llvm::Value* zero = llvm::Constant::getNullValue(t);
  llvm::CallInst* g = b_.CreateMaskedGather(t, pointers, llvm::Align(p.bytes), mask_, zero);
  tag(g, p, true);
  return g;
}

void Codegen::prefetch(const Place& p, const Value& index) {
  if (!index.scalar()) return;  // a hint for one place
  llvm::Value* at = b_.CreateGEP(p.element, p.pointer, b_.CreateZExt(index.v, b_.getInt64Ty()));
  // Not into the first level: it is full of what is in use.
  llvm::Value *read = b_.getInt32(0), *second_level = b_.getInt32(2), *data = b_.getInt32(1);
  b_.CreateIntrinsic(llvm::Intrinsic::prefetch, {b_.getPtrTy()}, {at, read, second_level, data});
}

Value Codegen::load(const Place& p, const Value& index, uint32_t width, uint32_t part) {
  auto scaled = [&](llvm::Value* v) -> llvm::Value* {
    if (width == 1 || !v) return v;
    llvm::Value* by = llvm::ConstantInt::get(v->getType(), width);
    llvm::Value* off = llvm::ConstantInt::get(v->getType(), part);
    return b_.CreateAdd(b_.CreateMul(v, by), off);
  };
  if (index.scalar()) return wrap(widen(p, load_scalar(p, scaled(index.v))));
  if (!index.affine()) return wrap(widen(p, gather(p, scaled(index.v))));
  Lanes pattern = index.pattern;
  for (uint32_t& v : pattern) v = v * width + part;
  llvm::Value* base = index.base && width > 1 ? b_.CreateMul(index.base, word(width)) : index.base;
  const bool one = std::all_of(pattern.begin(), pattern.end(), [&](uint32_t v) { return v == pattern[0]; });
  if (one) {  // some lane is on wherever this is reached, so the address is good
    return wrap(widen(p, load_scalar(p, base ? b_.CreateAdd(base, word(pattern[0])) : word(pattern[0]))));
  }
  std::vector<uint32_t> on;
  if (mask_ && constant_mask(mask_, &on) && !on.empty()) {
    Lanes some;
    for (uint32_t i : on) some.push_back(pattern[i]);
    llvm::Value* raw = some.size() == 1 ? nullptr : load_pattern(p, base, some);
    if (!raw) return wrap(widen(p, load_scalar(p, base ? b_.CreateAdd(base, word(some[0])) : word(some[0]))));
    std::vector<int> mask(lanes_, 0);
    for (uint32_t i = 0; i < on.size(); ++i) mask[on[i]] = static_cast<int>(i);
    return wrap(widen(p, shuffle(raw, mask)));
  }
  if (!mask_) return wrap(widen(p, load_pattern(p, base, pattern)));
  if (consecutive(pattern)) {
    llvm::Type* t = llvm::FixedVectorType::get(p.element, lanes_);
    llvm::Value* at = base ? b_.CreateAdd(base, word(pattern[0])) : word(pattern[0]);
    llvm::CallInst* l =
        b_.CreateMaskedLoad(t, address(p, at), llvm::Align(p.bytes), mask_, llvm::Constant::getNullValue(t));
    tag(l, p, true);
    return wrap(widen(p, l));
  }
  llvm::Value* v = pattern_constant(pattern);
  if (base) v = b_.CreateAdd(b_.CreateVectorSplat(lanes_, base), v);
  return wrap(widen(p, gather(p, v)));
}

void Codegen::store_scalar(const Place& p, llvm::Value* index, llvm::Value* value) {
  tag(b_.CreateAlignedStore(value, address(p, index), llvm::Align(p.bytes)), p, false);
}

// Streaming stores want whole aligned registers, and a binding promises less, so the address decides at run time.
void Codegen::store_vector(const Place& p, llvm::Value* index, llvm::Value* value) {
  llvm::Value* at = address(p, index);
  const uint32_t bytes =
      static_cast<uint32_t>(llvm::cast<llvm::FixedVectorType>(value->getType())->getNumElements()) * p.bytes;
  const uint32_t need = std::min(bytes, isa_.vector_bits / 8);
  if (!p.streaming || need < 16 || (need & (need - 1)) != 0 || bytes % need != 0) {
    tag(b_.CreateAlignedStore(value, at, llvm::Align(p.bytes)), p, false);
    return;
  }
  llvm::Value* low = b_.CreateAnd(b_.CreatePtrToInt(at, b_.getInt64Ty()), need - 1);
  llvm::BasicBlock *fast = fresh("stream"), *slow = fresh("cached"), *done = fresh("stored");
  b_.CreateCondBr(b_.CreateICmpEQ(low, b_.getInt64(0)), fast, slow);
  b_.SetInsertPoint(fast);
  llvm::StoreInst* s = b_.CreateAlignedStore(value, at, llvm::Align(need));
  s->setMetadata(llvm::LLVMContext::MD_nontemporal,
                 llvm::MDNode::get(c_, llvm::ConstantAsMetadata::get(b_.getInt32(1))));
  tag(s, p, false);
  b_.CreateBr(done);
  b_.SetInsertPoint(slow);
  tag(b_.CreateAlignedStore(value, at, llvm::Align(p.bytes)), p, false);
  b_.CreateBr(done);
  b_.SetInsertPoint(done);
}

// All lanes on; value holds one element a lane of pattern.
void Codegen::store_pattern(const Place& p, llvm::Value* base, const Lanes& pattern, llvm::Value* value) {
  const uint32_t count = static_cast<uint32_t>(pattern.size());
  auto at = [&](uint32_t off) -> llvm::Value* {
    return base ? (off ? b_.CreateAdd(base, word(off)) : base) : word(off);
  };
  if (count == 1) return store_scalar(p, at(pattern[0]), extract(value, 0));
  if (consecutive(pattern)) return store_vector(p, at(pattern[0]), value);
  // A permutation of consecutive elements: put them in order first.
  std::vector<int> order(count);
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](int a, int b) { return below(pattern[a], pattern[b]); });
  Lanes sorted;
  for (int i : order) sorted.push_back(pattern[i]);
  if (consecutive(sorted)) return store_vector(p, at(sorted[0]), shuffle(value, order));
  const uint32_t half = count % 2 ? 1 : count / 2;
  for (uint32_t from = 0; from < count;) {
    const uint32_t n = from == 0 ? half : count - half;
    std::vector<int> mask(n);
    std::iota(mask.begin(), mask.end(), static_cast<int>(from));
    store_pattern(p, base, Lanes(pattern.begin() + from, pattern.begin() + from + n), shuffle(value, mask));
    from += n;
  }
}

void Codegen::scatter(const Place& p, llvm::Value* index, llvm::Value* value, llvm::Value* mask) {
  llvm::Value* wide = b_.CreateZExt(index, shaped(b_.getInt64Ty(), index->getType()));
  llvm::Value* pointers = b_.CreateInBoundsGEP(p.element, p.pointer, wide);
  if (!mask && (p.bytes < 4 || !isa_.scatter)) {
    for (uint32_t i = 0; i < lanes_; ++i) {
      tag(b_.CreateAlignedStore(extract(value, i), extract(pointers, i), llvm::Align(p.bytes)), p, false);
    }
    return;
  }
  tag(b_.CreateMaskedScatter(value, pointers, llvm::Align(p.bytes), mask), p, false);
}

void Codegen::store_masked(const Place& p, const Value& index, const Value& value) {
  std::vector<uint32_t> on;
  const bool known = constant_mask(mask_, &on);
  auto at = [&](uint32_t off) -> llvm::Value* {
    return index.scalar() ? index.v : index.base ? b_.CreateAdd(index.base, word(off)) : word(off);
  };
  const bool one = index.scalar() || (index.affine() && std::all_of(index.pattern.begin(), index.pattern.end(),
                                                                    [&](uint32_t v) { return v == index.pattern[0]; }));
  if (one && value.scalar()) return store_scalar(p, at(index.affine() ? index.pattern[0] : 0), narrow(p, value.v));
  llvm::Value* v = narrow(p, vec(value));
  if (known && (one || index.affine())) {
    Lanes some;
    std::vector<int> mask;
    for (uint32_t i : on) {
      some.push_back(index.affine() ? index.pattern[i] : 0);
      mask.push_back(static_cast<int>(i));
    }
    if (some.empty()) return;
    if (one) return store_scalar(p, at(some[0]), extract(v, on.back()));
    return store_pattern(p, index.base, some, shuffle(v, mask));
  }
  if (index.affine() && consecutive(index.pattern)) {
    tag(b_.CreateMaskedStore(v, address(p, at(index.pattern[0])), llvm::Align(p.bytes), mask_), p, false);
    return;
  }
  scatter(p, vec(index), v, mask_);
}

void Codegen::store(const Place& p, const Value& index, const std::vector<Value>& values) {
  const uint32_t width = static_cast<uint32_t>(values.size());
  if (lanes_ == 1 ||
      (index.scalar() && std::all_of(values.begin(), values.end(), [](const Value& v) { return v.scalar(); }))) {
    for (uint32_t i = 0; i < width; ++i) {
      llvm::Value* at = width == 1 ? index.v : b_.CreateAdd(b_.CreateMul(index.v, word(width)), word(i));
      store_scalar(p, at, narrow(p, values[i].v));
    }
    return;
  }
  if (!mask_ && index.affine()) {
    Lanes pattern;
    for (uint32_t v : index.pattern) {
      for (uint32_t i = 0; i < width; ++i) pattern.push_back(v * width + i);
    }
    std::vector<llvm::Value*> parts;
    for (const Value& v : values) parts.push_back(narrow(p, vec(v)));
    llvm::Value* all = concat(parts);
    if (width > 1) {
      std::vector<int> mask;
      for (uint32_t l = 0; l < lanes_; ++l) {
        for (uint32_t i = 0; i < width; ++i) mask.push_back(static_cast<int>(i * lanes_ + l));
      }
      all = shuffle(all, mask);
    }
    return store_pattern(p, index.base && width > 1 ? b_.CreateMul(index.base, word(width)) : index.base, pattern, all);
  }
  for (uint32_t i = 0; i < width; ++i) {
    Value at = index;
    if (width > 1) {
      if (index.affine()) {
        for (uint32_t& v : at.pattern) v = v * width + i;
        if (at.base) at.base = b_.CreateMul(at.base, word(width));
        at.v = nullptr;
      } else {
        llvm::Value* v = plain(index);
        at = wrap(b_.CreateAdd(b_.CreateMul(v, llvm::ConstantInt::get(v->getType(), width)),
                               llvm::ConstantInt::get(v->getType(), i)));
      }
    }
    if (mask_)
      store_masked(p, at, values[i]);
    else if (at.scalar())
      store_scalar(p, at.v, extract(narrow(p, vec(values[i])), lanes_ - 1));  // lockstep: the last lane stays
    else
      scatter(p, vec(at), narrow(p, vec(values[i])), nullptr);
  }
}

}  // namespace tern::emit
