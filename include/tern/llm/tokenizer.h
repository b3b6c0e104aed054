// Text to token ids and back.
//
// A tokenizer is built from plain data (TokenizerData); tokenizer_data() fills that from a model file's metadata. Two
// models exist: "gpt2", byte-level byte-pair encoding with ranked merges behind a pre-tokenizer, and "llama",
// SentencePiece's score-based merging with byte fallback. Key names are GGUF's (docs/gguf.md of ggml).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tern/import/metadata.h"
#include "tern/result.h"

namespace tern {

using TokenId = int32_t;
inline constexpr TokenId kNoToken = -1;

// The values of tokenizer.ggml.token_type.
enum class TokenType : uint8_t { normal = 1, unknown = 2, control = 3, user_defined = 4, unused = 5, byte = 6 };

// Everything a tokenizer needs, as the file says it; Tokenizer::create validates it.
struct TokenizerData {
  std::string model;                // "gpt2" or "llama"
  std::string pre;                  // pre-tokenizer family of "gpt2"; empty means "default"
  std::vector<std::string> tokens;  // as stored: bytes of "gpt2" in its printable alphabet, spaces of "llama" as U+2581
  std::vector<float> scores;        // "llama" needs one a token
  std::vector<TokenType> types;     // empty: all normal
  std::vector<std::string> merges;  // "left right", best first; "gpt2" only
  TokenId bos = kNoToken, eos = kNoToken, eot = kNoToken, eom = kNoToken, unk = kNoToken, pad = kNoToken;
  std::optional<bool> add_bos, add_eos, add_space_prefix;  // absent: what the model or pre-tokenizer family does
};

// Reads the tokenizer.ggml.* keys. Errors name the key.
Result<TokenizerData> tokenizer_data(const Metadata& meta);

struct EncodeOptions {
  // Put the beginning-of-text (and end-of-text) token around the ids where the file asks for it.
  bool add_special = true;
  // Read control tokens written in the text ("<|im_start|>") as these tokens; otherwise they are text like any other.
  bool parse_special = false;
};

// Immutable: shared by threads without a lock.
class Tokenizer {
 public:
  static Result<Tokenizer> create(TokenizerData data);
  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;
  ~Tokenizer();

  // Any bytes are accepted: those that are not UTF-8 are encoded one by one as they are. Fails where the vocabulary can
  // express a byte in no way, not even as unknown.
  Result<std::vector<TokenId>> encode(std::string_view text, EncodeOptions options = {}) const;

  // The bytes of a token, "" for a control token unless `special` asks for its name. The id must be in the vocabulary.
  Result<std::string> piece(TokenId id, bool special = false) const;
  // The whole text: ill-formed bytes become U+FFFD, so the result is UTF-8. The space that encode put in front
  // (add_space_prefix) is taken away again.
  Result<std::string> decode(std::span<const TokenId> ids, bool special = false) const;

  size_t size() const;
  std::optional<TokenId> find(std::string_view text) const;  // by the stored text of the token
  TokenType type(TokenId id) const;                          // id in the vocabulary
  TokenId bos() const;
  TokenId eos() const;
  bool adds_bos() const;
  bool adds_eos() const;
  bool adds_space_prefix() const;
  // Whether generation stops here: end of text, of turn or of message, by the file's ids or by the control token's
  // name.
  bool is_end(TokenId id) const;
  std::string_view model() const;
  std::string_view pre() const;

 private:
  struct Impl;
  explicit Tokenizer(std::unique_ptr<const Impl> impl);
  std::unique_ptr<const Impl> impl_;
};

// Turns ids into text as they come. Emits whole UTF-8 only: bytes that may still become a character are held back,
// bytes that cannot become U+FFFD. One thread; the tokenizer must outlive it.
class Detokenizer {
 public:
  // `continues`: the ids follow a prompt, so a leading space of the first one is text.
  explicit Detokenizer(const Tokenizer& tokenizer, bool continues = true, bool special = false)
      : tokenizer_(&tokenizer), at_start_(!continues), special_(special) {}

  Result<std::string> push(TokenId id);
  // The end: what is held back cannot be completed any more.
  std::string flush();

 private:
  const Tokenizer* tokenizer_;
  std::string held_;
  bool at_start_;
  bool special_;
};

// Finds stop strings in streamed text, also where one lies across several pieces. What could be the beginning of a stop
// string is held back. One thread.
class StopMatcher {
 public:
  struct Out {
    std::string text;      // safe to show: no stop string starts in it
    bool stopped = false;  // a stop string was found; it and what follows are dropped
  };

  // Empty stop strings are ignored.
  explicit StopMatcher(std::vector<std::string> stops);
  Out push(std::string_view text);
  // The end of the stream: what was held back is text after all.
  std::string flush();
  const std::string& which() const { return which_; }  // the stop string that was found

 private:
  std::vector<std::string> stops_;
  std::string held_;
  std::string which_;
  bool stopped_ = false;
};

}  // namespace tern
