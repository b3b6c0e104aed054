// The part of a GGUF file in front of the tensor data, read and checked.
//
// Source: the GGUF specification (ggml-org, gguf.md), versions 2 and 3, little-endian. Every count, length, size and
// offset is compared with the length of the file, without overflow, before anything is allocated for it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "import/gguf/header/types.h"
#include "tern/import/model_file.h"
#include "tern/result.h"

namespace tern::gguf {

using Limits = FileLimits;

// A value's place in Header::bytes. Scalars: `bytes` of payload. string: the text itself. array: the elements.
struct Value {
  ValueType type = ValueType::u8;
  ValueType element = ValueType::u8;  // array
  uint64_t count = 1;                 // array: elements
  uint64_t at = 0, bytes = 0;         // payload in Header::bytes and in the file
};

struct Key {
  std::string name;
  Value value;
  uint64_t at = 0;  // file offset of the entry
};

struct Tensor {
  std::string name;
  std::vector<int64_t> shape;  // row-major: the file's ne reversed
  uint32_t type_id = 0;
  const TensorTypeRow* type = nullptr;  // the reading that fits the file; never null after parse_header
  uint64_t offset = 0;                  // of the data, from the start of the file
  uint64_t bytes = 0;                   // of the data
  uint64_t at = 0;                      // file offset of the table entry
  uint32_t part = 0;                    // which file of a split model
};

struct Header {
  uint32_t version = 0;
  uint64_t alignment = 32;
  uint64_t data_offset = 0;
  uint64_t file_bytes = 0;
  std::vector<Key> keys;               // in file order; names are unique
  std::vector<uint32_t> keys_by_name;  // sorted
  std::vector<Tensor> tensors;         // in file order; names are unique, extents lie in the file and do not overlap
  std::vector<std::byte> bytes;        // the file's first bytes, up to the end of the tensor table: owned, so that keys
                                       // outlive changes of the file

  const Key* find(std::string_view name) const;
  std::string_view text(const Value& value) const {  // string values and single elements of string arrays
    return {reinterpret_cast<const char*>(bytes.data()) + value.at, static_cast<size_t>(value.bytes)};
  }
};

Result<Header> parse_header(const ByteSource& file, const Limits& limits);

// "general.name @0x1f40", what Error::where holds.
std::string place(std::string_view name, uint64_t at);

// The steps of parse_header that have files of their own.
// tensor_table.cpp: reads `count` entries at the reader's position into header.tensors.
class HeaderReader;
Status read_tensor_table(HeaderReader& reader, uint64_t count, const Limits& limits, Header& header);
// extents.cpp: chooses the reading of each type id, computes sizes and checks extents.
Status place_tensors(Header& header);

}  // namespace tern::gguf
