// What was said so far, and its file.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tern/llm/chat.h"

namespace tern::tool {

class Conversation {
 public:
  explicit Conversation(std::optional<std::string> system) : system_(std::move(system)) { reset(); }

  const std::vector<ChatMessage>& messages() const { return messages_; }
  void add(std::string role, std::string text) { messages_.push_back({std::move(role), std::move(text), {}}); }
  void drop_last() { messages_.pop_back(); }
  // Forgets all but the system message.
  void reset();

  // {"messages": [{"role": "user", "content": "..."}, ...]}. A file is replaced whole or not at all, and so is the
  // conversation.
  Status save(const std::string& path) const;
  Status load(const std::string& path);

 private:
  std::optional<std::string> system_;
  std::vector<ChatMessage> messages_;
};

}  // namespace tern::tool
