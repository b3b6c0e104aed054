// Pure values: scalars, vectors, and scalar-plus-lane-pattern integers.
#include <llvm/IR/Constants.h>
#include <llvm/IR/Intrinsics.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

#include "emit/llvm/codegen.h"

namespace tern::emit {

using kir::Op;
using kir::Type;

namespace {

bool word_int(Type t) { return t == kir::i32 || t == kir::u32; }

uint32_t low_bit(uint64_t v) {
  return v == 0 ? 1u << 31 : static_cast<uint32_t>(std::min<uint64_t>(v & (~v + 1), 1u << 31));
}

// The lanes of a constant vector of 32-bit integers.
bool constant_lanes(llvm::Value* v, std::vector<uint32_t>* out) {
  auto* c = llvm::dyn_cast<llvm::Constant>(v);
  auto* t = llvm::dyn_cast<llvm::FixedVectorType>(v->getType());
  if (!c || !t || !t->getElementType()->isIntegerTy(32)) return false;
  out->resize(t->getNumElements());
  for (uint32_t i = 0; i < out->size(); ++i) {
    auto* e = llvm::dyn_cast_or_null<llvm::ConstantInt>(c->getAggregateElement(i));
    if (!e) return false;
    (*out)[i] = static_cast<uint32_t>(e->getZExtValue());
  }
  return true;
}

}  // namespace

llvm::Type* Codegen::type(Type t) {
  switch (t) {
    case kir::b1: return b_.getInt1Ty();
    case kir::i8:
    case kir::u8:
    case kir::b8: return b_.getInt8Ty();
    case kir::i16:
    case kir::u16:
    case kir::f16:
    case kir::bf16: return b_.getInt16Ty();
    case kir::i32:
    case kir::u32: return b_.getInt32Ty();
    case kir::i64:
    case kir::u64: return b_.getInt64Ty();
    case kir::f32: return b_.getFloatTy();
    case kir::f64: return b_.getDoubleTy();
    case kir::none: break;
  }
  return b_.getVoidTy();
}

llvm::Type* Codegen::shaped(llvm::Type* element, llvm::Type* like) {
  auto* v = llvm::dyn_cast<llvm::FixedVectorType>(like);
  return v ? llvm::FixedVectorType::get(element, v->getNumElements()) : element;
}

llvm::Value* Codegen::splat_like(llvm::Value* scalar, llvm::Value* like) {
  auto* v = llvm::dyn_cast<llvm::FixedVectorType>(like->getType());
  return v ? b_.CreateVectorSplat(v->getNumElements(), scalar) : scalar;
}

llvm::Value* Codegen::pattern_constant(const Lanes& pattern) { return llvm::ConstantDataVector::get(c_, pattern); }

Value Codegen::wrap(llvm::Value* v, uint32_t align) {
  Value out;
  out.v = v;
  out.align = align;
  if (auto* c = llvm::dyn_cast<llvm::ConstantInt>(v); c && c->getBitWidth() == 32)
    out.align = low_bit(c->getZExtValue());
  Lanes lanes;
  if (constant_lanes(v, &lanes)) {
    out.pattern = std::move(lanes);
    out.align = 1u << 31;
  }
  return out;
}

llvm::Value* Codegen::vec(const Value& v) {
  if (lanes_ == 1) return v.v;
  if (v.v) return v.scalar() ? b_.CreateVectorSplat(lanes_, v.v) : v.v;
  llvm::Value* pattern = pattern_constant(v.pattern);
  return v.base ? b_.CreateAdd(b_.CreateVectorSplat(lanes_, v.base), pattern) : pattern;
}

llvm::Value* Codegen::plain(const Value& v) { return v.scalar() ? v.v : vec(v); }

Value Codegen::value(kir::Ref ref) {
  const kir::Node& n = k_.at(ref);
  return kir::op_info(n.op).cls == kir::OpClass::leaf ? leaf(n) : values_[ref];
}

Value Codegen::leaf(const kir::Node& n) {
  switch (n.op) {
    case Op::constant:
      if (n.type == kir::f32)
        return wrap(llvm::ConstantFP::get(c_, llvm::APFloat(std::bit_cast<float>(static_cast<uint32_t>(n.imm)))));
      if (n.type == kir::f64) return wrap(llvm::ConstantFP::get(c_, llvm::APFloat(std::bit_cast<double>(n.imm))));
      return wrap(llvm::ConstantInt::get(type(n.type), n.imm));
    case Op::group: return wrap(group_);
    case Op::dim: return wrap(dims_[n.imm]);
    case Op::subgroup_id: return wrap(word(0));
    case Op::subgroup_count: return wrap(word(1));
    default: break;  // lane, subgroup_lane
  }
  if (lanes_ == 1) return wrap(word(0));
  Value out;
  out.align = 1u << 31;
  for (uint32_t i = 0; i < lanes_; ++i) out.pattern.push_back(i);
  return out;
}

Value Codegen::pure(const kir::Node& n) {
  if (n.op == Op::part) {
    return wide_[n.a][n.imm];
  }
  const int count = kir::op_info(n.op).operands;
  const Value a = value(n.a);
  if (count == 1) return unary(n, a);
  const Value b = value(n.b);
  if (count == 2) return binary(n, a, b);
  if (n.op == Op::lookup) return wrap(lookup(plain(a), k_.at(n.b).imm, k_.at(n.c).imm));
  const Value c = value(n.c);
  if (n.op == Op::select) {
    if (auto* known = llvm::dyn_cast_or_null<llvm::ConstantInt>(a.scalar() ? a.v : nullptr))
      return known->isZero() ? c : b;
    const bool flat = b.scalar() && c.scalar() && a.scalar();
    return flat ? wrap(b_.CreateSelect(a.v, b.v, c.v)) : wrap(b_.CreateSelect(plain(a), vec(b), vec(c)));
  }
  const bool flat = a.scalar() && b.scalar() && c.scalar();
  auto get = [&](const Value& v) { return flat ? v.v : vec(v); };
  if (n.op == Op::dot4) return wrap(dot4(get(a), get(b), get(c)));
  llvm::Value* x = get(a);
  return wrap(b_.CreateIntrinsic(llvm::Intrinsic::fma, {x->getType()}, {x, get(b), get(c)}));
}

Value Codegen::unary(const kir::Node& n, const Value& a) {
  const Type from = k_.at(n.a).type;
  // Between i32 and u32 nothing happens.
  if ((n.op == Op::cast || n.op == Op::bitcast) && word_int(from) && word_int(n.type)) return a;
  llvm::Value* x = plain(a);
  llvm::Type* t = x->getType();
  switch (n.op) {
    case Op::neg: return wrap(kir::is_float(n.type) ? b_.CreateFNeg(x) : b_.CreateNeg(x));
    case Op::logic_not: return wrap(b_.CreateNot(x));
    case Op::abs:
      if (kir::is_float(n.type)) return wrap(b_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x));
      if (!kir::is_signed(n.type)) return a;
      return wrap(b_.CreateBinaryIntrinsic(llvm::Intrinsic::abs, x, b_.getFalse()));
    case Op::floor: return wrap(b_.CreateUnaryIntrinsic(llvm::Intrinsic::floor, x));
    case Op::round: return wrap(b_.CreateUnaryIntrinsic(llvm::Intrinsic::roundeven, x));
    case Op::sqrt: return wrap(b_.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, x));
    case Op::cast: return wrap(cast(from, n.type, x));
    case Op::bitcast: return wrap(b_.CreateBitCast(x, shaped(type(n.type), t)));
    case Op::half_to_f32: return wrap(half_to_f32(x));
    case Op::f32_to_half: return wrap(f32_to_half(x));
    default: fail("the code generator does not know op " + std::string(kir::op_info(n.op).name)); return a;
  }
}

