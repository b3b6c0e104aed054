// Spellings shared by printer, parser and messages.
#pragma once

#include <string>

#include "graph/op.h"

namespace tern {

// "f32[T, 576]", "q4_1[576, 576]".
std::string type_text(const DimTable& dims, const TensorType& type);
// "[T, 576]".
std::string shape_text(const DimTable& dims, const Shape& shape);
// In double quotes, with \" \\ \n \t and \xHH.
std::string quoted(std::string_view s);
std::string attr_text(const DimTable& dims, const Attr& attr);
// The shortest text that reads back to the same bits; "nan", "inf", "-inf".
std::string real_text(double v);
// "node 17 (dot_general) at blk.3/attn_q".
std::string node_text(const Graph& graph, uint32_t node);
std::string node_text(uint32_t node, std::string_view op, const Loc& loc);
// Constants up to this many numbers are written out, larger ones in hexadecimal.
inline constexpr size_t kInlineNumbers = 16;

}  // namespace tern
