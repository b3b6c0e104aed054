#include "import/gguf/file.h"

#include <algorithm>
#include <optional>

#include "base/utf8.h"

namespace tern::gguf {
namespace {

// Types that tern has: plain dtypes by name, block formats by id. Both must agree in name and size with the file's
// reading.
std::optional<TensorType> tern_type(const Tensor& tensor) {
  TensorType type;
  for (int64_t extent : tensor.shape) type.shape.emplace_back(extent);
  if (const auto dtype = dtype_from_name(tensor.type->name)) {
    type.dtype = *dtype;
    return type;
  }
  const Format* format = format_by_file_id("gguf", tensor.type_id);
  if (format == nullptr || format->name != tensor.type->name || format->bytes != tensor.type->bytes)
    return std::nullopt;
  type.format = format;
  return type;
}

std::string data_place(const Tensor& tensor, const std::vector<Part>& parts, uint32_t part) {
  std::string where = place(printable(tensor.name), tensor.offset);
  if (parts.size() > 1) where += " in " + parts[part].file->path();
  return where;
}

}  // namespace

GgufFile::GgufFile(std::vector<Part> parts) : parts_(std::move(parts)), metadata_(*parts_.front().header) {
  for (uint32_t p = 0; p < parts_.size(); ++p) {
    for (const Tensor& tensor : parts_[p].header->tensors) {
      Entry entry{&tensor, p, -1};
      if (auto type = tern_type(tensor)) {
        entry.weight = static_cast<int64_t>(weights_.size());
        weights_.push_back({tensor.name, std::move(*type), data_place(tensor, parts_, p), tensor.bytes});
      }
      entries_.push_back(entry);
    }
  }
  std::sort(entries_.begin(), entries_.end(),
            [](const Entry& a, const Entry& b) { return a.tensor->name < b.tensor->name; });
}

const GgufFile::Entry* GgufFile::entry(std::string_view name) const {
  const auto it = std::lower_bound(entries_.begin(), entries_.end(), name,
                                   [](const Entry& e, std::string_view want) { return e.tensor->name < want; });
  return it != entries_.end() && it->tensor->name == name ? &*it : nullptr;
}

const WeightInfo* GgufFile::find(std::string_view name) const {
  const Entry* e = entry(name);
  return e != nullptr && e->weight >= 0 ? &weights_[static_cast<size_t>(e->weight)] : nullptr;
}

Result<const WeightInfo*> GgufFile::require(std::string_view name) const {
  const Entry* e = entry(name);
  if (e == nullptr)
    return make_error(Code::not_found,
                      "the tensor " + printable(name) + " is missing in " + parts_.front().file->path(),
                      printable(name));
  if (e->weight >= 0) return &weights_[static_cast<size_t>(e->weight)];
  const TensorTypeRow& row = *e->tensor->type;
  std::string text = printable(name) + " holds " + std::string(row.name) + " (type " + std::to_string(row.id) +
                     ", block layout of " + std::to_string(row.elements) + " values in " + std::to_string(row.bytes) +
                     " bytes), which this build cannot run";
  return make_error(Code::unsupported, std::move(text), place(printable(name), e->tensor->at));
}

Result<Planes> GgufFile::planes(const WeightInfo& weight) const {
  const Entry* e = entry(weight.name);
  if (e == nullptr || e->weight < 0)
    return make_error(Code::invalid, "no weight " + printable(weight.name) + " comes from this file", weight.where);
  const MappedFile& file = *parts_[e->part].file;
  if (auto whole = file.still_whole(); !whole) {
    Error error = whole.take_error();
    error.where = weight.where;
    return error;
  }
  return Planes{{file.bytes().subspan(e->tensor->offset, e->tensor->bytes)}};
}

void GgufFile::drop(const WeightInfo& weight, uint64_t first_byte, uint64_t bytes) const {
  const Entry* e = entry(weight.name);
  if (e == nullptr || first_byte >= e->tensor->bytes) return;
  parts_[e->part].file->drop(e->tensor->offset + first_byte, std::min(bytes, e->tensor->bytes - first_byte));
}

std::vector<ListedTensor> GgufFile::list_tensors() const {
  std::vector<ListedTensor> out;
  for (const Part& part : parts_)
    for (const Tensor& t : part.header->tensors)
      out.push_back(
          {t.name, std::string(t.type->name), t.shape, t.offset, t.bytes, part.file->path(), find(t.name) != nullptr});
  return out;
}

std::vector<ListedKey> GgufFile::list_keys(size_t max_text) const {
  std::vector<ListedKey> out;
  const Header& header = *parts_.front().header;
  for (const Key& key : header.keys)
    out.push_back({key.name, type_text(key.value), key.value.count, value_text(header, key.value, max_text)});
  return out;
}

}  // namespace tern::gguf

namespace tern {

Result<std::unique_ptr<ModelFile>> open_gguf(const std::string& path, const FileLimits& limits) {
  TERN_TRY(auto parts, gguf::open_parts(path, limits));
  return std::unique_ptr<ModelFile>(std::make_unique<gguf::GgufFile>(std::move(parts)));
}

}  // namespace tern