Value Codegen::binary(const kir::Node& n, const Value& a, const Value& b) {
  const Type operand = k_.at(n.a).type;
  Value affine;
  if (word_int(operand) && !(a.scalar() && b.scalar()) && affine_binary(n, a, b, &affine)) return affine;
  const bool flat = a.scalar() && b.scalar();
  llvm::Value* x = flat ? a.v : vec(a);
  llvm::Value* y = flat ? b.v : vec(b);
  if (n.op == Op::shl || n.op == Op::shr) {
    y = b_.CreateZExtOrTrunc(y, x->getType());
    llvm::Value* r = n.op == Op::shl           ? b_.CreateShl(x, y)
                     : kir::is_signed(operand) ? b_.CreateAShr(x, y)
                                               : b_.CreateLShr(x, y);
    uint32_t align = 1;
    if (auto* c = llvm::dyn_cast<llvm::ConstantInt>(y); c && n.op == Op::shl && flat) {
      align = low_bit(uint64_t{a.align} << std::min<uint64_t>(c->getZExtValue(), 31));
    }
    return wrap(r, align);
  }
  if (n.op == Op::lt || n.op == Op::le || n.op == Op::eq || n.op == Op::ne) return wrap(compare(n.op, operand, x, y));
  if (n.op == Op::div || n.op == Op::rem) {
    if (kir::is_float(operand)) return wrap(n.op == Op::div ? b_.CreateFDiv(x, y) : b_.CreateFRem(x, y));
    return wrap(divide(n.op == Op::rem, operand, x, y));
  }
  uint32_t align = 1;
  if (flat && word_int(operand)) {
    if (n.op == Op::add || n.op == Op::sub) align = std::min(a.align, b.align);
    if (n.op == Op::mul) align = low_bit(uint64_t{a.align} * b.align);
    if (n.op == Op::bit_and) align = std::max(a.align, b.align);
  }
  return wrap(arithmetic(n.op, operand, x, y), align);
}

