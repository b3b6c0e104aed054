// The tensor table: names, dimensions, types and offsets, each entry checked by itself. What it means for the data is
// extents.cpp's.
#include <algorithm>
#include <limits>

#include "base/utf8.h"
#include "import/gguf/header/header.h"
#include "import/gguf/header/reader.h"

namespace tern::gguf {
namespace {

constexpr uint64_t kNameBytes = 64;  // the specification's limit
constexpr uint32_t kMaxDims = 4;

// A first name that is no name mostly means that the keys did not end where the table was looked for.
Error bad_name(HeaderReader& reader, uint64_t index, const std::string& what) {
  return reader.error(Code::malformed,
                      what + (index == 0 ? "; the table is not here, or the key count of the header is wrong" : ""));
}

Status read_name(HeaderReader& reader, uint64_t index, Tensor& tensor) {
  TERN_TRY(const uint64_t length, reader.get<uint64_t>("the length of the name"));
  if (length > kNameBytes)
    return bad_name(reader, index,
                    "a name of length " + std::to_string(length) + " is too long, tensor names have at most " +
                        std::to_string(kNameBytes) + " bytes");
  TERN_TRY(std::string_view name, reader.take(length, "the name"));
  if (name.empty()) return bad_name(reader, index, "the name is empty");
  if (!is_utf8(name)) return bad_name(reader, index, "the name is not UTF-8: \"" + printable(name) + "\"");
  if (name.find('\0') != name.npos)
    return bad_name(reader, index, "the name holds a zero byte: \"" + printable(name) + "\"");
  tensor.name = name;
  return ok();
}

// Every extent is positive and the number of elements fits int64.
Status read_shape(HeaderReader& reader, Tensor& tensor) {
  TERN_TRY(const uint32_t dims, reader.get<uint32_t>("the number of dimensions"));
  if (dims < 1 || dims > kMaxDims)
    return reader.error(Code::malformed,
                        std::to_string(dims) + " dimensions; tensors have 1 to " + std::to_string(kMaxDims));
  uint64_t elements = 1;
  constexpr auto kMax = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
  for (uint32_t i = 0; i < dims; ++i) {
    TERN_TRY(const uint64_t extent, reader.get<uint64_t>("a dimension"));
    if (extent == 0) return reader.error(Code::malformed, "dimension " + std::to_string(i) + " of its shape is 0");
    if (extent > kMax / elements)
      return reader.error(Code::malformed, "dimension " + std::to_string(i) + " is " + std::to_string(extent) +
                                               ": the number of elements overflows");
    elements *= extent;
    tensor.shape.push_back(static_cast<int64_t>(extent));
  }
  std::reverse(tensor.shape.begin(), tensor.shape.end());
  return ok();
}

Status check_type(HeaderReader& reader, Tensor& tensor) {
  const auto readings = readings_of(tensor.type_id);
  const std::string id = "type " + std::to_string(tensor.type_id);
  if (readings.empty()) return reader.error(Code::unsupported, "unknown tensor " + id);
  if (std::any_of(readings.begin(), readings.end(), [](const TensorTypeRow& row) { return row.listable; })) return ok();
  const TensorTypeRow& row = readings.front();
  return reader.error(Code::unsupported, "holds " + std::string(row.name) + " (" + id + ", " + std::string(row.whose) +
                                             "), which this build cannot read");
}

}  // namespace

Status read_tensor_table(HeaderReader& reader, uint64_t count, const Limits&, Header& header) {
  for (uint64_t i = 0; i < count; ++i) {
    Tensor tensor;
    tensor.at = reader.position();
    reader.set_owner("tensor", i, tensor.at);
    TERN_OK(read_name(reader, i, tensor));
    reader.set_owner("tensor", printable(tensor.name), tensor.at);
    TERN_OK(read_shape(reader, tensor));
    TERN_TRY(tensor.type_id, reader.get<uint32_t>("the type"));
    TERN_OK(check_type(reader, tensor));
    TERN_TRY(tensor.offset, reader.get<uint64_t>("the offset"));  // place_tensors makes it one into the file
    header.tensors.push_back(std::move(tensor));
  }
  std::vector<const Tensor*> order;
  order.reserve(header.tensors.size());
  for (const Tensor& tensor : header.tensors) order.push_back(&tensor);
  std::sort(order.begin(), order.end(), [](const Tensor* a, const Tensor* b) {
    const int c = a->name.compare(b->name);
    return c != 0 ? c < 0 : a->at < b->at;
  });
  for (size_t i = 1; i < order.size(); ++i) {
    if (order[i - 1]->name != order[i]->name) continue;
    reader.set_owner("tensor", printable(order[i]->name), order[i]->at);
    return reader.error(Code::malformed,
                        "the name is a duplicate: it was already given at offset " + std::to_string(order[i - 1]->at));
  }
  return ok();
}

}  // namespace tern::gguf
