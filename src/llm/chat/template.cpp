// ChatTemplate: the public face of the template language.
#include <fmt/format.h>

#include "base/platform/within_memory.h"
#include "base/utf8.h"
#include "llm/chat/jinja/interp.h"
#include "llm/chat/jinja/parser.h"
#include "llm/chat/value/json.h"
#include "tern/llm/chat.h"

namespace tern {
namespace {

using jinja::Dict;
using jinja::Kind;
using jinja::Value;

Value text(const std::string& bytes) { return Value(is_utf8(bytes) ? bytes : utf8_lossy(bytes)); }

Result<Value> json_of(const std::string& source, std::string_view what, Kind wanted) {
  TERN_TRY(Value value, jinja::parse_json(source, what));
  if (!value.is(wanted))
    return make_error(Code::invalid,
                      fmt::format("{} wants a JSON {}", what, wanted == Kind::dict ? "object" : "array"));
  return value;
}

Result<Value> message_value(const ChatMessage& message, size_t index) {
  Dict fields;
  fields.set(Value("role"), text(message.role));
  fields.set(Value("content"), text(message.content));
  if (!message.extra_json.empty()) {
    TERN_TRY(const Value extra,
             json_of(message.extra_json, fmt::format("message {}'s extra fields", index), Kind::dict));
    for (const jinja::Pair& pair : extra.dict().items) fields.set(pair.first, pair.second);
  }
  return jinja::make_dict(std::move(fields));
}

Result<Value> messages_value(const ChatInput& input) {
  if (!input.messages_json.empty()) {
    TERN_TRY(Value list, json_of(input.messages_json, "the list of messages", Kind::list));
    for (const Value& message : list.list().items)
      if (!message.is(Kind::dict)) return make_error(Code::invalid, "the list of messages wants objects");
    return list;
  }
  std::vector<Value> messages;
  for (size_t i = 0; i < input.messages.size(); ++i) {
    TERN_TRY(Value message, message_value(input.messages[i], i));
    messages.push_back(std::move(message));
  }
  return jinja::make_list(std::move(messages));
}

// Says "chat template" in every error: that is what a person has to look at.
Error named(Error error) {
  if (error.text.find("chat template") == std::string::npos && error.where.find("chat template") == std::string::npos)
    error.text = "chat template: " + error.text;
  return error;
}

}  // namespace

struct ChatTemplate::Impl {
  jinja::Template parsed;
};

ChatTemplate::ChatTemplate(std::unique_ptr<const Impl> impl) : impl_(std::move(impl)) {}
ChatTemplate::ChatTemplate(ChatTemplate&&) noexcept = default;
ChatTemplate& ChatTemplate::operator=(ChatTemplate&&) noexcept = default;
ChatTemplate::~ChatTemplate() = default;

Result<ChatTemplate> ChatTemplate::parse(std::string_view source) try {
  auto parsed = jinja::parse_template(source);
  if (!parsed) return named(parsed.take_error());
  auto impl = std::make_unique<Impl>();
  impl->parsed = std::move(*parsed);
  return ChatTemplate(std::unique_ptr<const Impl>(std::move(impl)));
} catch (const std::bad_alloc&) {
  return memory_ended();
}

Result<std::string> ChatTemplate::render(const ChatInput& input, const ChatLimits& limits) const try {
  TERN_TRY(Value messages, messages_value(input));
  Value tools = Value::none(), extra = jinja::make_dict({});
  if (!input.tools_json.empty()) {
    TERN_TRY(tools, json_of(input.tools_json, "the list of tools", Kind::list));
  }
  if (!input.extra_json.empty()) {
    TERN_TRY(extra, json_of(input.extra_json, "the template's variables", Kind::dict));
  }
  std::optional<jinja::Clock> clock;
  if (input.now) clock = jinja::Clock{input.now->unix_seconds, input.now->utc_offset_minutes};
  const jinja::Limits bounds{limits.work, limits.memory_bytes, static_cast<size_t>(limits.output_bytes), limits.depth};
  jinja::Interp interp(impl_->parsed, bounds, clock);
  interp.define("messages", std::move(messages));
  interp.define("tools", std::move(tools));
  interp.define("documents", Value::none());
  interp.define("add_generation_prompt", Value(input.add_generation_prompt));
  interp.define("bos_token", text(input.bos_token));
  interp.define("eos_token", text(input.eos_token));
  for (const jinja::Pair& pair : extra.dict().items) interp.define(pair.first.string(), pair.second);
  auto out = interp.run();
  if (!out) return named(out.take_error());
  return out;
} catch (const std::bad_alloc&) {
  return memory_ended();
}

Result<std::string> chat_template_source(const Metadata& meta, std::string_view name) try {
  static constexpr std::string_view kKey = "tokenizer.chat_template";
  const std::string named_key = fmt::format("{}.{}", kKey, name);
  if (!name.empty() && meta.has(named_key)) return meta.string(named_key);
  if (!meta.has(kKey))
    return make_error(Code::not_found, "the model file has no chat template (tokenizer.chat_template)");
  return meta.string(kKey);
} catch (const std::bad_alloc&) {
  return memory_ended();
}

}  // namespace tern