// Keeps scalar + pattern through + - and multiplication, shifts, division, remainder and masks by constants. Division
// and masks need the scalar part to be a multiple of the power of two in question and the pattern to stay below the
// scalar's alignment, so that no carry passes between the two.
bool Codegen::affine_binary(const kir::Node& n, const Value& a, const Value& b, Value* out) {
  auto parts = [&](const Value& v, llvm::Value** base, Lanes* pattern) {
    if (v.affine())
      *base = v.base, *pattern = v.pattern;
    else if (v.scalar())
      *base = v.v, pattern->assign(lanes_, 0);
    else
      return false;
    return true;
  };
  llvm::Value *x = nullptr, *y = nullptr;
  Lanes p, q;
  if (!parts(a, &x, &p) || !parts(b, &y, &q)) return false;
  Value r;
  if (n.op == Op::add || n.op == Op::sub) {
    const bool add = n.op == Op::add;
    if (!add && !x && y) x = word(0);
    r.base = !y ? x : !x ? y : add ? b_.CreateAdd(x, y) : b_.CreateSub(x, y);
    r.align = std::min(x ? a.align : 1u << 31, y ? b.align : 1u << 31);
    for (uint32_t i = 0; i < lanes_; ++i) r.pattern.push_back(add ? p[i] + q[i] : p[i] - q[i]);
    *out = std::move(r);
    return true;
  }
  if (n.op == Op::mul && !b.scalar()) return a.scalar() && affine_binary(n, b, a, out);
  auto* c = llvm::dyn_cast_or_null<llvm::ConstantInt>(b.scalar() ? b.v : nullptr);
  if (!c || !a.affine()) return false;
  const uint32_t k = static_cast<uint32_t>(c->getZExtValue());
  const uint32_t largest = *std::max_element(p.begin(), p.end());
  const bool apart = !x || (largest < a.align && !kir::is_signed(n.type));
  const bool small = largest < (1u << 31);
  auto each = [&](auto f) {
    for (uint32_t v : p) r.pattern.push_back(f(v));
  };
  if (n.op == Op::mul || (n.op == Op::shl && k < 32)) {
    const uint32_t f = n.op == Op::mul ? k : 1u << k;
    each([&](uint32_t v) { return v * f; });
    if (x) r.base = b_.CreateMul(x, word(f));
    r.align = low_bit(uint64_t{a.align} * low_bit(f));
  } else if ((n.op == Op::div || n.op == Op::shr) && small && (n.op == Op::shr || k != 0)) {
    const uint32_t d = n.op == Op::div ? k : 1u << (k & 31);
    if (!apart || (x && (!std::has_single_bit(d) || a.align % d != 0))) return false;
    each([&](uint32_t v) { return v / d; });
    if (x) r.base = b_.CreateLShr(x, word(static_cast<uint32_t>(std::countr_zero(d))));
    r.align = x ? a.align / d : 1u << 31;
  } else if (n.op == Op::rem && k != 0 && small) {
    if (!apart || (x && (!std::has_single_bit(k) || a.align % k != 0))) return false;
    each([&](uint32_t v) { return v % k; });
    r.align = 1u << 31;
  } else if (n.op == Op::bit_and) {
    if (!apart) return false;
    each([&](uint32_t v) { return v & k; });
    if (x) r.base = b_.CreateAnd(x, word(k));
    r.align = std::max(a.align, low_bit(k));
  } else {
    return false;
  }
  *out = std::move(r);
  return true;
}

