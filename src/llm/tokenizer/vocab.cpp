#include "llm/tokenizer/vocab.h"

#include <fmt/format.h>

#include "base/utf8.h"

namespace tern::llm {
namespace {

constexpr int kAlphabetEnd = 256 + 68;

constexpr bool stands_for_itself(int byte) {
  return (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || (byte >= 174 && byte <= 255);
}

// Code point of the alphabet -> byte, or -1.
constexpr std::array<int16_t, kAlphabetEnd> make_alphabet() {
  std::array<int16_t, kAlphabetEnd> table{};
  for (auto& entry : table) entry = -1;
  int next = 256;
  for (int byte = 0; byte < 256; ++byte)
    table[static_cast<size_t>(stands_for_itself(byte) ? byte : next++)] = static_cast<int16_t>(byte);
  return table;
}
constexpr auto kAlphabet = make_alphabet();

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

// "<0xAB>" -> 0xAB, or -1.
int byte_of_name(std::string_view name) {
  if (name.size() != 6 || !name.starts_with("<0x") || name.back() != '>') return -1;
  const int high = hex_digit(name[3]), low = hex_digit(name[4]);
  return high < 0 || low < 0 ? -1 : high * 16 + low;
}

std::string spaces_of_marks(std::string_view text) {
  static constexpr std::string_view kMark = "\xE2\x96\x81";  // U+2581
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size();) {
    if (text.substr(i).starts_with(kMark)) {
      out += ' ';
      i += kMark.size();
    } else {
      out += text[i++];
    }
  }
  return out;
}

Result<std::string> bytes_of(const TokenizerData& data, std::string_view text, TokenType type, size_t id) {
  if (type == TokenType::control || type == TokenType::unknown) return std::string(text);
  if (type == TokenType::byte) {
    const int byte = byte_of_name(text);
    if (byte < 0)
      return make_error(
          Code::malformed,
          fmt::format("tokenizer.ggml.tokens[{}] is \"{}\", which is no byte token's name", id, printable(text)));
    return std::string(1, static_cast<char>(byte));
  }
  if (data.model == "llama") return spaces_of_marks(text);
  std::string out;
  if (type == TokenType::user_defined || !bytes_of_alphabet(text, out)) out = text;
  return out;
}

Status check_sizes(const TokenizerData& data) {
  if (data.tokens.empty()) return make_error(Code::malformed, "tokenizer.ggml.tokens holds no tokens");
  if (data.tokens.size() > (size_t{1} << 26))
    return make_error(Code::limit,
                      fmt::format("tokenizer.ggml.tokens holds {} tokens, the limit is 2^26", data.tokens.size()));
  if (!data.types.empty() && data.types.size() != data.tokens.size())
    return make_error(Code::malformed, fmt::format("tokenizer.ggml.token_type has {} entries for {} tokens",
                                                   data.types.size(), data.tokens.size()));
  return ok();
}

}  // namespace

bool bytes_of_alphabet(std::string_view text, std::string& out) {
  std::string bytes;
  bytes.reserve(text.size());
  while (!text.empty()) {
    const size_t n = utf8_sequence(text);
    if (n == 0 || n > 2) return false;
    const auto first = static_cast<uint8_t>(text[0]);
    const int code = n == 1 ? first : ((first & 0x1F) << 6) | (static_cast<uint8_t>(text[1]) & 0x3F);
    if (code >= kAlphabetEnd || kAlphabet[static_cast<size_t>(code)] < 0) return false;
    bytes += static_cast<char>(kAlphabet[static_cast<size_t>(code)]);
    text.remove_prefix(n);
  }
  out = std::move(bytes);
  return true;
}

Result<Vocab> build_vocab(TokenizerData& data) {
  TERN_OK(check_sizes(data));
  Vocab vocab;
  vocab.stored = std::move(data.tokens);
  vocab.types = std::move(data.types);
  vocab.types.resize(vocab.stored.size(), TokenType::normal);
  vocab.bytes.reserve(vocab.stored.size());
  for (size_t i = 0; i < vocab.stored.size(); ++i) {
    TERN_TRY(std::string bytes, bytes_of(data, vocab.stored[i], vocab.types[i], i));
    vocab.bytes.push_back(std::move(bytes));
  }
  vocab.mergeable.reserve(vocab.bytes.size());
  vocab.first.resize(vocab.bytes.size());
  vocab.byte_tokens.fill(kNoToken);
  for (size_t i = 0; i < vocab.bytes.size(); ++i) {
    const TokenType type = vocab.types[i];
    const auto id = static_cast<TokenId>(i);
    if (type == TokenType::byte) {
      TokenId& slot = vocab.byte_tokens[static_cast<uint8_t>(vocab.bytes[i][0])];
      if (slot == kNoToken) slot = id;
    } else if (type != TokenType::control && type != TokenType::unknown && !vocab.bytes[i].empty()) {
      vocab.first[i] = vocab.mergeable.add(vocab.bytes, id) == id;
    }
  }
  for (size_t b = 0; b < 256; ++b) {
    const char byte = static_cast<char>(b);
    if (vocab.byte_tokens[b] == kNoToken) vocab.byte_tokens[b] = vocab.find_mergeable({&byte, 1});
  }
  return vocab;
}

}  // namespace tern::llm
