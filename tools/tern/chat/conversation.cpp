#include "tools/tern/chat/conversation.h"

#include <nlohmann/json.hpp>

#include "base/platform/replace_file.h"
#include "base/utf8.h"
#include "tools/tern/common/input.h"
#include "tools/tern/common/json.h"

namespace tern::tool {

void Conversation::reset() {
  messages_.clear();
  if (system_) add("system", *system_);
}

Status Conversation::save(const std::string& path) const {
  Json list = Json::array();
  for (const ChatMessage& m : messages_) list.push_back({{"role", m.role}, {"content", m.content}});
  const Json json = {{"messages", std::move(list)}};
  return replace_file(path, json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
}

Status Conversation::load(const std::string& path) {
  TERN_TRY(const std::string text, read_text(path));
  const auto wrong = [&](const std::string& what) {
    return make_error(Code::malformed, "'" + printable(path) + "' is no conversation: " + what);
  };
  const Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded()) return wrong("it is not JSON");
  if (!json.is_object() || !json.contains("messages") || !json["messages"].is_array())
    return wrong("it has no list \"messages\"");
  std::vector<ChatMessage> messages;
  for (const Json& m : json["messages"]) {
    const std::string at = "message " + std::to_string(messages.size());
    if (!m.is_object() || !m.contains("role") || !m["role"].is_string() || !m.contains("content") ||
        !m["content"].is_string())
      return wrong(at + " wants a \"role\" and a \"content\", both texts");
    const std::string role = m["role"];
    if (role != "system" && role != "user" && role != "assistant")
      return wrong(at + " has the role '" + printable(role) + "', known: system, user, assistant");
    messages.push_back({role, m["content"], {}});
  }
  messages_ = std::move(messages);
  return ok();
}

}  // namespace tern::tool
