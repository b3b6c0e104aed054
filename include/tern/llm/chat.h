// Chat templates: the program inside a model file that turns a conversation into a prompt.
//
// A sandboxed subset of Jinja2 as published templates use it, with the settings that transformers gives it
// (trim_blocks, lstrip_blocks, loop controls, generation, tojson without escapes, raise_exception, strftime_now).
// Templates come from files of unknown origin: names with two leading underscores and everything that would change a
// value are refused, and work, memory, depth and output are bounded. A template that cannot be used is an error of its
// own and keeps no model from loading.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tern/import/metadata.h"
#include "tern/result.h"

namespace tern {

struct ChatMessage {
  std::string role;  // "system", "user", "assistant", "tool"
  std::string content;
  // A JSON object with further fields: "tool_calls", "name", "tool_call_id", "reasoning_content"; a "content" in it
  // (null, or a list of parts) replaces the one above. Empty: none.
  std::string extra_json;
};

struct ChatInput {
  std::vector<ChatMessage> messages;
  // A JSON array of messages, instead of `messages` where not empty.
  std::string messages_json;
  std::string tools_json;  // a JSON array; empty: the template sees `tools` as none
  bool add_generation_prompt = true;
  std::string bos_token, eos_token;  // the tokens' names, as templates print them
  std::string extra_json;            // a JSON object of further variables: {"enable_thinking": false}
  // What strftime_now tells. Absent: the template finds no strftime_now, as published templates allow for.
  struct Now {
    int64_t unix_seconds = 0;
    int32_t utc_offset_minutes = 0;
  };
  std::optional<Now> now;
};

struct ChatLimits {
  uint64_t work = 150'000'000;                  // about 16 for a step, 1 for a byte looked at: at most a few seconds
  uint64_t memory_bytes = uint64_t{256} << 20;  // all strings and lists ever made in one rendering
  uint64_t output_bytes = uint64_t{16} << 20;
  uint32_t depth = 700;  // nested evaluations; a level takes about half a KiB of stack
};

// Immutable: rendered by several threads at once.
class ChatTemplate {
 public:
  // Errors are Code::malformed and tell the line.
  static Result<ChatTemplate> parse(std::string_view source);
  ChatTemplate(ChatTemplate&&) noexcept;
  ChatTemplate& operator=(ChatTemplate&&) noexcept;
  ~ChatTemplate();

  // Errors tell the line and what: Code::invalid where the template fails on the conversation or refuses it
  // (raise_exception), unsupported where it uses what this subset lacks, limit where it is stopped.
  Result<std::string> render(const ChatInput& input, const ChatLimits& limits = {}) const;

 private:
  struct Impl;
  explicit ChatTemplate(std::unique_ptr<const Impl> impl);
  std::unique_ptr<const Impl> impl_;
};

// The template in a model file: tokenizer.chat_template, or the one of the given name (tokenizer.chat_template.NAME,
// "tool_use") where there is one. Code::not_found where the file has none.
Result<std::string> chat_template_source(const Metadata& meta, std::string_view name = {});

}  // namespace tern
