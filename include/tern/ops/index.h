// Reading and writing rows by index.
#pragma once

#include "tern/graph.h"

namespace tern {

// data[.., index[i], ..]: whole slices along the axis; the result has index's axes in its place. index: any integer
// type. An index outside of the axis gives zeros (and a negative one is outside). Data may be quantised unless the axis
// is its last.
Value gather(Builder& b, Value data, Value index, int axis = 0);
// Rows of a table [V, E] (any float type or block format) by id: ids [T] gives [T, E].
Value embedding(Builder& b, Value table, Value ids);
// The state [slots, ..] with row index[t] replaced by src[t, ..] (src [T, ..], floats are cast to the state's type). A
// row outside is dropped, which is how padding is written. Indices inside must differ: which of two equal ones wins is
// not defined. The result overwrites the state where nobody reads the old one afterwards.
Value store_rows(Builder& b, Value state, Value index, Value src);

// Where x is not 0: [n, rank] indices in row-major order (i32 or i64), n a late size of its own of at most as many as x
// has elements. x has at least one axis and less than 2^31 elements.
Value nonzero(Builder& b, Value x, DType dtype = DType::i64);
}  // namespace tern
