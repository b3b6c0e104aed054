// The tokens of a model as raw bytes, with the ways to look one up.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tern/tokenizer.h"

namespace tern::llm {

// Immutable after build. The look-up tables point into `bytes`, whose strings never move.
struct Vocab {
  std::vector<std::string> stored;  // text as the file has it
  std::vector<std::string> bytes;   // what the token stands for; control tokens: their name
  std::vector<TokenType> types;
  std::array<TokenId, 256> byte_tokens{};  // the token of one byte: by its "<0xAB>" (llama) or by its bytes; kNoToken
  // Tokens that merging may produce: all but control, unknown and byte tokens. Of equal ones the lowest id is kept.
  std::unordered_map<std::string_view, TokenId> mergeable;

  TokenId find_mergeable(std::string_view text) const {
    const auto it = mergeable.find(text);
    return it == mergeable.end() ? kNoToken : it->second;
  }
};

// Checks sizes and types, and decodes the stored texts. Takes tokens and types out of data.
Result<Vocab> build_vocab(TokenizerData& data);

// "Ġthe" -> " the": the printable alphabet in which byte-level vocabularies write bytes (GPT-2, encoder.py: printable Latin-1
// characters stand for themselves, the 68 others for U+0100 and up in order). False, and out unchanged, where a
// character is not of the alphabet.
bool bytes_of_alphabet(std::string_view text, std::string& out);

}  // namespace tern::llm
