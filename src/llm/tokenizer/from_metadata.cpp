// tokenizer.ggml.* -> TokenizerData.
#include <fmt/format.h>

#include <limits>

#include "base/platform/within_memory.h"
#include "base/utf8.h"
#include "tern/llm/tokenizer.h"

namespace tern {
namespace {

// 2^32-1 and -1 are how files write "none".
Result<TokenId> id_or_none(const Metadata& meta, const char* key) {
  if (!meta.has(key)) return kNoToken;
  TERN_TRY(const int64_t value, meta.i64(key));
  if (value == -1 || value == 0xFFFFFFFFll) return kNoToken;
  if (value < 0 || value > std::numeric_limits<TokenId>::max())
    return make_error(Code::malformed, fmt::format("{} is {}, which is no token id", key, value));
  return static_cast<TokenId>(value);
}

Result<std::vector<TokenType>> token_types(const Metadata& meta) {
  static constexpr const char* kKey = "tokenizer.ggml.token_type";
  std::vector<TokenType> out;
  if (!meta.has(kKey)) return out;
  TERN_TRY(const std::vector<int64_t> types, meta.ints(kKey));
  out.reserve(types.size());
  for (size_t i = 0; i < types.size(); ++i) {
    if (types[i] < 0 || types[i] > 6)
      return make_error(Code::malformed, fmt::format("{}[{}] is {}, token types are 1 to 6", kKey, i, types[i]));
    out.push_back(types[i] == 0 ? TokenType::normal : static_cast<TokenType>(types[i]));  // 0: undefined
  }
  return out;
}

Result<std::optional<bool>> flag(const Metadata& meta, const char* key) {
  if (!meta.has(key)) return std::optional<bool>();
  TERN_TRY(const bool value, meta.boolean(key));
  return std::optional<bool>(value);
}

}  // namespace

Result<TokenizerData> tokenizer_data(const Metadata& meta) try {
  TokenizerData data;
  TERN_TRY(data.model, meta.string("tokenizer.ggml.model"));
  // Before the arrays: of an unknown model nothing else need be right.
  if (data.model != "gpt2" && data.model != "llama")
    return make_error(
        Code::unsupported,
        fmt::format("tokenizer.ggml.model \"{}\" is not supported (known: gpt2, llama)", printable(data.model)));
  TERN_TRY(data.tokens, meta.strings("tokenizer.ggml.tokens"));
  TERN_TRY(data.types, token_types(meta));
  if (data.model == "llama" || meta.has("tokenizer.ggml.scores")) {
    TERN_TRY(data.scores, meta.floats("tokenizer.ggml.scores"));
  }
  if (data.model == "gpt2") {
    TERN_TRY(data.merges, meta.strings("tokenizer.ggml.merges"));
    TERN_TRY(data.pre, string_or(meta, "tokenizer.ggml.pre", ""));
  }
  TERN_TRY(data.bos, id_or_none(meta, "tokenizer.ggml.bos_token_id"));
  TERN_TRY(data.eos, id_or_none(meta, "tokenizer.ggml.eos_token_id"));
  TERN_TRY(data.eot, id_or_none(meta, "tokenizer.ggml.eot_token_id"));
  TERN_TRY(data.eom, id_or_none(meta, "tokenizer.ggml.eom_token_id"));
  TERN_TRY(data.unk, id_or_none(meta, "tokenizer.ggml.unknown_token_id"));
  TERN_TRY(data.pad, id_or_none(meta, "tokenizer.ggml.padding_token_id"));
  TERN_TRY(data.add_bos, flag(meta, "tokenizer.ggml.add_bos_token"));
  TERN_TRY(data.add_eos, flag(meta, "tokenizer.ggml.add_eos_token"));
  TERN_TRY(data.add_space_prefix, flag(meta, "tokenizer.ggml.add_space_prefix"));
  return data;
} catch (const std::bad_alloc&) {
  return memory_ended();
}

}  // namespace tern
