#include "tern/llm/tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <unordered_map>
#include <unordered_set>

#include "base/platform/within_memory.h"
#include "base/utf8.h"
#include "llm/tokenizer/merge/byte_pair.h"
#include "llm/tokenizer/merge/score.h"
#include "llm/tokenizer/pretokenizer.h"
#include "llm/tokenizer/special.h"
#include "llm/tokenizer/vocab.h"

namespace tern {
namespace {

// Control tokens that end an answer, by the names that published models give them; files often name only one of theirs.
constexpr std::string_view kEndNames[] = {
    "</s>",
    "<|endoftext|>",
    "<|end_of_text|>",
    "<|eot_id|>",
    "<|eom_id|>",
    "<|im_end|>",
    "<|end|>",
    "<end_of_turn>",
    "<EOT>",
    "<|return|>",
    "<|call|>",
    "<|endofturn|>",
    "<|END_OF_TURN_TOKEN|>",
    "<\xEF\xBD\x9C"
    "end\xE2\x96\x81of\xE2\x96\x81sentence\xEF\xBD\x9C>",
};

// Words longer than this are rare enough not to be remembered.
constexpr size_t kCachedWord = 48;
constexpr size_t kCachedWords = 1 << 15;

Status check_id(TokenId id, size_t tokens, std::string_view key) {
  if (id == kNoToken || (id >= 0 && static_cast<size_t>(id) < tokens)) return ok();
  return make_error(Code::malformed,
                    fmt::format("tokenizer.ggml.{} is {}, the vocabulary has {} tokens", key, id, tokens));
}

Status check_scores(const std::vector<float>& scores, size_t tokens) {
  if (scores.size() != tokens)
    return make_error(Code::malformed,
                      fmt::format("tokenizer.ggml.scores has {} entries for {} tokens", scores.size(), tokens));
  for (size_t i = 0; i < scores.size(); ++i)
    if (std::isnan(scores[i]))
      return make_error(Code::malformed, fmt::format("tokenizer.ggml.scores[{}] is not a number", i));
  return ok();
}

}  // namespace

struct Tokenizer::Impl {
  TokenizerData data;  // tokens, types, scores and merges have moved out
  llm::Vocab vocab;
  std::vector<float> scores;
  std::optional<llm::Pretokenizer> pre;
  std::optional<llm::BytePair> pairs;
  llm::NameTrie user_names;  // user-defined tokens: found in every text
  llm::NameTrie all_names;   // these and control tokens: found where special tokens are parsed
  std::unordered_set<TokenId> ends;
  bool add_bos = false, add_eos = false, add_space_prefix = false;

  // What one encode call keeps between its pieces of text.
  struct Job {
    llm::BytePair::Scratch scratch;
    std::unordered_map<std::string_view, std::pair<uint32_t, uint32_t>> words;  // -> begin, count in ids
    std::vector<std::string_view> pieces;
    std::deque<std::string> composed;  // words point into them
    std::vector<TokenId> ids;
  };

