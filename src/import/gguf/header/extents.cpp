// Where each tensor's bytes lie. Some type ids mean different blocks in the files of different projects; of an id with
// several readings that one is taken which reproduces the offsets of the file, and the file is refused where none or
// several do.
#include <algorithm>
#include <optional>
#include <vector>

#include "base/utf8.h"
#include "import/gguf/header/header.h"

namespace tern::gguf {
namespace {

Error tensor_error(const Tensor& tensor, Code code, const std::string& what) {
  const std::string name = printable(tensor.name);
  return make_error(code, "tensor " + name + ": " + what, place(name, tensor.at));
}

std::string type_text(uint32_t id, const TensorTypeRow& row) {
  return std::string(row.name) + " (type " + std::to_string(id) + ")";
}

std::string block_text(const TensorTypeRow& row) {
  return std::string(row.name) + ": " + std::to_string(row.elements) + " values in " + std::to_string(row.bytes) +
         " bytes";
}

// Bytes of the tensor under a reading; nothing where a row is no whole number of blocks or the count overflows.
std::optional<uint64_t> bytes_under(const Tensor& tensor, const TensorTypeRow& row) {
  if (row.elements == 0 || static_cast<uint64_t>(tensor.shape.back()) % row.elements != 0) return std::nullopt;
  uint64_t blocks = 1;
  for (int64_t extent : tensor.shape) blocks *= static_cast<uint64_t>(extent);  // fits: read_shape
  blocks /= row.elements;
  if (blocks > UINT64_MAX / row.bytes) return std::nullopt;
  return blocks * row.bytes;
}

// The tensors in the order of their data, with what follows each.
struct Order {
  std::vector<uint32_t> by_offset;
  std::vector<uint64_t> end;  // per entry of by_offset: the next tensor's offset, or the size of the data section

