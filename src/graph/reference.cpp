#include "graph/reference.h"

#include <bit>
#include <cmath>
#include <cstring>

namespace tern {
namespace {

// To f32 with round to odd: the bits that fall off leave their trace in the last one, so that a second rounding to at
// most 22 explicit bits gives what a single one would have given (Boldo and Melquiond 2008, "Emulation of FMA and
// correctly rounded sums: proved algorithms using rounding to odd").
float to_f32_odd(double v) {
  const auto f = static_cast<float>(v);
  if (!std::isfinite(v) || static_cast<double>(f) == v) return f;
  auto bits = std::bit_cast<uint32_t>(f);
  if (std::isinf(f)) return std::copysign(std::numeric_limits<float>::max(), f);
  // Toward zero, then the last bit set.
  if (std::fabs(static_cast<double>(f)) > std::fabs(v)) --bits;
  return std::bit_cast<float>(bits | 1);
}

template <class T>
T load(const std::byte* p) {
  T v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
template <class T>
void save(std::byte* p, T v) {
  std::memcpy(p, &v, sizeof v);
}

double load_float(DType dtype, const std::byte* p) {
  switch (dtype) {
    case DType::f64:
    case DType::c128: return load<double>(p);
    case DType::f16: return f16_to_f32(load<uint16_t>(p));
    case DType::bf16: return bf16_to_f32(load<uint16_t>(p));
    case DType::f8e4m3: return f8e4m3_to_f32(load<uint8_t>(p));
    case DType::f8e5m2: return f8e5m2_to_f32(load<uint8_t>(p));
    default: return load<float>(p);
  }
}

void save_float(DType dtype, std::byte* p, double v) {
  switch (dtype) {
    case DType::f64:
    case DType::c128: return save(p, v);
    case DType::f16: return save(p, f32_to_f16(to_f32_odd(v)));
    case DType::bf16: return save(p, f32_to_bf16(to_f32_odd(v)));
    case DType::f8e4m3: return save(p, f32_to_f8e4m3(to_f32_odd(v)));
    case DType::f8e5m2: return save(p, f32_to_f8e5m2(to_f32_odd(v)));
    default: return save(p, static_cast<float>(v));
  }
}

bool has_floats(DType dtype) { return is_float(dtype) || is_complex(dtype); }

// Bytes of one number: complex types hold two.
size_t number_bytes(DType dtype) { return dtype_bytes(dtype) / (is_complex(dtype) ? 2 : 1); }

void load_all(RefTensor& t, const std::byte* p) {
  const size_t step = number_bytes(t.dtype);
  for (double& v : t.f) v = load_float(t.dtype, p), p += step;
  for (int64_t& v : t.i) {
    uint64_t bits = 0;
    for (size_t b = 0; b < step; ++b) bits |= static_cast<uint64_t>(p[b]) << (8 * b);
    v = wrap_to(t.dtype, static_cast<int64_t>(bits));
    p += step;
  }
}

void save_all(const RefTensor& t, std::byte* p) {
  const size_t step = number_bytes(t.dtype);
  for (double v : t.f) save_float(t.dtype, p, v), p += step;
  for (int64_t v : t.i) {
    const auto bits = static_cast<uint64_t>(wrap_to(t.dtype, v));
    for (size_t b = 0; b < step; ++b) p[b] = static_cast<std::byte>(bits >> (8 * b));
    p += step;
  }
}

}  // namespace

double round_to(DType dtype, double value) {
  std::byte bytes[8];
  save_float(dtype, bytes, value);
  return load_float(dtype, bytes);
}

int64_t wrap_to(DType dtype, int64_t value) {
  const DTypeInfo& info = dtype_info(dtype);
  if (info.kind == DTypeKind::boolean) return value != 0;
  const int shift = 64 - 8 * info.bytes;
  const auto high = static_cast<uint64_t>(value) << shift;
  return info.kind == DTypeKind::signed_int ? static_cast<int64_t>(high) >> shift : static_cast<int64_t>(high >> shift);
}

RefTensor ref_zeros(DType dtype, std::vector<int64_t> shape) {
  RefTensor t{dtype, std::move(shape), {}, {}};
  const auto n = static_cast<size_t>(t.size());
  if (has_floats(dtype)) {
    t.f.resize(n * (is_complex(dtype) ? 2 : 1));
  } else {
    t.i.resize(n);
  }
  return t;
}

Result<RefTensor> ref_from(const TensorView& view) {
  TERN_TRY(const uint64_t bytes, dense_bytes(view.dtype, view.format, view.shape));
  if (view.data.size() != bytes) {
    return make_error(Code::invalid,
                      "a tensor of " + std::to_string(bytes) + " bytes comes with " + std::to_string(view.data.size()));
  }
  RefTensor t = ref_zeros(view.dtype, view.shape);
  if (!view.format) {
    load_all(t, view.data.data());
    return t;
  }
  const Format& f = *view.format;
  if (f.block[0] != 1 || !is_float(view.dtype)) {
    return make_error(Code::unsupported, "reference evaluation of " + std::string(f.name) + " blocks of several rows");
  }
  const Planes planes{{view.data, {}, {}, {}}};
  std::vector<float> block(f.block[1]);
  for (size_t b = 0; b * block.size() < t.f.size(); ++b) {
    f.decode(planes, static_cast<int64_t>(b), block.data());
    std::copy(block.begin(), block.end(), t.f.begin() + static_cast<std::ptrdiff_t>(b * block.size()));
  }
  return t;
}

Result<RefTensor> ref_from(const Const& c) {
  return ref_from(TensorView{c.dtype, c.shape,
                             c.data ? std::span<const std::byte>(*c.data) : std::span<const std::byte>(), nullptr});
}

Const const_from(const RefTensor& tensor) {
  auto bytes = std::make_shared<std::vector<std::byte>>(static_cast<size_t>(tensor.size()) * dtype_bytes(tensor.dtype));
  save_all(tensor, bytes->data());
  return {tensor.dtype, tensor.shape, std::move(bytes)};
}

Status ref_store(const RefTensor& tensor, const MutableView& to) {
  TERN_TRY(const uint64_t bytes, dense_bytes(to.dtype, nullptr, to.shape));
  if (to.dtype != tensor.dtype || to.shape != tensor.shape || to.data.size() != bytes) {
    return make_error(Code::invalid, "a reference tensor is stored where another type or size is expected");
  }
  save_all(tensor, to.data.data());
  return ok();
}

}  // namespace tern
