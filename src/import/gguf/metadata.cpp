#include "import/gguf/metadata.h"

#include <charconv>
#include <limits>
#include <optional>

#include "base/utf8.h"

namespace tern::gguf {
namespace {

// A stored integer: sign and magnitude fit together only in both forms.
struct Integer {
  bool negative = false;
  uint64_t bits = 0;  // two's complement where negative
};

template <class T>
Integer widen(const std::byte* at) {
  const T value = load_le<T>(at);
  return {value < T{}, static_cast<uint64_t>(value)};
}

std::optional<Integer> integer_at(const Header& header, ValueType type, uint64_t at) {
  const std::byte* p = header.bytes.data() + at;
  switch (type) {
    case ValueType::u8: return widen<uint8_t>(p);
    case ValueType::i8: return widen<int8_t>(p);
    case ValueType::u16: return widen<uint16_t>(p);
    case ValueType::i16: return widen<int16_t>(p);
    case ValueType::u32: return widen<uint32_t>(p);
    case ValueType::i32: return widen<int32_t>(p);
    case ValueType::u64: return widen<uint64_t>(p);
    case ValueType::i64: return widen<int64_t>(p);
    default: return std::nullopt;
  }
}

bool is_integer(ValueType type) {
  return value_type(type).bytes != 0 && type != ValueType::boolean && type != ValueType::f32 && type != ValueType::f64;
}

std::optional<double> float_at(const Header& header, ValueType type, uint64_t at) {
  const std::byte* p = header.bytes.data() + at;
  if (type == ValueType::f32) return static_cast<double>(load_le<float>(p));
  if (type == ValueType::f64) return load_le<double>(p);
  return std::nullopt;
}

Error key_error(const Key& key, const std::string& what) {
  const std::string name = printable(key.name);
  return make_error(Code::malformed, name + " " + what, place(name, key.at));
}
Error mismatch(const Key& key, std::string_view wants) {
  const Value& v = key.value;
  const std::string what = v.type == ValueType::array ? "is an array of " + std::string(value_type(v.element).name)
                                                      : "has the type " + std::string(value_type(v.type).name);
  return key_error(key, what + ", wants " + std::string(wants));
}

Result<const Key*> lookup(const Header& header, std::string_view name) {
  const Key* key = header.find(name);
  if (key == nullptr) return make_error(Code::not_found, "the key " + printable(name) + " is missing", printable(name));
  return key;
}

Result<const Key*> array(const Header& header, std::string_view name, std::string_view wants) {
  TERN_TRY(const Key* key, lookup(header, name));
  if (key->value.type != ValueType::array) return mismatch(*key, wants);
  return key;
}

template <class T>
void append_number(std::string& out, T value) {
  char buffer[40];
  const auto end = std::to_chars(buffer, buffer + sizeof(buffer), value).ptr;
  out.append(buffer, end);
}

// The number or bool at `at`.
void append_scalar(std::string& out, const Header& header, ValueType type, uint64_t at) {
  if (type == ValueType::boolean)
    out += load_le<uint8_t>(header.bytes.data() + at) != 0 ? "true" : "false";
  else if (type == ValueType::f32)
    append_number(out, load_le<float>(header.bytes.data() + at));
  else if (const auto real = float_at(header, type, at))
    append_number(out, *real);
  else if (const auto integer = integer_at(header, type, at)) {
    if (integer->negative)
      append_number(out, static_cast<int64_t>(integer->bits));
    else
      append_number(out, integer->bits);
  }
}

std::string cut(std::string_view text, size_t max_text) {
  if (text.size() <= max_text) return utf8_lossy(text);
  size_t end = max_text;  // not inside a sequence
  while (end > 0 && end > max_text - std::min<size_t>(max_text, 3) &&
         (static_cast<uint8_t>(text[end]) & 0xC0u) == 0x80u)
    --end;
  return utf8_lossy(text.substr(0, end)) + "…";
}

}  // namespace

std::vector<std::string> HeaderMetadata::keys() const {
  std::vector<std::string> names;
  names.reserve(header_.keys.size());
  for (const Key& key : header_.keys) names.push_back(key.name);
  return names;
}

Result<std::string> HeaderMetadata::string(std::string_view name) const {
  TERN_TRY(const Key* key, lookup(header_, name));
  if (key->value.type != ValueType::string) return mismatch(*key, "a string");
  return std::string(header_.text(key->value));
}

Result<uint64_t> HeaderMetadata::u64(std::string_view name) const {
  TERN_TRY(const Key* key, lookup(header_, name));
  const auto value = integer_at(header_, key->value.type, key->value.at);
  if (!value) return mismatch(*key, "an integer");
  if (value->negative)
    return key_error(*key, "is " + std::to_string(static_cast<int64_t>(value->bits)) + ", wants a number from 0 up");
  return value->bits;
}

Result<int64_t> HeaderMetadata::i64(std::string_view name) const {
  TERN_TRY(const Key* key, lookup(header_, name));
  const auto value = integer_at(header_, key->value.type, key->value.at);
  if (!value) return mismatch(*key, "an integer");
  if (!value->negative && value->bits > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))
    return key_error(*key, "is " + std::to_string(value->bits) + ", which does not fit a signed 64-bit integer");
  return static_cast<int64_t>(value->bits);
}