llvm::Value* Codegen::compare(Op op, Type t, llvm::Value* a, llvm::Value* b) {
  if (kir::is_float(t)) {
    if (op == Op::lt) return b_.CreateFCmpOLT(a, b);
    if (op == Op::le) return b_.CreateFCmpOLE(a, b);
    return op == Op::eq ? b_.CreateFCmpOEQ(a, b) : b_.CreateFCmpUNE(a, b);
  }
  if (op == Op::eq) return b_.CreateICmpEQ(a, b);
  if (op == Op::ne) return b_.CreateICmpNE(a, b);
  if (kir::is_signed(t)) return op == Op::lt ? b_.CreateICmpSLT(a, b) : b_.CreateICmpSLE(a, b);
  return op == Op::lt ? b_.CreateICmpULT(a, b) : b_.CreateICmpULE(a, b);
}

llvm::Value* Codegen::arithmetic(Op op, Type t, llvm::Value* a, llvm::Value* b) {
  const bool flt = kir::is_float(t);
  switch (op) {
    case Op::add: return flt ? b_.CreateFAdd(a, b) : b_.CreateAdd(a, b);
    case Op::sub: return flt ? b_.CreateFSub(a, b) : b_.CreateSub(a, b);
    case Op::mul: return flt ? b_.CreateFMul(a, b) : b_.CreateMul(a, b);
    case Op::min: return b_.CreateSelect(compare(Op::lt, t, a, b), a, b);
    case Op::max: return b_.CreateSelect(compare(Op::lt, t, b, a), a, b);
    case Op::bit_and: return b_.CreateAnd(a, b);
    case Op::bit_or: return b_.CreateOr(a, b);
    case Op::bit_xor: return b_.CreateXor(a, b);
    default: fail("the code generator does not know op " + std::string(kir::op_info(op).name)); return a;
  }
}

