// What people give the program: lists of ids, texts from options, files or a pipe.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tern/llm/tokenizer.h"
#include "tern/result.h"

namespace tern::tool {

// "1,2,3", spaces allowed; Code::invalid names the part that is no id. An empty text is an empty list.
Result<std::vector<TokenId>> parse_ids(std::string_view text);
// Code::invalid where an id lies outside the vocabulary.
Status check_ids(const std::vector<TokenId>& ids, size_t vocabulary, std::string_view option);

// A whole file, or what comes through the pipe for "-". One newline at the end is dropped: editors and echo put it
// there.
Result<std::string> read_text(const std::string& path);

// -p/--text, -f or the pipe, in this order; Code::invalid where there is none.
struct TextSource {
  std::optional<std::string> text, file;
};
Result<std::string> take_text(const TextSource& source, std::string_view option);

}  // namespace tern::tool