Result<double> HeaderMetadata::f64(std::string_view name) const {
  TERN_TRY(const Key* key, lookup(header_, name));
  const auto value = float_at(header_, key->value.type, key->value.at);
  if (!value) return mismatch(*key, "a float");
  return *value;
}

Result<bool> HeaderMetadata::boolean(std::string_view name) const {
  TERN_TRY(const Key* key, lookup(header_, name));
  if (key->value.type != ValueType::boolean) return mismatch(*key, "a bool");
  return load_le<uint8_t>(header_.bytes.data() + key->value.at) != 0;
}

Result<std::vector<std::string>> HeaderMetadata::strings(std::string_view name) const {
  TERN_TRY(const Key* key, array(header_, name, "strings"));
  if (key->value.element != ValueType::string) return mismatch(*key, "strings");
  std::vector<std::string> out;
  out.reserve(key->value.count);  // at most an eighth of the header's bytes: parse_header
  uint64_t at = key->value.at;
  for (uint64_t i = 0; i < key->value.count; ++i) {
    const auto length = load_le<uint64_t>(header_.bytes.data() + at);
    out.emplace_back(reinterpret_cast<const char*>(header_.bytes.data()) + at + 8, length);
    at += 8 + length;
  }
  return out;
}

Result<std::vector<int64_t>> HeaderMetadata::ints(std::string_view name) const {
  TERN_TRY(const Key* key, array(header_, name, "integers"));
  const Value& v = key->value;
  if (!is_integer(v.element)) return mismatch(*key, "integers");
  std::vector<int64_t> out;
  out.reserve(v.count);
  for (uint64_t i = 0; i < v.count; ++i) {
    const auto value = integer_at(header_, v.element, v.at + i * value_type(v.element).bytes);
    if (!value->negative && value->bits > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))
      return key_error(*key, "holds " + std::to_string(value->bits) + " at index " + std::to_string(i) +
                                 ", which does not fit a signed 64-bit integer");
    out.push_back(static_cast<int64_t>(value->bits));
  }
  return out;
}

Result<std::vector<float>> HeaderMetadata::floats(std::string_view name) const {
  TERN_TRY(const Key* key, array(header_, name, "floats"));
  const Value& v = key->value;
  if (v.element != ValueType::f32 && v.element != ValueType::f64) return mismatch(*key, "floats");
  std::vector<float> out;
  out.reserve(v.count);
  for (uint64_t i = 0; i < v.count; ++i)
    out.push_back(static_cast<float>(*float_at(header_, v.element, v.at + i * value_type(v.element).bytes)));
  return out;
}

std::string type_text(const Value& value) {
  if (value.type != ValueType::array) return std::string(value_type(value.type).name);
  return std::string(value_type(value.element).name) + "[]";
}

std::string value_text(const Header& header, const Value& value, size_t max_text) {
  if (value.type == ValueType::string) return cut(header.text(value), max_text);
  std::string out;
  if (value.type != ValueType::array) {
    append_scalar(out, header, value.type, value.at);
    return out;
  }
  if (value.element == ValueType::array) return "[" + std::to_string(value.count) + " arrays]";
  uint64_t at = value.at;
  out = "[";
  for (uint64_t i = 0; i < value.count; ++i) {
    if (i > 0) out += ", ";
    if (out.size() >= max_text) return out + "…]";
    if (value.element == ValueType::string) {
      const auto length = load_le<uint64_t>(header.bytes.data() + at);
      const std::string_view text(reinterpret_cast<const char*>(header.bytes.data()) + at + 8, length);
      ((out += '"') += printable(text, max_text)) += '"';
      at += 8 + length;
    } else {
      append_scalar(out, header, value.element, at);
      at += value_type(value.element).bytes;
    }
  }
  return out + "]";
}

}  // namespace tern::gguf
