// The table of elementwise ops: one row gives name, type rule, f64 and integer value, and the kir spelling.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "tern/dtype.h"
#include "tern/result.h"

namespace tern {

// What types an op takes and gives. `same`: all operands and the result share one type.
enum class ScalarRule : uint8_t {
  same_float,   // floats -> same
  same_number,  // floats, integers -> same
  same_int,     // integers, bool -> same
  compare,      // two equal types -> bool
  logic,        // bool -> bool
  to_bool,      // float -> bool (isnan, isinf)
  select,       // bool, T, T -> T
  cast,         // anything -> attribute dtype
};

// Enumerators in the order of scalar_ops.inc: ScalarOp::add, ScalarOp::exp, ...
enum class ScalarOp : uint8_t {
#define TERN_SCALAR(name, arity, rule, f64_value, i64_value, kir_value) name,
#include "core/scalar_ops.inc"
#undef TERN_SCALAR
  count_
};

struct ScalarRow {
  std::string_view name;
  uint8_t arity;
  ScalarRule rule;
  double (*f64)(double a, double b, double c);  // null: no float form
  int64_t (*i64)(int64_t a, int64_t b,
                 int64_t c);  // null: no integer form; results are wrapped to the type by the caller
  // u64 operands arrive as their bits; null: i64 holds for them too, as it does for all narrower types.
  int64_t (*u64)(int64_t a, int64_t b, int64_t c);
};

std::span<const ScalarRow> scalar_rows();
const ScalarRow& scalar_row(ScalarOp op);
// The result type, or an error naming the op and the types.
Result<DType> scalar_type(ScalarOp op, std::span<const DType> in, DType cast_to = DType::f32);

}  // namespace tern
