// A model on disk: its weights, its metadata and a listing of both. Made by an importer, read by model families and
// programs.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tern/import/metadata.h"
#include "tern/result.h"
#include "tern/weights.h"

namespace tern {

// What a file may ask for before it is refused with Code::limit. The defaults hold every published model many times
// over.
struct FileLimits {
  uint64_t header_bytes = 256u << 20;  // keys and tensor table together; at most this much memory is taken for them
  uint64_t string_bytes = 32u << 20;   // of one string value
  uint64_t keys = 1u << 16;
  uint64_t tensors = 1u << 18;
  uint32_t parts = 512;  // files of a split model; each holds a file descriptor
};

struct ListedTensor {
  std::string name;            // valid UTF-8
  std::string type;            // "q4_1", as the file's format calls it, lower case
  std::vector<int64_t> shape;  // row-major
  uint64_t offset = 0;         // of the data, from the start of its file
  uint64_t bytes = 0;
  std::string file;      // path
  bool runnable = true;  // this build has the type
};

struct ListedKey {
  std::string name;    // valid UTF-8
  std::string type;    // "u32", "string", "string[]"
  uint64_t count = 1;  // elements of an array
  std::string text;    // valid UTF-8: a number, the string itself, or the first elements of an array
};

// Immutable after opening; all methods are thread-safe.
//
// weights() holds the tensors whose type this build can run; find() gives null for the others. The header's contents
// are copied when the file is opened; tensor data is read through a mapping, so a file must not be shortened while its
// weights are packed (planes() looks first and says so if it already was).
class ModelFile : public WeightSource {
 public:
  virtual const Metadata& metadata() const = 0;
  virtual std::string_view container() const = 0;  // "gguf"
  virtual uint32_t container_version() const = 0;
  // The weight, or the reason why there is none: not_found, or unsupported naming the tensor and its type.
  virtual Result<const WeightInfo*> require(std::string_view name) const = 0;
  // In file order, those of unsupported types included.
  virtual std::vector<ListedTensor> list_tensors() const = 0;
  // In file order. Text is cut to about max_text bytes.
  virtual std::vector<ListedKey> list_keys(size_t max_text = 200) const = 0;
};

// Opens a model of any container this build reads; a split model by any of its parts. Errors name the file, the key or
// tensor and the byte offset.
Result<std::unique_ptr<ModelFile>> open_model_file(const std::string& path, const FileLimits& limits = {});

// The byte offset an importer's error points at ("... @0x1f40"), or nothing.
std::optional<uint64_t> error_offset(const Error& error);

}  // namespace tern
