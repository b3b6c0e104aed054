#include "graph/text/text.h"

#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>

namespace tern {

std::string shape_text(const DimTable& dims, const Shape& shape) {
  std::string s = "[";
  for (size_t i = 0; i < shape.size(); ++i) s += (i ? ", " : "") + dims.text(shape[i]);
  return s + "]";
}

std::string type_text(const DimTable& dims, const TensorType& type) {
  std::string s(type.format ? type.format->name : dtype_name(type.dtype));
  if (type.format && dtype_from_name(s)) s.insert(0, "format ");  // a block format may be named like an element type
  if (type.format && type.dtype != DType::f32) s += " as " + std::string(dtype_name(type.dtype));
  return s + shape_text(dims, type.shape);
}

namespace {
constexpr char kHex[] = "0123456789abcdef";
}

std::string quoted(std::string_view s) {
  std::string out = "\"";
  for (char c : s) {
    const auto u = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (u < 0x20 || u == 0x7f) {
      out += "\\x";
      out += kHex[u >> 4];
      out += kHex[u & 15];
    } else {
      out += c;
    }
  }
  return out + "\"";
}

namespace {

template <class T>
std::string number_text(T v) {
  if constexpr (std::is_floating_point_v<T>) {
    if (std::isnan(v)) return "nan";
  }
  char buffer[64];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, v);
  return {buffer, end.ptr};
}

template <class T>
T load(const std::byte* p) {
  T v;
  std::memcpy(&v, p, sizeof v);
  return v;
}

// One component; NaNs say "nan" and make the whole constant hexadecimal, since their payload is part of it.
std::string element_text(DType dtype, const std::byte* p) {
  switch (dtype) {
    case DType::f64:
    case DType::c128: return number_text(load<double>(p));
    case DType::f32:
    case DType::c64: return number_text(load<float>(p));
    case DType::f16: return number_text(f16_to_f32(load<uint16_t>(p)));
    case DType::bf16: return number_text(bf16_to_f32(load<uint16_t>(p)));
    case DType::f8e4m3: return number_text(f8e4m3_to_f32(load<uint8_t>(p)));
    case DType::f8e5m2: return number_text(f8e5m2_to_f32(load<uint8_t>(p)));
    case DType::i64: return number_text(load<int64_t>(p));
    case DType::i32: return number_text(load<int32_t>(p));
    case DType::i16: return number_text(load<int16_t>(p));
    case DType::i8: return number_text(static_cast<int>(load<int8_t>(p)));
    case DType::u64: return number_text(load<uint64_t>(p));
    case DType::u32: return number_text(load<uint32_t>(p));
    case DType::u16: return number_text(load<uint16_t>(p));
    case DType::u8:
    case DType::boolean: return number_text(static_cast<unsigned>(load<uint8_t>(p)));
  }
  return {};
}

std::string const_text(const Const& c) {
  std::string s(dtype_name(c.dtype));
  s += '[';
  for (size_t i = 0; i < c.shape.size(); ++i) s += (i ? ", " : "") + std::to_string(c.shape[i]);
  s += ']';
  if (!c.data) return s + " none";
  const std::vector<std::byte>& data = *c.data;
  const size_t step = dtype_bytes(c.dtype) / (is_complex(c.dtype) ? 2 : 1), count = data.size() / step;
  if (count <= kInlineNumbers && data.size() % step == 0) {
    std::string numbers;
    bool exact = true;
    for (size_t i = 0; i < count; ++i) {
      const std::string one = element_text(c.dtype, data.data() + i * step);
      exact &= one != "nan";
      numbers += (i ? ", " : "") + one;
    }
    if (exact) return s + " {" + numbers + "}";
  }
  s += " hex \"";
  s.reserve(s.size() + 2 * data.size() + 1);
  for (std::byte b : data) {
    s += kHex[static_cast<unsigned>(b) >> 4];
    s += kHex[static_cast<unsigned>(b) & 15];
  }
  return s + "\"";
}

}  // namespace

std::string real_text(double v) { return number_text(v); }

std::string attr_text(const DimTable& dims, const Attr& attr) {
  struct Visitor {
    const DimTable& dims;
    std::string operator()(bool v) const { return v ? "true" : "false"; }
    std::string operator()(int64_t v) const { return std::to_string(v); }
    std::string operator()(double v) const { return real_text(v); }
    std::string operator()(const std::string& v) const { return quoted(v); }
    std::string operator()(DType v) const { return std::string(dtype_name(v)); }
    std::string operator()(const std::vector<int64_t>& v) const {
      std::string s = "[";
      for (size_t i = 0; i < v.size(); ++i) s += (i ? ", " : "") + std::to_string(v[i]);
      return s + "]";
    }
    std::string operator()(Dim v) const { return dims.text(v); }
    std::string operator()(const Shape& v) const { return shape_text(dims, v); }
    std::string operator()(const Const& v) const { return const_text(v); }
  };
  return std::visit(Visitor{dims}, attr);
}

std::string node_text(uint32_t node, std::string_view op, const Loc& loc) {
  std::string s = "node " + std::to_string(node) + " (" + std::string(op) + ")";
  return loc.text.empty() ? s : s + " at " + loc.text;
}

std::string node_text(const Graph& graph, uint32_t node) {
  const Node& n = graph.node(node);
  std::string s = node_text(node, n.op ? n.op->name : "?", n.loc);
  if (const Port* p = graph.port_of({node, 0})) s += " '" + p->name + "'";
  return s;
}

}  // namespace tern
