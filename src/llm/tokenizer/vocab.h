// The tokens of a model as raw bytes, with the ways to look one up.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "llm/tokenizer/text_index.h"
#include "tern/llm/tokenizer.h"

namespace tern::llm {

// Immutable after build.
struct Vocab {
  std::vector<std::string> stored;  // text as the file has it
  std::vector<std::string> bytes;   // what the token stands for; control tokens: their name
  std::vector<TokenType> types;
  std::array<TokenId, 256> byte_tokens{};  // the token of one byte: by its "<0xAB>" (llama) or by its bytes; kNoToken
  // Tokens that merging may produce: all but control, unknown and byte tokens. Of equal ones the lowest id is kept.
  TextIndex mergeable;      // over bytes
  std::vector<bool> first;  // whether a token is in it

  // Whether find_mergeable(text) is id, for the price of one comparison; any id may be asked for. A later one of two
  // equal tokens says no.
  bool is_mergeable(TokenId id, std::string_view text) const {
    return static_cast<size_t>(id) < bytes.size() && first[static_cast<size_t>(id)] &&
           bytes[static_cast<size_t>(id)] == text;
  }
  TokenId find_mergeable(std::string_view text) const { return mergeable.find(bytes, text); }
};

// Checks sizes and types, and decodes the stored texts. Takes tokens and types out of data.
Result<Vocab> build_vocab(TokenizerData& data);

// "Ġthe" -> " the": the printable alphabet in which byte-level vocabularies write bytes (GPT-2, encoder.py: printable
// Latin-1 characters stand for themselves, the 68 others for U+0100 and up in order). False, and out unchanged, where a
// character is not of the alphabet.
bool bytes_of_alphabet(std::string_view text, std::string& out);

}  // namespace tern::llm
