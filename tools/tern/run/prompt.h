// From what was asked to the ids that a model is fed.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tern/llm.h"
#include "tern/llm/chat.h"
#include "tools/tern/common/input.h"

namespace tern::tool {

struct PromptFlags {
  TextSource source;
  std::optional<std::string> ids, system;
  bool chat = false;
};

// Texts are read before the model is loaded, so that a wrong file name costs nothing.
Result<std::string> prompt_text(const PromptFlags& flags);

// Raw text: special tokens in it stay text, BOS by the file's flag. Chat: the file's template around it. Ids: as they
// are. Errors of templates are Code::malformed or unsupported and say "chat template".
Result<std::vector<TokenId>> prompt_ids(const PromptFlags& flags, const std::string& text, const LanguageModel& model);

// The file's template. Errors as above.
Result<ChatTemplate> chat_template(const LlmInfo& info);
// A conversation up to where the next answer begins.
Result<std::vector<TokenId>> conversation_ids(const ChatTemplate& chat, std::vector<ChatMessage> messages,
                                              const Tokenizer& tokenizer);

}  // namespace tern::tool