// Vectors of 32-bit integers divide in f64: with operands below 2^32 the quotient is at least 2^-32 (relative) away
// from the next integer, rounding moves it by 2^-53, so truncation is exact; hardware has no vector division and would
// take the lanes one by one.
llvm::Value* Codegen::divide(bool rem, Type t, llvm::Value* a, llvm::Value* b) {
  const bool sign = kir::is_signed(t);
  const bool vector = a->getType()->isVectorTy();
  auto hardware = [&](llvm::Value* d) {
    if (rem) return sign ? b_.CreateSRem(a, d) : b_.CreateURem(a, d);
    return sign ? b_.CreateSDiv(a, d) : b_.CreateUDiv(a, d);
  };
  if (!vector || llvm::isa<llvm::Constant>(b)) {
    auto* c = llvm::dyn_cast<llvm::Constant>(b);
    if (!mask_ || (c && c->getSplatValue() && !c->getSplatValue()->isNullValue())) return hardware(b);
  }
  if (vector && word_int(t)) {
    llvm::Type* d = shaped(b_.getDoubleTy(), a->getType());
    llvm::Value* x = sign ? b_.CreateSIToFP(a, d) : b_.CreateUIToFP(a, d);
    llvm::Value* y = sign ? b_.CreateSIToFP(b, d) : b_.CreateUIToFP(b, d);
    // Lanes that are off may leave the range, which must not poison others.
    llvm::Value* q = b_.CreateFDiv(x, y);
    q = sign ? b_.CreateFPToSI(q, a->getType()) : b_.CreateFPToUI(q, a->getType());
    q = b_.CreateFreeze(q);
    return rem ? b_.CreateSub(a, b_.CreateMul(q, b)) : q;
  }
  if (!mask_) return hardware(b);
  // Lanes that are off divide by one.
  llvm::Value* one = llvm::ConstantInt::get(b->getType(), 1);
  if (vector) return hardware(b_.CreateSelect(mask_, b, one));
  llvm::Value* zero = b_.CreateICmpEQ(b, llvm::Constant::getNullValue(b->getType()));
  return hardware(b_.CreateSelect(zero, one, b));
}

// Where no instruction saturates, LLVM's saturating conversions take vectors apart. The plain conversion gives some
// bits outside the range, which selects replace.
llvm::Value* Codegen::saturate(Type to, llvm::Value* a) {
  llvm::Type *t = shaped(type(to), a->getType()), *f = a->getType();
  const bool sign = kir::is_signed(to);
  if (isa_.saturating_casts) {
    const auto id = sign ? llvm::Intrinsic::fptosi_sat : llvm::Intrinsic::fptoui_sat;
    return b_.CreateIntrinsic(id, {t, f}, {a});
  }
  const uint32_t bits = kir::type_bytes(to) * 8;
  auto number = [&](double v) { return llvm::ConstantFP::get(f, v); };
  auto integer = [&](const llvm::APInt& v) { return llvm::ConstantInt::get(t, v); };
  llvm::Value* r = b_.CreateFreeze(sign ? b_.CreateFPToSI(a, t) : b_.CreateFPToUI(a, t));
  const double limit = std::ldexp(1.0, static_cast<int>(sign ? bits - 1 : bits));
  r = b_.CreateSelect(b_.CreateFCmpOGE(a, number(limit)),
                      integer(sign ? llvm::APInt::getSignedMaxValue(bits) : llvm::APInt::getMaxValue(bits)), r);
  if (!sign) return b_.CreateSelect(b_.CreateFCmpOGT(a, number(0)), r, llvm::Constant::getNullValue(t));
  r = b_.CreateSelect(b_.CreateFCmpOLT(a, number(-limit)), integer(llvm::APInt::getSignedMinValue(bits)), r);
  return b_.CreateSelect(b_.CreateFCmpUNO(a, a), llvm::Constant::getNullValue(t), r);
}

llvm::Value* Codegen::to_float(bool sign, llvm::Value* a, llvm::Type* t) {
  auto convert = [&](llvm::Value* v, llvm::Type* to) { return sign ? b_.CreateSIToFP(v, to) : b_.CreateUIToFP(v, to); };
  auto* many = llvm::dyn_cast<llvm::FixedVectorType>(t);
  if (!many || isa_.long_casts || !a->getType()->isIntOrIntVectorTy(64) || !many->getElementType()->isFloatTy())
    return convert(a, t);
  // As vectors they would pass through f64 and be rounded twice.
  llvm::Value* out = llvm::PoisonValue::get(t);
  for (uint32_t i = 0; i < many->getNumElements(); ++i)
    out = b_.CreateInsertElement(out, convert(extract(a, i), many->getElementType()), word(i));
  return out;
}

