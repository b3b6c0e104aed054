// Split models: model-00001-of-00003.gguf and its fellows. The first part holds the model's keys; every part holds
// split.no (from 0), split.count and split.tensors.count. Source: llama.cpp's gguf-split.
#include <algorithm>
#include <optional>

#include "base/utf8.h"
#include "import/gguf/file.h"

namespace tern::gguf {
namespace {

constexpr std::string_view kExtension = ".gguf";

std::string five(uint64_t number) {
  std::string digits = std::to_string(number);
  return std::string(digits.size() < 5 ? 5 - digits.size() : 0, '0') + digits;
}

// "dir/model" of "dir/model-00002-of-00003.gguf".
std::optional<std::string> stem_of(std::string_view path, uint64_t no, uint64_t count) {
  const std::string tail = "-" + five(no + 1) + "-of-" + five(count) + std::string(kExtension);
  if (path.size() <= tail.size() || !path.ends_with(tail)) return std::nullopt;
  return std::string(path.substr(0, path.size() - tail.size()));
}

Error in_file(Error error, const std::string& path) {
  error.text = path + ": " + error.text;
  return error;
}

Result<Part> open_part(const std::string& path, const FileLimits& limits) {
  TERN_TRY(auto file, MappedFile::open(path));
  auto header = parse_header(*file, limits);
  if (!header) return in_file(header.take_error(), path);
  return Part{std::move(file), std::make_unique<const Header>(std::move(*header))};
}

// A split key of a part, or the fallback; errors name the file.
Result<uint64_t> split_key(const Part& part, std::string_view key, uint64_t fallback) {
  auto value = u64_or(HeaderMetadata(*part.header), key, fallback);
  if (!value) return in_file(value.take_error(), part.file->path());
  return value;
}

Error split_error(const Part& part, std::string_view key, const std::string& what) {
  const Key* found = part.header->find(key);
  return make_error(Code::malformed, part.file->path() + ": " + std::string(key) + " " + what,
                    place(key, found != nullptr ? found->at : 0));
}

Status check_part(const Part& part, uint64_t no, uint64_t count) {
  TERN_TRY(const uint64_t its_count, split_key(part, "split.count", 0));
  TERN_TRY(const uint64_t its_no, split_key(part, "split.no", no));
  if (its_count != count)
    return split_error(part, "split.count",
                       "is " + std::to_string(its_count) + ", the other parts say " + std::to_string(count));
  if (its_no != no)
    return split_error(part, "split.no", "is " + std::to_string(its_no) + ", its name says " + std::to_string(no));
  return ok();
}

// Tensors of all parts: as many as promised, no name twice.
Status check_together(const std::vector<Part>& parts) {
  uint64_t total = 0;
  std::vector<std::pair<std::string_view, uint32_t>> names;
  for (uint32_t p = 0; p < parts.size(); ++p) {
    total += parts[p].header->tensors.size();
    for (const Tensor& tensor : parts[p].header->tensors) names.emplace_back(tensor.name, p);
  }
  std::sort(names.begin(), names.end());
  for (size_t i = 1; i < names.size(); ++i)
    if (names[i].first == names[i - 1].first)
      return make_error(Code::malformed,
                        "tensor " + printable(names[i].first) + " is a duplicate: both " +
                            parts[names[i - 1].second].file->path() + " and " + parts[names[i].second].file->path() +
                            " hold it",
                        printable(names[i].first));
  TERN_TRY(const uint64_t promised, split_key(parts.front(), "split.tensors.count", total));
  if (promised != total)
    return split_error(parts.front(), "split.tensors.count",
                       "is " + std::to_string(promised) + ", the " + std::to_string(parts.size()) +
                           " parts together hold " + std::to_string(total) + " tensors");
  return ok();
}

}  // namespace

Result<std::vector<Part>> open_parts(const std::string& path, const FileLimits& limits) {
  TERN_TRY(Part first, open_part(path, limits));
  TERN_TRY(const uint64_t count, split_key(first, "split.count", 0));
  std::vector<Part> parts;
  if (count <= 1) {
    parts.push_back(std::move(first));
    return parts;
  }
  TERN_TRY(const uint64_t no, split_key(first, "split.no", 0));
  if (count > limits.parts)
    return make_error(Code::limit, path + ": split.count " + std::to_string(count) + " is above the limit of " +
                                       std::to_string(limits.parts) + " parts");
  if (no >= count)
    return split_error(first, "split.no", "is " + std::to_string(no) + " of " + std::to_string(count) + " parts");
  const auto stem = stem_of(path, no, count);
  if (!stem)
    return split_error(first, "split.count",
                       "says that this is part " + std::to_string(no + 1) + " of a model split into " +
                           std::to_string(count) + " files, but its name does not end in -" + five(no + 1) + "-of-" +
                           five(count) + ".gguf, so that the other parts cannot be found");
  for (uint64_t i = 0; i < count; ++i) {
    if (i == no) {
      parts.push_back(std::move(first));
    } else {
      const std::string name = *stem + "-" + five(i + 1) + "-of-" + five(count) + std::string(kExtension);
      auto part = open_part(name, limits);
      if (!part) {
        Error error = part.take_error();
        if (error.code == Code::not_found)
          error.text = "part " + std::to_string(i + 1) + " of a model split into " + std::to_string(count) +
                       " files is missing: " + error.text;
        return error;
      }
      parts.push_back(std::move(*part));
    }
    TERN_OK(check_part(parts.back(), i, count));
  }
  TERN_OK(check_together(parts));
  return parts;
}

}  // namespace tern::gguf
