// An opened GGUF model: one file or all parts of a split one.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/mmap.h"
#include "import/gguf/header/header.h"
#include "import/gguf/metadata.h"
#include "tern/import/model_file.h"

namespace tern::gguf {

struct Part {
  std::unique_ptr<MappedFile> file;
  std::unique_ptr<const Header> header;
};

// One part, or all parts in order where the file says that it is split. Checks that the parts belong together.
Result<std::vector<Part>> open_parts(const std::string& path, const FileLimits& limits);

class GgufFile final : public ModelFile {
 public:
  explicit GgufFile(std::vector<Part> parts);

  const std::vector<WeightInfo>& weights() const override { return weights_; }
  const WeightInfo* find(std::string_view name) const override;
  Result<Planes> planes(const WeightInfo& weight) const override;
  void drop(const WeightInfo& weight, uint64_t first_byte, uint64_t bytes) const override;

  const Metadata& metadata() const override { return metadata_; }
  std::string_view container() const override { return "gguf"; }
  uint32_t container_version() const override { return parts_.front().header->version; }
  Result<const WeightInfo*> require(std::string_view name) const override;
  std::vector<ListedTensor> list_tensors() const override;
  std::vector<ListedKey> list_keys(size_t max_text) const override;

 private:
  struct Entry {  // sorted by name
    const Tensor* tensor;
    uint32_t part;
    int64_t weight;  // index in weights_, -1: its type cannot be run
  };
  const Entry* entry(std::string_view name) const;

  std::vector<Part> parts_;
  HeaderMetadata metadata_;
  std::vector<WeightInfo> weights_;
  std::vector<Entry> entries_;
};

}  // namespace tern::gguf

namespace tern {
Result<std::unique_ptr<ModelFile>> open_gguf(const std::string& path, const FileLimits& limits = {});
}  // namespace tern