llvm::Value* Codegen::cast(Type from, Type to, llvm::Value* a) {
  llvm::Type* t = shaped(type(to), a->getType());
  const bool from_float = kir::is_float(from), to_float = kir::is_float(to);
  if (from == kir::b1) return to_float ? b_.CreateUIToFP(a, t) : b_.CreateZExt(a, t);
  if (from_float && to_float) return b_.CreateFPCast(a, t);
  if (from_float) return saturate(to, a);
  if (to_float) return this->to_float(kir::is_signed(from), a, t);
  return b_.CreateIntCast(a, t, kir::is_signed(from));
}

llvm::Value* Codegen::half_to_f32(llvm::Value* bits) {
  llvm::Type* t = bits->getType();
  llvm::Type* f = shaped(b_.getFloatTy(), t);
  if (isa_.half_casts) {
    llvm::Value* low = b_.CreateTrunc(bits, shaped(b_.getInt16Ty(), t));
    return b_.CreateFPExt(b_.CreateBitCast(low, shaped(b_.getHalfTy(), t)), f);
  }
  // Without the instruction LLVM would call a library: rebias by a multiplication, which is exact for subnormals too.
  auto c = [&](uint32_t v) { return llvm::ConstantInt::get(t, v); };
  llvm::Value* magnitude = b_.CreateAnd(bits, c(0x7fff));
  llvm::Value* sign = b_.CreateShl(b_.CreateAnd(bits, c(0x8000)), c(16));
  llvm::Value* scaled =
      b_.CreateFMul(b_.CreateBitCast(b_.CreateShl(magnitude, c(13)), f), llvm::ConstantFP::get(f, 0x1p112));
  llvm::Value* special = b_.CreateICmpUGE(magnitude, c(0x7c00));
  llvm::Value* quiet = b_.CreateSelect(b_.CreateICmpUGT(magnitude, c(0x7c00)), c(0x400000), c(0));
  llvm::Value* inf = b_.CreateOr(b_.CreateOr(b_.CreateShl(magnitude, c(13)), c(0x7f800000)), quiet);
  return b_.CreateBitCast(b_.CreateOr(sign, b_.CreateSelect(special, inf, b_.CreateBitCast(scaled, t))), f);
}

llvm::Value* Codegen::f32_to_half(llvm::Value* value) {
  llvm::Type* f = value->getType();
  llvm::Type* t = shaped(b_.getInt32Ty(), f);
  if (isa_.half_casts) {
    llvm::Value* half = b_.CreateFPTrunc(value, shaped(b_.getHalfTy(), f));
    return b_.CreateZExt(b_.CreateBitCast(half, shaped(b_.getInt16Ty(), f)), t);
  }
  auto c = [&](uint32_t v) { return llvm::ConstantInt::get(t, v); };
  llvm::Value* bits = b_.CreateBitCast(value, t);
  llvm::Value* sign = b_.CreateAnd(b_.CreateLShr(bits, c(16)), c(0x8000));
  llvm::Value* m = b_.CreateAnd(bits, c(0x7fffffff));
  // Normal: round the 13 dropped bits to even, rebias. Subnormal: adding 0.5 lets the float unit round at the right
  // bit.
  llvm::Value* odd = b_.CreateAnd(b_.CreateLShr(m, c(13)), c(1));
  llvm::Value* normal = b_.CreateLShr(b_.CreateAdd(b_.CreateAdd(m, odd), c(0xc8000fffu)), c(13));
  llvm::Value* shifted = b_.CreateFAdd(b_.CreateBitCast(m, f), llvm::ConstantFP::get(f, 0.5));
  llvm::Value* subnormal = b_.CreateSub(b_.CreateBitCast(shifted, t), c(0x3f000000));
  llvm::Value* nan = b_.CreateOr(b_.CreateAnd(b_.CreateLShr(m, c(13)), c(0x3ff)), c(0x7e00));
  llvm::Value* big = b_.CreateSelect(b_.CreateICmpUGT(m, c(0x7f800000)), nan, c(0x7c00));
  llvm::Value* r = b_.CreateSelect(b_.CreateICmpULT(m, c(0x38800000)), subnormal, normal);
  return b_.CreateOr(sign, b_.CreateSelect(b_.CreateICmpUGE(m, c(0x47800000)), big, r));
}

