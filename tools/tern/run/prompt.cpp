#include "tools/tern/run/prompt.h"

namespace tern::tool {
namespace {

Error template_error(Error error) {
  // What the template refuses is an input that cannot be used, not a wrong option.
  if (error.code == Code::invalid) error.code = Code::malformed;
  error.text = "the file's chat template cannot be used: " + error.text;
  return error;
}

std::string token_text(const Tokenizer& tokenizer, TokenId id) {
  if (id == kNoToken) return {};
  auto text = tokenizer.piece(id, true);
  return text ? *text : std::string();
}

}  // namespace

Result<ChatTemplate> chat_template(const LlmInfo& info) {
  if (info.chat_template.empty())
    return make_error(
        Code::unsupported,
        "the file has no chat template (tokenizer.chat_template); `tern run` without --chat completes plain text");
  auto parsed = ChatTemplate::parse(info.chat_template);
  if (!parsed) return template_error(parsed.take_error());
  return parsed;
}

Result<std::vector<TokenId>> conversation_ids(const ChatTemplate& chat, std::vector<ChatMessage> messages,
                                              const Tokenizer& tokenizer) {
  ChatInput input;
  input.messages = std::move(messages);
  input.bos_token = token_text(tokenizer, tokenizer.bos());
  input.eos_token = token_text(tokenizer, tokenizer.eos());
  auto rendered = chat.render(input);
  if (!rendered) return template_error(rendered.take_error());
  TERN_TRY(std::vector<TokenId> ids, tokenizer.encode(*rendered, {.add_special = false, .parse_special = true}));
  // Templates that write the beginning-of-text token themselves must not get a second one.
  if (tokenizer.adds_bos() && tokenizer.bos() != kNoToken && (ids.empty() || ids.front() != tokenizer.bos())) {
    ids.insert(ids.begin(), tokenizer.bos());
  }
  return ids;
}

Result<std::string> prompt_text(const PromptFlags& flags) {
  if (flags.ids) return std::string();
  return take_text(flags.source, "-p");
}

Result<std::vector<TokenId>> prompt_ids(const PromptFlags& flags, const std::string& text, const LanguageModel& model) {
  const Tokenizer& tokenizer = model.tokenizer();
  std::vector<TokenId> ids;
  if (flags.ids) {
    TERN_TRY(ids, parse_ids(*flags.ids));
    TERN_OK(check_ids(ids, tokenizer.size(), "--prompt-ids"));
  } else if (flags.chat) {
    TERN_TRY(const ChatTemplate chat, chat_template(model.info()));
    std::vector<ChatMessage> messages;
    if (flags.system) messages.push_back({"system", *flags.system, {}});
    messages.push_back({"user", text, {}});
    TERN_TRY(ids, conversation_ids(chat, std::move(messages), tokenizer));
  } else {
    TERN_TRY(ids, tokenizer.encode(text, {.add_special = true, .parse_special = false}));
  }
  if (ids.empty()) return make_error(Code::invalid, "the prompt has no tokens");
  return ids;
}

}  // namespace tern::tool
