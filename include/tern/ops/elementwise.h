// Elementwise functions of the graph builder. All arithmetic is in the operands' own type: integers stay integers and
// wrap, floats stay what they are. Operands of one call have one type; cast() converts.
//
// Two operands are broadcast against each other by NumPy's rule: aligned at the last axis, a missing axis or one of the
// constant 1 is repeated. A symbolic extent is never taken for such a 1: against another extent it becomes a guard that
// is tested when the sizes are bound. NaN passes min, max, clamp and relu. Errors stick to the builder, the value
// returned then is invalid.
#pragma once

#include <vector>

#include "tern/graph.h"

namespace tern {

// Floats and integers. Integer division truncates toward zero and gives 0 for a zero divisor; the remainder has the
// dividend's sign and is the dividend for a zero divisor.
Value add(Builder& b, Value x, Value y);
Value sub(Builder& b, Value x, Value y);
Value mul(Builder& b, Value x, Value y);
Value div(Builder& b, Value x, Value y);
Value rem(Builder& b, Value x, Value y);
Value min(Builder& b, Value x, Value y);
Value max(Builder& b, Value x, Value y);
// The same with a number of x's type.
Value add(Builder& b, Value x, double y);
Value sub(Builder& b, Value x, double y);
Value mul(Builder& b, Value x, double y);
Value div(Builder& b, Value x, double y);
Value min(Builder& b, Value x, double y);
Value max(Builder& b, Value x, double y);
// Floats.
Value pow(Builder& b, Value x, Value y);
Value atan2(Builder& b, Value y, Value x);
Value fma(Builder& b, Value x, Value y, Value z);  // x * y + z, rounded once
// min(max(x, low), high).
Value clamp(Builder& b, Value x, Value low, Value high);

Value neg(Builder& b, Value x);
Value abs(Builder& b, Value x);
Value sign(Builder& b, Value x);  // -1, 0, 1; keeps NaN and the zero's sign
Value relu(Builder& b, Value x);
// Floats.
Value sqrt(Builder& b, Value x);
Value rsqrt(Builder& b, Value x);
Value reciprocal(Builder& b, Value x);
Value exp(Builder& b, Value x);
Value log(Builder& b, Value x);
Value sin(Builder& b, Value x);  // radians
Value cos(Builder& b, Value x);
Value tanh(Builder& b, Value x);
Value erf(Builder& b, Value x);
Value sigmoid(Builder& b, Value x);
Value silu(Builder& b, Value x);       // x * sigmoid(x)
Value gelu_tanh(Builder& b, Value x);  // 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))), Hendrycks and Gimpel 2016
Value gelu_erf(Builder& b, Value x);   // 0.5 x (1 + erf(x / sqrt(2)))
Value softplus(Builder& b, Value x);   // log(1 + exp(x)), without overflow
Value floor(Builder& b, Value x);
Value ceil(Builder& b, Value x);
Value round(Builder& b, Value x);  // half to even
Value isnan(Builder& b, Value x);
Value isinf(Builder& b, Value x);
Value isfinite(Builder& b, Value x);

// Two equal real types to bool; a comparison with NaN is false, except ne.
Value equal(Builder& b, Value x, Value y);
Value not_equal(Builder& b, Value x, Value y);
Value less(Builder& b, Value x, Value y);
Value less_equal(Builder& b, Value x, Value y);
Value greater(Builder& b, Value x, Value y);
Value greater_equal(Builder& b, Value x, Value y);

// Integers and bool. Shifts by a negative amount or past the width give what shifting bit by bit would.
Value bit_and(Builder& b, Value x, Value y);
Value bit_or(Builder& b, Value x, Value y);
Value bit_xor(Builder& b, Value x, Value y);
Value shift_left(Builder& b, Value x, Value y);
Value shift_right(Builder& b, Value x, Value y);
Value logical_not(Builder& b, Value x);  // bool

// yes where cond (bool) is true, else no; the three are broadcast together.
Value select(Builder& b, Value cond, Value yes, Value no);
// To another type: floats round to nearest even, float to integer truncates and saturates with NaN giving 0, integers
// wrap, anything to bool is "not 0". The value itself where the type is the same.
Value cast(Builder& b, Value x, DType to);

// silu(gate) * up: the gated unit of Shazeer 2020.
Value swiglu(Builder& b, Value gate, Value up);

// Broadcasts values to one shape by the rule above; scalars and values that have the shape stay as they are.
std::vector<Value> broadcast_together(Builder& b, std::vector<Value> values);

}  // namespace tern
