#include "import/gguf/header/header.h"

#include <bit>
#include <numeric>

#include "base/utf8.h"
#include "import/gguf/header/reader.h"

namespace tern::gguf {
namespace {

constexpr uint64_t kLeastKeyBytes = 8 + 1 + 4 + 1;             // length, name, type, value
constexpr uint64_t kLeastTensorBytes = 8 + 1 + 4 + 8 + 4 + 8;  // length, name, dimensions, ne, type, offset
constexpr uint64_t kKeyNameBytes = 65535;                      // the specification's limit
constexpr int kMaxDepth = 8;                                   // of arrays in arrays

struct Counts {
  uint64_t tensors = 0, keys = 0;
};

Error bad_magic(HeaderReader& reader, std::string_view magic) {
  std::string text = "not a GGUF file: its magic is \"" + printable(magic) + "\"";
  const std::string_view reversed = "FUGG";
  if (magic == reversed) text += ", GGUF with the bytes of each word reversed (byte order, endian)";
  for (std::string_view old : {"tjgg", "lmgg", "fmgg", "algg"})  // ggjt, ggml, ggmf, ggla as stored
    if (magic == old) text += ", an older container (ggml family) that must be converted to GGUF";
  return reader.error(Code::malformed, text);
}

Result<Counts> read_fixed_part(HeaderReader& reader, Header& header, const Limits& limits) {
  reader.set_owner("header", 0);
  if (header.file_bytes == 0) return reader.error(Code::malformed, "the file is empty");
  TERN_TRY(std::string_view magic, reader.take(4, "the magic"));
  if (magic != "GGUF") return bad_magic(reader, magic);
  reader.set_owner("header", 4);
  TERN_TRY(header.version, reader.get<uint32_t>("the version"));
  const uint32_t version = header.version;
  if (version != 0 && (version & 0xffffffu) == 0)
    return reader.error(Code::unsupported, "the file is big-endian (version " + std::to_string(version >> 24) +
                                               " in the other byte order); convert it to little-endian");
  if (version != 2 && version != 3)
    return reader.error(Code::unsupported,
                        "GGUF version " + std::to_string(version) + " is not known; versions 2 and 3 are");
  Counts counts;
  TERN_TRY(counts.tensors, reader.get<uint64_t>("the tensor count"));
  TERN_TRY(counts.keys, reader.get<uint64_t>("the key count"));
  reader.set_owner("header", 8);
  if (counts.tensors > reader.remaining() / kLeastTensorBytes)
    return reader.error(Code::malformed, "tensor count " + std::to_string(counts.tensors) +
                                             " cannot fit: the file ends after " + std::to_string(header.file_bytes) +
                                             " bytes (truncated, or the count is wrong)");
  if (counts.tensors > limits.tensors)
    return reader.error(Code::limit, "tensor count " + std::to_string(counts.tensors) + " is above the limit of " +
                                         std::to_string(limits.tensors));
  reader.set_owner("header", 16);
  if (counts.keys > reader.remaining() / kLeastKeyBytes)
    return reader.error(Code::malformed, "key count " + std::to_string(counts.keys) +
                                             " cannot fit: the file ends after " + std::to_string(header.file_bytes) +
                                             " bytes (truncated, or the count is wrong)");
  if (counts.keys > limits.keys)
    return reader.error(Code::limit, "key count " + std::to_string(counts.keys) + " is above the limit of " +
                                         std::to_string(limits.keys));
  return counts;
}

// Steps over one string; gives its text's place.
Status read_string(HeaderReader& reader, const Limits& limits, std::string_view what, Value& value) {
  TERN_TRY(value.bytes, reader.get<uint64_t>(what));
  TERN_OK(reader.need(value.bytes, what));
  if (value.bytes > limits.string_bytes)
    return reader.error(Code::limit, std::string(what) + " of length " + std::to_string(value.bytes) +
                                         " is above the limit of " + std::to_string(limits.string_bytes) + " bytes");
  value.at = reader.position();
  TERN_TRY([[maybe_unused]] std::string_view text, reader.take(value.bytes, what));
  return ok();
}

Result<ValueType> read_value_type(HeaderReader& reader, std::string_view what) {
  TERN_TRY(const uint32_t type, reader.get<uint32_t>(what));
  if (!is_value_type(type))
    return reader.error(Code::malformed, "unknown " + std::string(what) + " " + std::to_string(type));
  return static_cast<ValueType>(type);
}

Status check_bools(HeaderReader& reader, std::string_view bytes) {
  for (char byte : bytes)
    if (byte != 0 && byte != 1)
      return reader.error(Code::malformed, "a value of type bool holds " + std::to_string(static_cast<uint8_t>(byte)) +
                                               ", wants 0 or 1");
  return ok();
}

Status read_array(HeaderReader& reader, const Limits& limits, Value& value, int depth) {
  if (depth >= kMaxDepth)
    return reader.error(Code::limit, "arrays are nested deeper than " + std::to_string(kMaxDepth) + " levels");
  TERN_TRY(value.element, read_value_type(reader, "array element type"));
  TERN_TRY(value.count, reader.get<uint64_t>("the array length"));
  const uint64_t count = value.count, width = value_type(value.element).bytes;
  // A string takes at least its length's 8 bytes, an array its type and length.
  const uint64_t least = value.element == ValueType::string ? 8 : value.element == ValueType::array ? 12 : width;
  if (count > reader.remaining() / least)
    return reader.error(Code::malformed, "array length " + std::to_string(count) + " runs past the end of the file (" +
                                             std::to_string(reader.remaining()) + " bytes are left)");
  value.at = reader.position();
  if (width > 0) {
    TERN_TRY(std::string_view elements, reader.take(count * width, "the array"));
    if (value.element == ValueType::boolean) TERN_OK(check_bools(reader, elements));
  } else {
    Value element;
    for (uint64_t i = 0; i < count; ++i) {
      if (value.element == ValueType::string)
        TERN_OK(read_string(reader, limits, "a string of the array", element));
      else
        TERN_OK(read_array(reader, limits, element, depth + 1));
    }
  }
  value.bytes = reader.position() - value.at;
  return ok();
}

Status read_key(HeaderReader& reader, const Limits& limits, uint64_t index, Key& key) {
  key.at = reader.position();
  reader.set_owner("key", index, key.at);
  TERN_TRY(const uint64_t length, reader.get<uint64_t>("the length of the name"));
  if (length > kKeyNameBytes)
    return reader.error(Code::malformed, "a name of length " + std::to_string(length) +
                                             " is too long; keys have at most " + std::to_string(kKeyNameBytes) +
                                             " bytes");
  TERN_TRY(std::string_view name, reader.take(length, "the name"));
  if (name.empty()) return reader.error(Code::malformed, "the name of the key is empty");
  if (!is_utf8(name))
    return reader.error(Code::malformed, "the name of the key is not UTF-8: \"" + printable(name) + "\"");
  if (name.find('\0') != name.npos)
    return reader.error(Code::malformed, "the name of the key holds a zero byte: \"" + printable(name) + "\"");
  key.name = name;
  reader.set_owner("key", printable(name), key.at);
  TERN_TRY(key.value.type, read_value_type(reader, "value type"));
  if (key.value.type == ValueType::string) return read_string(reader, limits, "the string", key.value);
  if (key.value.type == ValueType::array) return read_array(reader, limits, key.value, 0);
  key.value.at = reader.position();
  key.value.bytes = value_type(key.value.type).bytes;
  TERN_TRY(std::string_view payload, reader.take(key.value.bytes, "the value"));
  return key.value.type == ValueType::boolean ? check_bools(reader, payload) : ok();
}

// Sorting, not hashing: a crafted file cannot make it slow.
Status index_keys(HeaderReader& reader, Header& header) {
  auto& order = header.keys_by_name;
  order.resize(header.keys.size());
  std::iota(order.begin(), order.end(), 0u);
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    const int c = header.keys[a].name.compare(header.keys[b].name);
    return c != 0 ? c < 0 : a < b;
  });
  for (size_t i = 1; i < order.size(); ++i) {
    const Key &first = header.keys[order[i - 1]], &second = header.keys[order[i]];
    if (first.name != second.name) continue;
    reader.set_owner("key", printable(second.name), second.at);
    return reader.error(Code::malformed,
                        "the key is a duplicate: it was already given at offset " + std::to_string(first.at));
  }
  return ok();
}