llvm::Value* Codegen::in_pieces(uint32_t lanes, llvm::ArrayRef<llvm::Value*> operands,
                                llvm::function_ref<llvm::Value*(llvm::ArrayRef<llvm::Value*>)> make) {
  const uint32_t count = llvm::cast<llvm::FixedVectorType>(operands[0]->getType())->getNumElements();
  std::vector<llvm::Value*> parts;
  for (uint32_t at = 0; at < count; at += lanes) {
    std::vector<int> mask(lanes);
    std::iota(mask.begin(), mask.end(), static_cast<int>(at));
    llvm::SmallVector<llvm::Value*, 3> piece;
    for (llvm::Value* v : operands) piece.push_back(lanes == count ? v : shuffle(v, mask));
    parts.push_back(make(piece));
  }
  return concat(std::move(parts));
}

llvm::Value* Codegen::dot4(llvm::Value* acc, llvm::Value* codes, llvm::Value* acts) {
  auto* t = llvm::dyn_cast<llvm::FixedVectorType>(acc->getType());
  for (const Dot4Unit& unit : isa_.dot4) {
    if (!t || t->getNumElements() % unit.lanes != 0) continue;
    return in_pieces(unit.lanes, {acc, codes, acts},
                     [&](llvm::ArrayRef<llvm::Value*> v) { return unit.make(b_, v[0], v[1], v[2]); });
  }
  for (int i = 0; i < 4; ++i) {
    auto at = [&](llvm::Value* v, bool sign) {
      llvm::Value* shl = b_.CreateShl(v, llvm::ConstantInt::get(v->getType(), 24 - 8 * i));
      llvm::Value* by = llvm::ConstantInt::get(v->getType(), 24);
      return sign ? b_.CreateAShr(shl, by) : b_.CreateLShr(shl, by);
    };
    acc = b_.CreateAdd(acc, b_.CreateMul(at(codes, false), at(acts, true)));
  }
  return acc;
}

llvm::Value* Codegen::lookup(llvm::Value* indices, uint64_t low, uint64_t high) {
  auto* t = llvm::dyn_cast<llvm::FixedVectorType>(indices->getType());
  const uint32_t count = t ? t->getNumElements() : 1;
  if (isa_.lookup.empty()) {
    fail("the target's features have no byte lookups (x86: SSSE3)");
    return indices;
  }
  if (count % 4 != 0) {  // a number, or too few lanes for a register: once in the first lanes of one
    llvm::Value* wide = llvm::ConstantInt::get(llvm::FixedVectorType::get(b_.getInt32Ty(), 4), 0);
    for (uint32_t i = 0; i < count; ++i)
      wide = b_.CreateInsertElement(wide, t ? b_.CreateExtractElement(indices, i) : indices, i);
    wide = lookup(wide, low, high);
    if (!t) return b_.CreateExtractElement(wide, uint64_t{0});
    std::vector<int> first(count);
    for (uint32_t i = 0; i < count; ++i) first[i] = static_cast<int>(i);
    return shuffle(wide, first);
  }
  const auto unit =
      std::find_if(isa_.lookup.begin(), isa_.lookup.end(), [&](const LookupUnit& u) { return count % u.lanes == 0; });
  std::vector<uint8_t> entries;
  for (uint32_t i = 0; i < unit->lanes * 4; ++i)
    entries.push_back(static_cast<uint8_t>((i % 16 < 8 ? low : high) >> (8 * (i % 8))));
  llvm::Value* table = llvm::ConstantDataVector::get(c_, entries);
  return in_pieces(unit->lanes, {indices}, [&](llvm::ArrayRef<llvm::Value*> v) {
    llvm::Value* found = unit->make(b_, table, b_.CreateBitCast(v[0], table->getType()));
    return b_.CreateBitCast(found, v[0]->getType());
  });
}

}  // namespace tern::emit