  Status prepare();
  void index_names();
  Status text(std::string_view text, bool after_special, Job& job) const;
  Status word(std::string_view word, Job& job) const;
};

Status Tokenizer::Impl::prepare() {
  const bool by_score = data.model == "llama";
  const size_t n = vocab.bytes.size();
  if (by_score) {
    TERN_OK(check_scores(scores, n));
    // SentencePiece's own places, where the file does not say.
    const auto usual = [&](TokenId& id, TokenId place, TokenType type) {
      if (id == kNoToken && static_cast<size_t>(place) < n && vocab.types[static_cast<size_t>(place)] == type)
        id = place;
    };
    usual(data.unk, 0, TokenType::unknown);
    usual(data.bos, 1, TokenType::control);
    usual(data.eos, 2, TokenType::control);
  } else {
    TERN_TRY(pairs, llm::BytePair::build(vocab, data.merges));
    data.merges = {};
    TERN_TRY(pre, llm::Pretokenizer::create(data.pre));
  }
  TERN_OK(check_id(data.bos, n, "bos_token_id"));
  TERN_OK(check_id(data.eos, n, "eos_token_id"));
  TERN_OK(check_id(data.eot, n, "eot_token_id"));
  TERN_OK(check_id(data.eom, n, "eom_token_id"));
  TERN_OK(check_id(data.unk, n, "unknown_token_id"));
  // Nothing reads the padding id, and converted files exist that name the row after the last.
  if (!check_id(data.pad, n, "padding_token_id")) data.pad = kNoToken;
  add_bos = data.add_bos.value_or(by_score || pre->adds_bos());
  add_eos = data.add_eos.value_or(false);
  add_space_prefix = by_score && data.add_space_prefix.value_or(true);
  if (add_bos && data.bos == kNoToken) {
    if (data.add_bos.value_or(false))
      return make_error(Code::malformed,
                        "tokenizer.ggml.add_bos_token is set, but tokenizer.ggml.bos_token_id names no token");
    add_bos = false;
  }
  if (add_eos && data.eos == kNoToken)
    return make_error(Code::malformed,
                      "tokenizer.ggml.add_eos_token is set, but tokenizer.ggml.eos_token_id names no token");
  index_names();
  return ok();
}

void Tokenizer::Impl::index_names() {
  for (size_t i = 0; i < vocab.stored.size(); ++i) {
    const TokenType type = vocab.types[i];
    if (type != TokenType::user_defined && type != TokenType::control && type != TokenType::unknown) continue;
    const auto id = static_cast<TokenId>(i);
    const std::string_view name = vocab.stored[i];
    all_names.add(name, id);
    if (type == TokenType::user_defined) user_names.add(name, id);
    if (type == TokenType::control && std::ranges::find(kEndNames, name) != std::end(kEndNames)) ends.insert(id);
  }
  for (const TokenId id : {data.eos, data.eot, data.eom})
    if (id != kNoToken) ends.insert(id);
}

Status Tokenizer::Impl::word(std::string_view word, Job& job) const {
  if (pre->ignore_merges())
    if (const TokenId id = vocab.find_mergeable(word); id != kNoToken) {
      job.ids.push_back(id);
      return ok();
    }
  const bool keep = word.size() > 1 && word.size() <= kCachedWord;
  if (keep) {
    if (const auto it = job.words.find(word); it != job.words.end()) {
      const auto [begin, count] = it->second;
      for (uint32_t i = 0; i < count; ++i) job.ids.push_back(job.ids[begin + i]);
      return ok();
    }
  }
  const size_t begin = job.ids.size();
  TERN_OK(pairs->encode(word, data.unk, job.scratch, job.ids));
  if (keep && job.words.size() < kCachedWords)
    job.words.emplace(word, std::pair(static_cast<uint32_t>(begin), static_cast<uint32_t>(job.ids.size() - begin)));
  return ok();
}

Status Tokenizer::Impl::text(std::string_view text, bool after_special, Job& job) const {
  if (text.empty()) return ok();
  if (!pre) {
    const bool space = add_space_prefix && after_special;
    return llm::encode_by_score(vocab, scores, space ? " " + std::string(text) : std::string(text), data.unk, job.ids);
  }
  if (pre->composes() && std::ranges::any_of(text, [](char c) { return static_cast<uint8_t>(c) >= 0x80; }))
    text = job.composed.emplace_back(llm::Pretokenizer::composed(text));
  job.pieces.clear();
  TERN_OK(pre->split(text, job.pieces));
  for (const std::string_view piece : job.pieces) TERN_OK(word(piece, job));
  return ok();
}

Tokenizer::Tokenizer(std::unique_ptr<const Impl> impl) : impl_(std::move(impl)) {}
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;
Tokenizer::~Tokenizer() = default;

Result<Tokenizer> Tokenizer::create(TokenizerData data) try {
  if (data.model != "gpt2" && data.model != "llama")
    return make_error(
        Code::unsupported,
        fmt::format("tokenizer.ggml.model \"{}\" is not supported (known: gpt2, llama)", printable(data.model)));
  auto impl = std::make_unique<Impl>();
  TERN_TRY(impl->vocab, llm::build_vocab(data));
  impl->scores = std::move(data.scores);
  impl->data = std::move(data);
  TERN_OK(impl->prepare());
  return Tokenizer(std::unique_ptr<const Impl>(std::move(impl)));
} catch (const std::bad_alloc&) {
  return memory_ended();
}

Result<std::vector<TokenId>> Tokenizer::encode(std::string_view text, EncodeOptions options) const try {
  if (text.size() >= (size_t{1} << 30))
    return make_error(Code::limit, fmt::format("the text has {} bytes, the limit is 1 GiB", text.size()));
  Impl::Job job;
  if (options.add_special && impl_->add_bos) job.ids.push_back(impl_->data.bos);
  const llm::NameTrie& names = options.parse_special ? impl_->all_names : impl_->user_names;
  bool after_special = true;
  for (size_t at = 0; at < text.size();) {
    const auto match = names.empty() ? llm::NameTrie::Match{text.size(), 0, kNoToken} : names.find(text, at);
    if (match.begin > at) {
      TERN_OK(impl_->text(text.substr(at, match.begin - at), after_special, job));
      after_special = false;
    }
    if (match.id != kNoToken) {
      job.ids.push_back(match.id);
      after_special = true;
    }
    at = match.begin + match.size;
  }
  if (options.add_special && impl_->add_eos) job.ids.push_back(impl_->data.eos);
  return std::move(job.ids);
} catch (const std::bad_alloc&) {
  return memory_ended();
}

Result<std::string> Tokenizer::piece(TokenId id, bool special) const {
  if (id < 0 || static_cast<size_t>(id) >= size())
    return make_error(Code::invalid, fmt::format("token id {} is not in the vocabulary of {} tokens", id, size()));
  const TokenType type = impl_->vocab.types[static_cast<size_t>(id)];
  if (type == TokenType::control && !special) return std::string();
  if (type == TokenType::unknown && !special) return std::string("\xEF\xBF\xBD");
  return impl_->vocab.bytes[static_cast<size_t>(id)];
}

Result<std::string> Tokenizer::decode(std::span<const TokenId> ids, bool special) const try {
  Detokenizer stream(*this, false, special);
  std::string out;
  for (const TokenId id : ids) {
    TERN_TRY(const std::string text, stream.push(id));
    out += text;
  }
  return out + stream.flush();
} catch (const std::bad_alloc&) {
  return memory_ended();
}

size_t Tokenizer::size() const { return impl_->vocab.bytes.size(); }
std::optional<TokenId> Tokenizer::find(std::string_view text) const {
  const auto& stored = impl_->vocab.stored;
  const auto it = std::ranges::find(stored, text);
  return it == stored.end() ? std::nullopt : std::optional(static_cast<TokenId>(it - stored.begin()));
}
TokenType Tokenizer::type(TokenId id) const { return impl_->vocab.types[static_cast<size_t>(id)]; }
TokenId Tokenizer::bos() const { return impl_->data.bos; }
TokenId Tokenizer::eos() const { return impl_->data.eos; }
bool Tokenizer::adds_bos() const { return impl_->add_bos; }
bool Tokenizer::adds_eos() const { return impl_->add_eos; }
bool Tokenizer::adds_space_prefix() const { return impl_->add_space_prefix; }
bool Tokenizer::is_end(TokenId id) const { return impl_->ends.contains(id); }
std::string_view Tokenizer::model() const { return impl_->data.model; }
std::string_view Tokenizer::pre() const { return impl_->data.pre; }

}  // namespace tern