Status read_alignment(HeaderReader& reader, Header& header) {
  const Key* key = header.find("general.alignment");
  if (key == nullptr) return ok();
  reader.set_owner("key", key->name, key->at);
  if (key->value.type != ValueType::u32)
    return reader.error(Code::malformed,
                        "the alignment has the type " + std::string(value_type(key->value.type).name) + ", wants u32");
  const auto value = load_le<uint32_t>(header.bytes.data() + key->value.at);
  // The specification wants a multiple of 8, writers and other readers a power of two: what all agree on is accepted.
  if (value < 8 || !std::has_single_bit(value))
    return reader.error(Code::malformed, "alignment " + std::to_string(value) + " is no power of two from 8 up");
  header.alignment = value;
  return ok();
}

}  // namespace

std::string place(std::string_view name, uint64_t at) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string hex;
  do hex.insert(hex.begin(), kDigits[at & 15]);
  while (at >>= 4);
  return std::string(name) + " @0x" + hex;
}

const Key* Header::find(std::string_view name) const {
  const auto it = std::lower_bound(keys_by_name.begin(), keys_by_name.end(), name,
                                   [&](uint32_t index, std::string_view want) { return keys[index].name < want; });
  return it != keys_by_name.end() && keys[*it].name == name ? &keys[*it] : nullptr;
}

Result<Header> parse_header(const ByteSource& file, const Limits& limits) {
  Header header;
  header.file_bytes = file.size();
  HeaderReader reader(file, limits.header_bytes);
  TERN_TRY(const Counts counts, read_fixed_part(reader, header, limits));
  for (uint64_t i = 0; i < counts.keys; ++i) {
    Key key;
    TERN_OK(read_key(reader, limits, i, key));
    header.keys.push_back(std::move(key));
  }
  TERN_OK(index_keys(reader, header));
  TERN_OK(read_tensor_table(reader, counts.tensors, limits, header));
  const uint64_t end = reader.position();
  header.bytes = reader.release();
  TERN_OK(read_alignment(reader, header));
  header.data_offset = (end + header.alignment - 1) / header.alignment * header.alignment;
  TERN_OK(place_tensors(header));
  return header;
}

}  // namespace tern::gguf
