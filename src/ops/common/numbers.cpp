#include "ops/common/numbers.h"

#include <cmath>

namespace tern {

Result<int64_t> number(const RefTensors& r, Dim dim) {
  if (auto c = dim.constant()) return *c;
  return r.dims->eval(dim, r.symbols);
}

Result<Extents> numbers(const RefTensors& r, const Shape& shape) {
  Extents out;
  for (Dim d : shape) {
    TERN_TRY(const int64_t n, number(r, d));
    out.push_back(n);
  }
  return out;
}

int64_t count(const Extents& shape, size_t first, size_t end) {
  int64_t n = 1;
  for (size_t i = first; i < end; ++i) n *= shape[i];
  return n;
}

Extents strides_of(const Extents& shape) {
  Extents stride(shape.size());
  int64_t step = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    stride[i] = step;
    step *= shape[i];
  }
  return stride;
}

void read_through(const RefTensor& in, int64_t offset, const Extents& stride, RefTensor& out) {
  walk(out.shape, offset, stride, [&](int64_t n, int64_t index) { move_element(in, index, out, n); });
}

namespace {

// Every value of `from` exists in `to`.
bool widens(DType from, DType to) {
  const DTypeInfo &a = dtype_info(from), &b = dtype_info(to);
  return a.mantissa_bits <= b.mantissa_bits && a.highest <= b.highest;
}

int64_t saturate(double v, DType to) {
  const DTypeInfo& info = dtype_info(to);
  if (std::isnan(v)) return 0;
  if (info.kind == DTypeKind::boolean) return v != 0;
  if (v <= info.lowest)
    return info.kind == DTypeKind::signed_int && info.bytes == 8 ? INT64_MIN : static_cast<int64_t>(info.lowest);
  if (v >= info.highest) {  // for 64 bits the table's value is one too large, which is just the first that saturates
    if (info.bytes < 8) return static_cast<int64_t>(info.highest);
    return info.kind == DTypeKind::signed_int ? INT64_MAX : -1;
  }
  return info.kind == DTypeKind::unsigned_int ? static_cast<int64_t>(static_cast<uint64_t>(v))
                                              : static_cast<int64_t>(v);
}

double to_real(int64_t v, DType from) {
  return from == DType::u64 ? static_cast<double>(static_cast<uint64_t>(v)) : static_cast<double>(v);
}

}  // namespace

void cast_element(const RefTensor& in, int64_t from, RefTensor& out, int64_t to) {
  const auto f = static_cast<size_t>(from), t = static_cast<size_t>(to);
  if (in.dtype == out.dtype) return move_element(in, from, out, to);
  const bool whole = !is_float(in.dtype) && !is_complex(in.dtype);
  if (out.dtype == DType::boolean) {
    out.i[t] = whole ? in.i[f] != 0 : in.f[f] != 0;
  } else if (!is_float(out.dtype) && !is_complex(out.dtype)) {
    out.i[t] = whole ? wrap_to(out.dtype, in.i[f]) : saturate(in.f[f], out.dtype);
  } else {
    const DType part = out.dtype == DType::c64 ? DType::f32 : out.dtype == DType::c128 ? DType::f64 : out.dtype;
    const bool exact = !whole && (is_complex(in.dtype) ? out.dtype == DType::c128 : widens(in.dtype, part));
    const size_t parts = is_complex(out.dtype) ? 2 : 1;
    for (size_t p = 0; p < parts; ++p) {
      double v = 0;
      if (whole) {
        v = p == 0 ? to_real(in.i[f], in.dtype) : 0;
      } else if (is_complex(in.dtype)) {
        v = in.f[2 * f + p];
      } else {
        v = p == 0 ? in.f[f] : 0;
      }
      out.f[t * parts + p] = exact ? v : round_to(part, v);
    }
  }
}

}  // namespace tern
