// The ops over tiles. Included by one file for each instruction set, which names TERN_TILE_OPS, the namespace: what is
// inline here must never be shared between them, so nothing of the standard library with code of its own is used.
// Division by zero, or of MIN by -1, gives 0: only lanes that are off may do it.
#pragma once

#include <cstring>

#include "backends/cpu/tiles/ops.h"
#include "tern/dtype.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace tern::cpu::TERN_TILE_OPS {
namespace {

using kir::Op;
using kir::Type;

template <class T>
struct Vector {
  using type [[gnu::vector_size(kBlockLanes * sizeof(T))]] = T;
};
template <class T>
using Vec = typename Vector<T>::type;
using Mask = Vec<int32_t>;

template <class T>
inline Vec<T> get(const std::byte* p, uint32_t block) {
  Vec<T> v;
  std::memcpy(&v, p + size_t{block} * sizeof(v), sizeof(v));
  return v;
}
template <class T>
inline void put(std::byte* p, uint32_t block, Vec<T> v) {
  std::memcpy(p + size_t{block} * sizeof(v), &v, sizeof(v));
}

template <class R, class A, class F>
PureFn unary(F) {
  return [](const PureArgs& g) {
    for (uint32_t i = 0; i < g.blocks; ++i) put<R>(g.out, i, F{}(get<A>(g.in[0], i * g.stride[0])));
  };
}
template <class R, class A, class F>
PureFn binary(F) {
  return [](const PureArgs& g) {
    for (uint32_t i = 0; i < g.blocks; ++i)
      put<R>(g.out, i, F{}(get<A>(g.in[0], i * g.stride[0]), get<A>(g.in[1], i * g.stride[1])));
  };
}
template <class R, class A, class B, class C, class F>
PureFn ternary(F) {
  return [](const PureArgs& g) {
    for (uint32_t i = 0; i < g.blocks; ++i)
      put<R>(g.out, i,
             F{}(get<A>(g.in[0], i * g.stride[0]), get<B>(g.in[1], i * g.stride[1]), get<C>(g.in[2], i * g.stride[2])));
  };
}
// Lane by lane, for what has no vector form.
template <class R, class A, class F>
PureFn each(F) {
  return [](const PureArgs& g) {
    for (uint32_t i = 0; i < g.blocks; ++i) {
      const Vec<A> a = get<A>(g.in[0], i * g.stride[0]);
      Vec<R> r{};
      for (uint32_t l = 0; l < kBlockLanes; ++l) r[l] = F{}(a[l]);
      put<R>(g.out, i, r);
    }
  };
}
template <class T, class F>
PureFn each2(F) {
  return [](const PureArgs& g) {
    for (uint32_t i = 0; i < g.blocks; ++i) {
      const Vec<T> a = get<T>(g.in[0], i * g.stride[0]), b = get<T>(g.in[1], i * g.stride[1]);
      Vec<T> r{};
      for (uint32_t l = 0; l < kBlockLanes; ++l) r[l] = F{}(a[l], b[l]);
      put<T>(g.out, i, r);
    }
  };
}

inline Mask narrow(Vec<int64_t> v) { return __builtin_convertvector(v, Mask); }
inline Mask narrow(Mask v) { return v; }
template <class T>
inline auto widened(Mask m) {
  if constexpr (sizeof(T) == 8)
    return __builtin_convertvector(m, Vec<int64_t>);
  else
    return m;
}
template <class To, class From>
inline To as(From v) {
  To out;
  static_assert(sizeof(out) == sizeof(v));
  std::memcpy(&out, &v, sizeof(v));
  return out;
}

// ---- integers and floats

template <class T>
PureFn comparison(Op op) {
  switch (op) {
    case Op::lt: return binary<int32_t, T>([](Vec<T> a, Vec<T> b) { return narrow(a < b); });
    case Op::le: return binary<int32_t, T>([](Vec<T> a, Vec<T> b) { return narrow(a <= b); });
    case Op::eq: return binary<int32_t, T>([](Vec<T> a, Vec<T> b) { return narrow(a == b); });
    case Op::ne: return binary<int32_t, T>([](Vec<T> a, Vec<T> b) { return narrow(a != b); });
    default: return nullptr;
  }
}

template <class T, class U>
PureFn integer(Op op) {
  constexpr U bits = sizeof(T) * 8;
  switch (op) {
    case Op::neg: return unary<U, U>([](Vec<U> a) { return Vec<U>{} - a; });
    case Op::abs:
      return unary<U, T>([](Vec<T> a) {
        const Vec<U> u = as<Vec<U>>(a), sign = as<Vec<U>>(a < Vec<T>{});
        return (u ^ sign) - sign;
      });
    case Op::add: return binary<U, U>([](Vec<U> a, Vec<U> b) { return a + b; });
    case Op::sub: return binary<U, U>([](Vec<U> a, Vec<U> b) { return a - b; });
    case Op::mul: return binary<U, U>([](Vec<U> a, Vec<U> b) { return a * b; });
    case Op::min: return binary<T, T>([](Vec<T> a, Vec<T> b) { return a < b ? a : b; });
    case Op::max: return binary<T, T>([](Vec<T> a, Vec<T> b) { return a > b ? a : b; });
    case Op::bit_and: return binary<U, U>([](Vec<U> a, Vec<U> b) { return a & b; });
    case Op::bit_or: return binary<U, U>([](Vec<U> a, Vec<U> b) { return a | b; });
    case Op::bit_xor: return binary<U, U>([](Vec<U> a, Vec<U> b) { return a ^ b; });
    case Op::div:
      return each2<T>([](T a, T b) {
        const bool traps = b == 0 || (T(-1) < T(0) && b == T(-1) && static_cast<U>(a) == U(1) << (bits - 1));
        return traps ? T(0) : static_cast<T>(a / b);
      });
    case Op::rem:
      return each2<T>([](T a, T b) {
        const bool traps = b == 0 || (T(-1) < T(0) && b == T(-1));
        return traps ? T(0) : static_cast<T>(a % b);
      });
    case Op::shl:
      return ternary<U, U, uint32_t, uint32_t>([](Vec<U> a, Vec<uint32_t> n, Vec<uint32_t>) {
        return a << (__builtin_convertvector(n, Vec<U>) & (bits - 1));
      });
    case Op::shr:
      return ternary<T, T, uint32_t, uint32_t>([](Vec<T> a, Vec<uint32_t> n, Vec<uint32_t>) {
        return a >> as<Vec<T>>(__builtin_convertvector(n, Vec<U>) & (bits - 1));
      });
    default: return comparison<T>(op);
  }
}

inline float root(float v) { return __builtin_sqrtf(v); }
inline double root(double v) { return __builtin_sqrt(v); }
inline float floor_of(float v) { return __builtin_floorf(v); }
inline double floor_of(double v) { return __builtin_floor(v); }
inline float round_of(float v) { return __builtin_nearbyintf(v); }
inline double round_of(double v) { return __builtin_nearbyint(v); }
inline float fused(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
inline double fused(double a, double b, double c) { return __builtin_fma(a, b, c); }

#if defined(__AVX2__)
inline Vec<float> root(Vec<float> v) { return as<Vec<float>>(_mm256_sqrt_ps(as<__m256>(v))); }
inline Vec<float> floor_of(Vec<float> v) { return as<Vec<float>>(_mm256_floor_ps(as<__m256>(v))); }
inline Vec<float> round_of(Vec<float> v) {
  return as<Vec<float>>(_mm256_round_ps(as<__m256>(v), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}
inline Vec<float> fused(Vec<float> a, Vec<float> b, Vec<float> c) {
  return as<Vec<float>>(_mm256_fmadd_ps(as<__m256>(a), as<__m256>(b), as<__m256>(c)));
}
#else
inline Vec<float> root(Vec<float> v) {
  for (uint32_t l = 0; l < kBlockLanes; ++l) v[l] = root(v[l]);
  return v;
}
inline Vec<float> floor_of(Vec<float> v) {
  for (uint32_t l = 0; l < kBlockLanes; ++l) v[l] = floor_of(v[l]);
  return v;
}
inline Vec<float> round_of(Vec<float> v) {
  for (uint32_t l = 0; l < kBlockLanes; ++l) v[l] = round_of(v[l]);
  return v;
}
inline Vec<float> fused(Vec<float> a, Vec<float> b, Vec<float> c) {
  for (uint32_t l = 0; l < kBlockLanes; ++l) a[l] = fused(a[l], b[l], c[l]);
  return a;
}
#endif
inline Vec<double> root(Vec<double> v) {
  for (uint32_t l = 0; l < kBlockLanes; ++l) v[l] = root(v[l]);
  return v;
}
inline Vec<double> floor_of(Vec<double> v) {
  for (uint32_t l = 0; l < kBlockLanes; ++l) v[l] = floor_of(v[l]);
  return v;
}
inline Vec<double> round_of(Vec<double> v) {
  for (uint32_t l = 0; l < kBlockLanes; ++l) v[l] = round_of(v[l]);
  return v;
}
inline Vec<double> fused(Vec<double> a, Vec<double> b, Vec<double> c) {
  for (uint32_t l = 0; l < kBlockLanes; ++l) a[l] = fused(a[l], b[l], c[l]);
  return a;
}

template <class T, class U>
PureFn real(Op op) {
  constexpr U sign = U(1) << (sizeof(T) * 8 - 1);
  switch (op) {
    case Op::neg: return unary<U, U>([](Vec<U> a) { return a ^ sign; });
    case Op::abs: return unary<U, U>([](Vec<U> a) { return a & ~sign; });
    case Op::floor: return unary<T, T>([](Vec<T> a) { return floor_of(a); });
    case Op::round: return unary<T, T>([](Vec<T> a) { return round_of(a); });
    case Op::sqrt: return unary<T, T>([](Vec<T> a) { return root(a); });
    case Op::add: return binary<T, T>([](Vec<T> a, Vec<T> b) { return a + b; });
    case Op::sub: return binary<T, T>([](Vec<T> a, Vec<T> b) { return a - b; });
    case Op::mul: return binary<T, T>([](Vec<T> a, Vec<T> b) { return a * b; });
    case Op::div: return binary<T, T>([](Vec<T> a, Vec<T> b) { return a / b; });
    case Op::min: return binary<T, T>([](Vec<T> a, Vec<T> b) { return a < b ? a : b; });
    case Op::max: return binary<T, T>([](Vec<T> a, Vec<T> b) { return a > b ? a : b; });
    case Op::fma: return ternary<T, T, T, T>([](Vec<T> a, Vec<T> b, Vec<T> c) { return fused(a, b, c); });
    default: return comparison<T>(op);
  }
}

PureFn boolean(Op op) {
  switch (op) {
    case Op::logic_not: return unary<int32_t, int32_t>([](Mask a) { return ~a; });
    case Op::bit_and: return binary<int32_t, int32_t>([](Mask a, Mask b) { return a & b; });
    case Op::bit_or: return binary<int32_t, int32_t>([](Mask a, Mask b) { return a | b; });
    case Op::bit_xor:
    case Op::ne: return binary<int32_t, int32_t>([](Mask a, Mask b) { return a ^ b; });
    case Op::eq: return binary<int32_t, int32_t>([](Mask a, Mask b) { return ~(a ^ b); });
    default: return nullptr;
  }
}

// ---- conversions

// Toward zero, saturating, NaN gives 0.
template <class To, class From>
struct Saturate {
  To operator()(From v) const {
    constexpr bool has_sign = To(-1) < To(0);
    constexpr int digits = sizeof(To) * 8 - (has_sign ? 1 : 0);
    constexpr From over = From(uint64_t{1} << (digits - 1)) * 2;
    constexpr To most = static_cast<To>(~uint64_t{0} >> (64 - digits)), least = has_sign ? To(-most - 1) : To(0);
    if (v >= over) return most;
    if (has_sign ? v < -over : !(v > From(-1))) return v != v ? To(0) : least;
    return v != v ? To(0) : static_cast<To>(v);
  }
};

PureFn f32_to_i32() {
  return unary<int32_t, float>([](Vec<float> v) {
    const Mask over = v >= 0x1p31f, under = v < -0x1p31f, good = (v >= -0x1p31f) & (v < 0x1p31f);
    const Vec<float> safe = as<Vec<float>>(as<Mask>(v) & good);
    const Mask whole = __builtin_convertvector(safe, Mask);
    return (over & 0x7fffffff) | (under & static_cast<int32_t>(0x80000000u)) | whole;
  });
}

template <class To, class From>
PureFn converted() {
  return each<To, From>([](From v) { return static_cast<To>(v); });
}
template <class From>
PureFn cast_from(Type to) {
  constexpr bool whole = From(0.5) == From(0);
  switch (to) {
    case Type::f32: return converted<float, From>();
    case Type::f64: return converted<double, From>();
    default: break;
  }
  if constexpr (whole) {
    switch (to) {
      case Type::i32:
      case Type::u32: return converted<uint32_t, From>();
      case Type::i64: return converted<int64_t, From>();
      case Type::u64: return converted<uint64_t, From>();
      default: return nullptr;
    }
  } else {
    switch (to) {
      case Type::i32: return each<int32_t, From>(Saturate<int32_t, From>{});
      case Type::u32: return each<uint32_t, From>(Saturate<uint32_t, From>{});
      case Type::i64: return each<int64_t, From>(Saturate<int64_t, From>{});
      case Type::u64: return each<uint64_t, From>(Saturate<uint64_t, From>{});
      default: return nullptr;
    }
  }
}
template <class To>
PureFn from_mask() {
  return each<To, int32_t>([](int32_t m) { return static_cast<To>(m & 1); });
}

PureFn cast(Type to, Type from) {
  switch (from) {
    case Type::b1:
      switch (to) {
        case Type::i32:
        case Type::u32: return unary<int32_t, int32_t>([](Mask m) { return m & 1; });
        case Type::f32: return from_mask<float>();
        case Type::i64:
        case Type::u64: return from_mask<int64_t>();
        case Type::f64: return from_mask<double>();
        default: return nullptr;
      }
    case Type::i32:
      if (to == Type::f32)
        return unary<float, int32_t>([](Vec<int32_t> v) { return __builtin_convertvector(v, Vec<float>); });
      return cast_from<int32_t>(to);
    case Type::u32: return cast_from<uint32_t>(to);
    case Type::i64: return cast_from<int64_t>(to);
    case Type::u64: return cast_from<uint64_t>(to);
    case Type::f32: return to == Type::i32 ? f32_to_i32() : cast_from<float>(to);
    case Type::f64: return cast_from<double>(to);
    default: return nullptr;
  }
}

#if defined(__F16C__)
inline Vec<float> halves_to_f32(Vec<uint32_t> bits) {
  const __m256i words = _mm256_and_si256(as<__m256i>(bits), _mm256_set1_epi32(0xffff));
  const __m256i packed = _mm256_permute4x64_epi64(_mm256_packus_epi32(words, words), 0x08);
  return as<Vec<float>>(_mm256_cvtph_ps(_mm256_castsi256_si128(packed)));
}
inline Vec<uint32_t> f32_to_halves(Vec<float> v) {
  const __m128i halves = _mm256_cvtps_ph(as<__m256>(v), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  return as<Vec<uint32_t>>(_mm256_cvtepu16_epi32(halves));
}
#else
inline Vec<float> halves_to_f32(Vec<uint32_t> bits) {
  Vec<float> r{};
  for (uint32_t l = 0; l < kBlockLanes; ++l) r[l] = f16_to_f32(static_cast<uint16_t>(bits[l]));
  return r;
}
inline Vec<uint32_t> f32_to_halves(Vec<float> v) {
  Vec<uint32_t> r{};
  for (uint32_t l = 0; l < kBlockLanes; ++l) r[l] = f32_to_f16(v[l]);
  return r;
}
#endif

// ---- bytes

// Bytes 0 and 2 of a word, and 1 and 3, as 16-bit factors: products of a code and a signed byte fit, and so do their
// sums.
#if defined(__AVX2__)
inline Vec<uint32_t> dot4_of(Vec<uint32_t> acc, Vec<uint32_t> codes, Vec<uint32_t> acts) {
  const __m256i x = as<__m256i>(codes), y = as<__m256i>(acts), low = _mm256_set1_epi16(0xff);
  const __m256i even = _mm256_madd_epi16(_mm256_and_si256(x, low), _mm256_srai_epi16(_mm256_slli_epi16(y, 8), 8));
  const __m256i odd = _mm256_madd_epi16(_mm256_srli_epi16(x, 8), _mm256_srai_epi16(y, 8));
  return as<Vec<uint32_t>>(_mm256_add_epi32(as<__m256i>(acc), _mm256_add_epi32(even, odd)));
}
#elif defined(__x86_64__)
inline Vec<uint32_t> dot4_of(Vec<uint32_t> acc, Vec<uint32_t> codes, Vec<uint32_t> acts) {
  struct Pair {
    __m128i half[2];
  };
  Pair a = as<Pair>(acc);
  const Pair x = as<Pair>(codes), y = as<Pair>(acts);
  const __m128i low = _mm_set1_epi16(0xff);
  for (int i = 0; i < 2; ++i) {
    const __m128i even = _mm_madd_epi16(_mm_and_si128(x.half[i], low), _mm_srai_epi16(_mm_slli_epi16(y.half[i], 8), 8));
    const __m128i odd = _mm_madd_epi16(_mm_srli_epi16(x.half[i], 8), _mm_srai_epi16(y.half[i], 8));
    a.half[i] = _mm_add_epi32(a.half[i], _mm_add_epi32(even, odd));
  }
  return as<Vec<uint32_t>>(a);
}
#else
inline Vec<uint32_t> dot4_of(Vec<uint32_t> acc, Vec<uint32_t> codes, Vec<uint32_t> acts) {
  for (int byte = 0; byte < 4; ++byte) {
    const Vec<int32_t> act = as<Vec<int32_t>>(acts << (24 - 8 * byte)) >> 24;
    acc += (codes >> (8 * byte) & 0xff) * as<Vec<uint32_t>>(act);
  }
  return acc;
}
#endif

// Entries that a mask of the index's bits chooses between would be many; eight lanes have 32 bytes to look up.
PureFn lookup() {
  return [](const PureArgs& g) {
    alignas(16) uint8_t table[16];
    std::memcpy(table, &g.low, 8);
    std::memcpy(table + 8, &g.high, 8);
    for (uint32_t i = 0; i < g.blocks; ++i) {
      const std::byte* from = g.in[0] + size_t{i} * g.stride[0] * 32;
      std::byte* to = g.out + size_t{i} * 32;
#if defined(__AVX2__)
      const __m256i entries = _mm256_broadcastsi128_si256(_mm_load_si128(reinterpret_cast<const __m128i*>(table)));
      const __m256i index =
          _mm256_and_si256(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)), _mm256_set1_epi8(15));
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm256_shuffle_epi8(entries, index));
#else
      uint8_t bytes[32];
      std::memcpy(bytes, from, 32);
      for (uint8_t& b : bytes) b = table[b & 15];
      std::memcpy(to, bytes, 32);
#endif
    }
  };
}

PureFn select(Type type) {
  if (kir::type_info(type).bytes == 8)
    return ternary<int64_t, int32_t, int64_t, int64_t>(
        [](Mask m, Vec<int64_t> a, Vec<int64_t> b) { return (a & widened<int64_t>(m)) | (b & ~widened<int64_t>(m)); });
  return ternary<int32_t, int32_t, int32_t, int32_t>([](Mask m, Mask a, Mask b) { return (a & m) | (b & ~m); });
}

PureFn pure(Op op, Type type, Type operand) {
  switch (op) {
    case Op::cast: return cast(type, operand);
    case Op::half_to_f32: return unary<float, uint32_t>([](Vec<uint32_t> bits) { return halves_to_f32(bits); });
    case Op::f32_to_half: return unary<uint32_t, float>([](Vec<float> v) { return f32_to_halves(v); });
    case Op::select: return select(type);
    case Op::dot4:
      return ternary<uint32_t, uint32_t, uint32_t, uint32_t>(
          [](Vec<uint32_t> acc, Vec<uint32_t> codes, Vec<uint32_t> acts) { return dot4_of(acc, codes, acts); });
    case Op::lookup: return lookup();
    default: break;
  }
  switch (operand) {
    case Type::b1: return boolean(op);
    case Type::i32: return integer<int32_t, uint32_t>(op);
    case Type::u32: return integer<uint32_t, uint32_t>(op);
    case Type::i64: return integer<int64_t, uint64_t>(op);
    case Type::u64: return integer<uint64_t, uint64_t>(op);
    case Type::f32: return real<float, uint32_t>(op);
    case Type::f64: return real<double, uint64_t>(op);
    default: return nullptr;
  }
}

PureFn copy(Type type) {
  if (kir::type_info(type).bytes == 8) return unary<int64_t, int64_t>([](Vec<int64_t> v) { return v; });
  return unary<int32_t, int32_t>([](Mask v) { return v; });
}
PureFn blend(Type type) {
  if (kir::type_info(type).bytes == 8) {
    return [](const PureArgs& g) {
      for (uint32_t i = 0; i < g.blocks; ++i) {
        const auto m = widened<int64_t>(get<int32_t>(g.in[1], i));
        put<int64_t>(g.out, i, (get<int64_t>(g.in[0], i * g.stride[0]) & m) | (get<int64_t>(g.out, i) & ~m));
      }
    };
  }
  return [](const PureArgs& g) {
    for (uint32_t i = 0; i < g.blocks; ++i) {
      const Mask m = get<int32_t>(g.in[1], i);
      put<int32_t>(g.out, i, (get<int32_t>(g.in[0], i * g.stride[0]) & m) | (get<int32_t>(g.out, i) & ~m));
    }
  };
}

// ---- memory

// S: the type in memory, V: of the value's bits, converted by F.
template <class S>
struct Plain {
  using Stored = S;
  using Value = S;
  static Value load(Stored v) { return v; }
  static Stored store(Value v) { return v; }
};
template <class S, class W>
struct Small {
  using Stored = S;
  using Value = W;
  static Value load(Stored v) { return static_cast<W>(v); }
  static Stored store(Value v) { return static_cast<S>(v); }
};
struct Half {
  using Stored = uint16_t;
  using Value = float;
#if defined(__F16C__)
  static Value load(Stored v) { return _mm_cvtss_f32(_mm_cvtph_ps(_mm_cvtsi32_si128(v))); }
  static Stored store(Value v) {
    return static_cast<Stored>(
        _mm_extract_epi16(_mm_cvtps_ph(_mm_set_ss(v), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC), 0));
  }
#else
  static Value load(Stored v) { return f16_to_f32(v); }
  static Stored store(Value v) { return f32_to_f16(v); }
#endif
};

template <class T>
inline T peek(const std::byte* p) {
  T v;
  std::memcpy(&v, p, sizeof(v));
  return v;
}
template <class T>
inline void poke(std::byte* p, T v) {
  std::memcpy(p, &v, sizeof(v));
}

inline bool consecutive(const MemoryArgs& g) {
  if (g.mask != nullptr) return false;
  uint32_t off = 0;
  for (uint32_t l = 0; l < g.lanes; ++l) off |= g.index[l] ^ (g.index[0] + l);
  return off == 0;
}

template <class C>
void load(const MemoryArgs& g) {
  using S = typename C::Stored;
  using W = typename C::Value;
  constexpr size_t size = sizeof(S);
  const size_t element = size * g.width;
  if (g.one) {
    for (uint32_t p = 0; p < g.width; ++p) {
      const W v = C::load(peek<S>(g.base + g.index[0] * element + p * size));
      for (uint32_t l = 0; l < kBlockLanes; ++l) poke<W>(g.value[p] + l * sizeof(W), v);
    }
    return;
  }
  if (consecutive(g)) {
    const std::byte* from = g.base + g.index[0] * element;
    if (size == sizeof(W) && g.width == 1) {
      std::memcpy(g.value[0], from, g.lanes * size);
      return;
    }
    for (uint32_t p = 0; p < g.width; ++p) {
      std::byte* to = g.value[p];
      for (uint32_t l = 0; l < g.lanes; ++l)
        poke<W>(to + l * sizeof(W), C::load(peek<S>(from + l * element + p * size)));
    }
    return;
  }
  for (uint32_t p = 0; p < g.width; ++p) {
    std::byte* to = g.value[p];
    for (uint32_t l = 0; l < g.lanes; ++l) {
      if (g.mask != nullptr && g.mask[l] == 0) continue;
      poke<W>(to + l * sizeof(W), C::load(peek<S>(g.base + g.index[l] * element + p * size)));
    }
  }
}

template <class C>
void store(const MemoryArgs& g) {
  using S = typename C::Stored;
  using W = typename C::Value;
  constexpr size_t size = sizeof(S);
  const size_t element = size * g.width;
  if (g.one) {
    uint32_t last = g.lanes - 1;  // the one that stays
    while (g.mask != nullptr && g.mask[last] == 0 && last > 0) --last;
    for (uint32_t p = 0; p < g.width; ++p)
      poke<S>(g.base + g.index[0] * element + p * size,
              C::store(peek<W>(g.value[p] + last * g.value_step[p] * sizeof(W))));
    return;
  }
  if (size == sizeof(W) && g.width == 1 && g.value_step[0] == 1 && consecutive(g)) {
    std::memcpy(g.base + g.index[0] * element, g.value[0], g.lanes * size);
    return;
  }
  for (uint32_t l = 0; l < g.lanes; ++l) {
    if (g.mask != nullptr && g.mask[l] == 0) continue;
    for (uint32_t p = 0; p < g.width; ++p)
      poke<S>(g.base + g.index[l] * element + p * size,
              C::store(peek<W>(g.value[p] + size_t{l} * g.value_step[p] * sizeof(W))));
  }
}

template <template <class> class F>
MemoryFn by_type(Type stored) {
  switch (stored) {
    case Type::i32:
    case Type::u32:
    case Type::f32: return F<Plain<uint32_t>>::run;
    case Type::i64:
    case Type::u64:
    case Type::f64: return F<Plain<uint64_t>>::run;
    case Type::i8: return F<Small<int8_t, int32_t>>::run;
    case Type::u8: return F<Small<uint8_t, uint32_t>>::run;
    case Type::i16: return F<Small<int16_t, int32_t>>::run;
    case Type::u16: return F<Small<uint16_t, uint32_t>>::run;
    case Type::f16: return F<Half>::run;
    default: return nullptr;
  }
}
template <class C>
struct Load {
  static void run(const MemoryArgs& g) { load<C>(g); }
};
template <class C>
struct Store {
  static void run(const MemoryArgs& g) { store<C>(g); }
};

constexpr TileOps kOps = {pure, by_type<Load>, by_type<Store>, copy, blend};

}  // namespace
}  // namespace tern::cpu::TERN_TILE_OPS
