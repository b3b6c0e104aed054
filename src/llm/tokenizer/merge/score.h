// SentencePiece's score-based merging: of all neighbouring pairs whose joined text is a token the one with the highest
// score is joined, the leftmost among equals (sentencepiece, bpe_model.cc). Characters that are no token become byte
// tokens.
#pragma once

#include <string_view>
#include <vector>

#include "llm/tokenizer/vocab.h"

namespace tern::llm {

// Appends the ids of text (spaces as spaces: Vocab::bytes has them so; less than 2^31 bytes). A character without token
// and without byte tokens gives `unk`, once for a run of them, or an error where that is kNoToken.
Status encode_by_score(const Vocab& vocab, const std::vector<float>& scores, std::string_view text, TokenId unk,
                       std::vector<TokenId>& ids);

}  // namespace tern::llm
