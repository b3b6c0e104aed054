// Fuzz target of the chat templates: whatever the bytes are, parsing and rendering end, within small limits, with UTF-8
// text or an error that says so.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "base/utf8.h"
#include "tern/llm/chat.h"

namespace {

void want(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "broken promise: %s\n", what);
  std::abort();
}

const tern::ChatInput& conversation() {
  static const tern::ChatInput input = [] {
    tern::ChatInput in;
    in.messages = {
        {"system", "Be\nterse. ", ""},
        {"user", "h\xC3\xA9llo <b>", ""},
        {"assistant", "",
         R"({"content": null, "tool_calls": [{"id": "abcdefghi", "function": {"name": "f", "arguments": {"x": [1, 2.5]}}}]})"},
        {"tool", "{}", R"({"tool_call_id": "abcdefghi"})"},
        {"assistant", "<think>\nwhy\n</think>\n\nbecause", ""}};
    in.tools_json =
        R"([{"type": "function", "function": {"name": "f", "description": "d", "parameters": {"type": "object",
      "properties": {"x": {"type": "array", "items": {"type": "number"}}}, "required": ["x"]}}}])";
    in.bos_token = "<s>";
    in.eos_token = "</s>";
    in.extra_json = R"({"v": {"i": 7, "s": "Hello", "l": [3, 1, 2], "d": {"a": 1}, "n": null}})";
    in.now = tern::ChatInput::Now{1722686706, 60};
    return in;
  }();
  return input;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto chat = tern::ChatTemplate::parse({reinterpret_cast<const char*>(data), size});
  if (!chat) {
    want(tern::is_utf8(chat.error().message()), "messages are UTF-8");
    want(chat.error().message().find("chat template") != std::string::npos, "messages name the template");
    return 0;
  }
  const tern::ChatLimits limits{.work = 2'000'000, .memory_bytes = 4u << 20, .output_bytes = 1u << 20, .depth = 300};
  const auto text = chat->render(conversation(), limits);
  if (!text) {
    want(tern::is_utf8(text.error().message()), "messages are UTF-8");
    want(text.error().message().find("chat template") != std::string::npos, "messages name the template");
    return 0;
  }
  want(text->size() <= limits.output_bytes, "output is bounded");
  want(tern::is_utf8(*text), "output is UTF-8");
  return 0;
}