  explicit Order(const Header& header, uint64_t data_bytes) {
    for (uint32_t i = 0; i < header.tensors.size(); ++i) by_offset.push_back(i);
    std::sort(by_offset.begin(), by_offset.end(), [&](uint32_t a, uint32_t b) {
      const Tensor &x = header.tensors[a], &y = header.tensors[b];
      return x.offset != y.offset ? x.offset < y.offset : a < b;
    });
    for (size_t i = 0; i < by_offset.size(); ++i)
      end.push_back(i + 1 < by_offset.size() ? header.tensors[by_offset[i + 1]].offset : data_bytes);
  }
};

enum class Fit : uint8_t { no, loose, exact };  // loose: fits, but what follows the last tensor is not just padding

// How the reading agrees with where the tensors of this id lie.
Fit fit(const Header& header, const Order& order, uint32_t id, const TensorTypeRow& row) {
  Fit result = Fit::exact;
  for (size_t i = 0; i < order.by_offset.size(); ++i) {
    const Tensor& tensor = header.tensors[order.by_offset[i]];
    if (tensor.type_id != id) continue;
    const auto bytes = bytes_under(tensor, row);
    if (!bytes || order.end[i] < tensor.offset || *bytes > order.end[i] - tensor.offset) return Fit::no;
    const uint64_t slack = order.end[i] - tensor.offset - *bytes;
    const bool last = i + 1 == order.by_offset.size();
    if (slack >= header.alignment && !last) return Fit::no;
    if (slack >= header.alignment) result = Fit::loose;
  }
  return result;
}

Result<const TensorTypeRow*> choose_reading(const Header& header, const Order& order, const Tensor& first) {
  const auto readings = readings_of(first.type_id);
  std::vector<const TensorTypeRow*> exact, loose;
  std::string all;
  for (const TensorTypeRow& row : readings) {
    if (row.elements == 0) continue;
    all += (all.empty() ? "" : "; ") + block_text(row);
    const Fit how = fit(header, order, first.type_id, row);
    if (how == Fit::exact) exact.push_back(&row);
    if (how == Fit::loose) loose.push_back(&row);
  }
  const auto& best = exact.empty() ? loose : exact;
  const std::string id = "type " + std::to_string(first.type_id);
  if (best.size() == 1 && best.front()->listable) return best.front();
  if (best.size() == 1)
    return tensor_error(first, Code::unsupported,
                        "holds " + std::string(best.front()->name) + " (" + id + ", " +
                            std::string(best.front()->whose) + "), as the offsets show, which this build cannot read");
  if (best.empty())
    return tensor_error(
        first, Code::malformed,
        "holds " + id + ", and no known layout of it reproduces the offsets of this file (" + all + ")");
  return tensor_error(
      first, Code::unsupported,
      "holds " + id + ", which is ambiguous here: more than one layout reproduces the offsets (" + all + ")");
}

Status choose_readings(Header& header, const Order& order) {
  std::vector<std::pair<uint32_t, const TensorTypeRow*>> chosen;  // few
  for (Tensor& tensor : header.tensors) {
    const auto readings = readings_of(tensor.type_id);
    if (readings.size() == 1) {
      tensor.type = &readings.front();
      continue;
    }
    auto it = std::find_if(chosen.begin(), chosen.end(), [&](const auto& c) { return c.first == tensor.type_id; });
    if (it == chosen.end()) {
      TERN_TRY(const TensorTypeRow* row, choose_reading(header, order, tensor));
      it = chosen.insert(chosen.end(), {tensor.type_id, row});
    }
    tensor.type = it->second;
  }
  return ok();
}

Status size_tensor(Tensor& tensor) {
  const TensorTypeRow& row = *tensor.type;
  const auto bytes = bytes_under(tensor, row);
  if (!bytes) {
    if (tensor.shape.back() % row.elements != 0)
      return tensor_error(tensor, Code::malformed,
                          "a row of " + std::to_string(tensor.shape.back()) + " is no multiple of the block of " +
                              std::to_string(row.elements) + " values of " + type_text(tensor.type_id, row));
    return tensor_error(tensor, Code::malformed, "its size in bytes overflows");
  }
  tensor.bytes = *bytes;
  return ok();
}

Status check_offset(const Tensor& tensor, uint64_t alignment) {
  if (tensor.offset % alignment == 0) return ok();
  return tensor_error(
      tensor, Code::malformed,
      "offset " + std::to_string(tensor.offset) + " is not a multiple of the alignment " + std::to_string(alignment));
}

Status check_extent(const Tensor& tensor, const Header& header, uint64_t data_bytes) {
  if (tensor.offset <= data_bytes && tensor.bytes <= data_bytes - tensor.offset) return ok();
  return tensor_error(tensor, Code::malformed,
                      "its data (offset " + std::to_string(tensor.offset) + ", " + std::to_string(tensor.bytes) +
                          " bytes) runs past the end of the file; the data section has " + std::to_string(data_bytes) +
                          " bytes from " + std::to_string(header.data_offset) + " on (alignment " +
                          std::to_string(header.alignment) + "): the file is truncated or its table is wrong");
}

}  // namespace

Status place_tensors(Header& header) {
  const uint64_t data_bytes = header.file_bytes > header.data_offset ? header.file_bytes - header.data_offset : 0;
  for (const Tensor& tensor : header.tensors) TERN_OK(check_offset(tensor, header.alignment));
  const Order order(header, data_bytes);
  TERN_OK(choose_readings(header, order));
  for (Tensor& tensor : header.tensors) {
    TERN_OK(size_tensor(tensor));
    TERN_OK(check_extent(tensor, header, data_bytes));
  }
  for (size_t i = 1; i < order.by_offset.size(); ++i) {
    const Tensor &before = header.tensors[order.by_offset[i - 1]], &tensor = header.tensors[order.by_offset[i]];
    if (tensor.offset - before.offset >= before.bytes) continue;
    return tensor_error(tensor, Code::malformed,
                        "its data at offset " + std::to_string(tensor.offset) + " overlaps that of " +
                            printable(before.name) + " (offset " + std::to_string(before.offset) + ", " +
                            std::to_string(before.bytes) + " bytes)");
  }
  for (Tensor& tensor : header.tensors) tensor.offset += header.data_offset;
  return ok();
}

}  // namespace tern::gguf
