// Chat templates against what Jinja2 makes of them (tests/data/llm/chat_golden.json, written by
// tools/make_chat_golden.py).
#include "tern/llm/chat.h"

#include <gtest/gtest.h>

#include <ctime>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

namespace tern {
namespace {

using Json = nlohmann::ordered_json;

const Json& golden() {
  static const Json data = Json::parse(std::ifstream(TERN_TEST_DATA "/llm/chat_golden.json"));
  return data;
}

std::string file_text(const std::string& path) {
  std::ifstream in(path);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

ChatInput input_of(const Json& c) {
  ChatInput input;
  input.bos_token = "<s>";
  input.eos_token = "</s>";
  input.now = ChatInput::Now{golden()["now"].get<int64_t>(), 0};
  if (c["input"].is_string()) {
    input.extra_json = Json{{"v", golden()["v"]}}.dump();
    return input;
  }
  const Json& in = c["input"];
  input.messages_json = in["messages"].dump();
  if (in.contains("tools")) input.tools_json = in["tools"].dump();
  if (in.contains("extra")) input.extra_json = in["extra"].dump();
  if (in.contains("add_generation_prompt")) input.add_generation_prompt = in["add_generation_prompt"];
  return input;
}

Result<std::string> render(std::string_view source, const ChatInput& input = {}, const ChatLimits& limits = {}) {
  TERN_TRY(const ChatTemplate chat, ChatTemplate::parse(source));
  return chat.render(input, limits);
}

TEST(ChatGolden, EqualsJinja2) {
  size_t files = 0;
  for (const Json& c : golden()["cases"]) {
    const bool from_file = c.contains("file");
    files += from_file ? 1 : 0;
    const std::string source = from_file ? file_text(TERN_TEST_DATA "/llm/templates/" + c["file"].get<std::string>())
                                         : c["template"].get<std::string>();
    const auto got = render(source, input_of(c));
    const std::string name = c["name"];
    if (c.contains("error")) {
      EXPECT_FALSE(got.ok()) << name << ": " << source << "\n-> " << *got;
      EXPECT_NE(got.ok() ? 0 : got.error().message().find("template"), std::string::npos) << got.error().message();
    } else {
      ASSERT_TRUE(got.ok()) << name << ": " << got.error().message() << "\n" << source;
      EXPECT_EQ(*got, c["output"].get<std::string>()) << name << "\n" << source;
    }
  }
  EXPECT_GE(files, 60u);
}

// The template inside SmolLM2-135M-Instruct's file, and the prompt that its authors' tools make of a conversation.
TEST(Chat, SmolLm2) {
  const std::string source =
      "{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}{{ '<|im_start|>system\nYou "
      "are a helpful AI "
      "assistant named SmolLM, trained by Hugging Face<|im_end|>\n' }}{% endif %}{{'<|im_start|>' + message['role'] + "
      "'\n' + "
      "message['content'] + '<|im_end|>' + '\n'}}{% endfor %}{% if add_generation_prompt %}{{ "
      "'<|im_start|>assistant\n' }}{% endif %}";
  ChatInput input;
  input.messages = {{"user", "Hi", ""}};
  const auto plain = render(source, input);
  ASSERT_TRUE(plain.ok()) << plain.error().message();
  EXPECT_EQ(*plain,
            "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n"
            "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n");
  input.messages = {{"system", "You are a terse assistant. Answer in one sentence.", ""},
                    {"user", "Why is the sky blue?", ""}};
  const auto with_system = render(source, input);
  ASSERT_TRUE(with_system.ok());
  EXPECT_EQ(*with_system,
            "<|im_start|>system\nYou are a terse assistant. Answer in one sentence.<|im_end|>\n<|im_start|>user\nWhy "
            "is the sky "
            "blue?<|im_end|>\n<|im_start|>assistant\n");
}

TEST(Chat, MessagesTakeExtraFields) {
  ChatInput input;
  input.messages = {{"assistant", "text", R"({"tool_calls": [{"function": {"name": "f"}}], "content": null})"}};
  const auto got = render("{{ messages[0].content is none }} {{ messages[0].tool_calls[0].function.name }}", input);
  ASSERT_TRUE(got.ok()) << got.error().message();
  EXPECT_EQ(*got, "True f");
  input.messages[0].extra_json = "[1]";
  EXPECT_EQ(render("x", input).error().code, Code::invalid);
  input.messages[0].extra_json = "{\"a\": }";
  EXPECT_EQ(render("x", input).error().code, Code::malformed);
}

TEST(Chat, WithoutClockThereIsNoStrftimeNow) {
  const auto got = render("{{ strftime_now is defined }}");
  ASSERT_TRUE(got.ok());
  EXPECT_EQ(*got, "False");
}

TEST(Chat, ErrorsTellTheLine) {
  const auto parse = ChatTemplate::parse("a\n{% if x %}\n{{ 1 + }}");
  ASSERT_FALSE(parse.ok());
  EXPECT_EQ(parse.error().code, Code::malformed);
  EXPECT_NE(parse.error().message().find("line 3"), std::string::npos) << parse.error().message();
  const auto run = render("a\n\n{% for m in messages %}{% endfor %}{{ nope.role }}");
  ASSERT_FALSE(run.ok());
  EXPECT_NE(run.error().message().find("line 3"), std::string::npos) << run.error().message();
  EXPECT_NE(run.error().message().find("nope"), std::string::npos) << run.error().message();
  const auto raised = render("{{ raise_exception('roles must alternate') }}");
  ASSERT_FALSE(raised.ok());
  EXPECT_EQ(raised.error().code, Code::invalid);
  EXPECT_NE(raised.error().message().find("roles must alternate"), std::string::npos);
}

TEST(Chat, IllFormedTextIsRepaired) {
  ChatInput input;
  input.messages = {{"user", "a\xFFz\xE2\x82", ""}};
  const auto got = render("\xC3{{ messages[0].content | length }}{{ messages[0].content[1:] }}", input);
  ASSERT_TRUE(got.ok());
  EXPECT_EQ(*got,
            "\xEF\xBF\xBD"
            "4\xEF\xBF\xBDz\xEF\xBF\xBD");
}

std::string times(size_t n, const std::string& text) {
  std::string out;
  for (size_t i = 0; i < n; ++i) out += text;
  return out;
}

// Fails, and soon.
void expect_stopped(const std::string& source) {
  const std::clock_t start = std::clock();  // processor time: other work of the machine does not count
  const auto got = render(source);
  const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  EXPECT_FALSE(got.ok()) << source.substr(0, 120) << " -> " << got->substr(0, 40);
  EXPECT_LT(seconds, 20) << source.substr(0, 120);
  EXPECT_LT(got.ok() ? 0 : got.error().message().size(), 1000u);
}

TEST(ChatLimits, LoopsAndTextsEnd) {
  for (const char* source : {
           "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
           "{% set ns = namespace(s='xxxxxxxx') %}{% for i in range(99) %}{% set ns.s = ns.s + ns.s %}{% endfor %}",
           "{% for i in range(99999) %}{{ 'xxxxxxxxxxxxxxxx' * 9999 }}{% endfor %}",
           "{% set s = 'ab' * 999999 %}{% for i in range(99999) %}{{ 'ba' * 999 in s }}{% endfor %}",
           "{{ 'x' * 99999999999 }}",
           "{{ [1] * 99999999999 }}",
           "{{ 'x'.ljust(99999999999) }}",
           "{{ 'x' | center(99999999999) }}",
           "{{ 'a' | indent(999999999999) }}",
           "{{ 2 ** 99999999999 }}",
           "{{ '%99999999d' % 1 }}",
           "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
           "{% macro m(a) %}{{ m([a, a]) }}{% endmacro %}{{ m(1) }}",
       })
    expect_stopped(source);
}

// A value of a few lists that hold each other twice is a tree of 2^100 leaves for whoever walks it.
TEST(ChatLimits, SharedValuesAreNotWalkedForEver) {
  const std::string twice =
      "{% set ns = namespace(x=[1], y=[1], t=(1,)) %}{% for i in range(100) %}{% set ns.x = [ns.x, ns.x] %}"
      "{% set ns.y = [ns.y, ns.y] %}{% set ns.t = (ns.t, ns.t) %}{% endfor %}";
  for (const char* use :
       {"{{ ns.x }}", "{{ ns.x == ns.y }}", "{{ ns.x in [ns.y] }}", "{{ ns.x < ns.y }}", "{{ ns.x | tojson }}",
        "{{ [ns.x, ns.y] | sort }}", "{{ [ns.x, ns.y] | unique }}", "{{ {ns.t: 1}[ns.t] }}", "{{ [ns.x].count(ns.y) }}",
        "{{ ns.x is eq ns.y }}", "{{ '%s' % ns.t }}", "{{ ns.x ~ '' }}", "{{ {'a': 1}.get(ns.t) }}"})
    expect_stopped(twice + use);
  expect_stopped("{% set ns = namespace(x=[]) %}{% for i in range(99999) %}{% set ns.x = [ns.x] %}{% endfor %}");
}

TEST(ChatLimits, DeepSyntaxIsRefused) {
  expect_stopped("{{ " + times(5000, "(") + "1" + times(5000, ")") + " }}");
  expect_stopped("{{ " + times(5000, "[") + times(5000, "]") + " }}");
  expect_stopped("{{ 1" + times(5000, "|abs") + " }}");
  expect_stopped("{{ 1" + times(5000, "+1") + " }}");
  expect_stopped("{{ " + times(5000, "not ") + "1 }}");
  expect_stopped("{{ a" + times(5000, ".a") + " }}");
  expect_stopped(times(5000, "{% if 1 %}"));
  expect_stopped(times(5000, "{% macro m() %}"));
  expect_stopped(times(2 << 20, "x"));
}

TEST(ChatLimits, OutputAndWorkAreTheCallers) {
  ChatLimits limits;
  limits.output_bytes = 10;
  EXPECT_EQ(render("0123456789a", {}, limits).error().code, Code::limit);
  EXPECT_TRUE(render("0123456789", {}, limits).ok());
  limits = {};
  limits.work = 1000;
  EXPECT_EQ(render("{% for i in range(1000) %}{{ i }}{% endfor %}", {}, limits).error().code, Code::limit);
}

TEST(Chat, RendersOnSeveralThreads) {
  auto chat = ChatTemplate::parse(
      "{% macro m(x) %}<{{ x }}>{% endmacro %}{% for m1 in messages %}{{ m(m1.content) }}{% endfor %}");
  ASSERT_TRUE(chat.ok());
  std::vector<std::thread> threads;
  std::vector<std::string> outs(4);
  for (size_t t = 0; t < outs.size(); ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 200; ++i) {
        ChatInput input;
        input.messages = {{"user", std::to_string(t), ""}, {"user", "x", ""}};
        outs[t] = *chat->render(input);
      }
    });
  for (auto& thread : threads) thread.join();
  for (size_t t = 0; t < outs.size(); ++t) EXPECT_EQ(outs[t], "<" + std::to_string(t) + "><x>");
}

}  // namespace
}  // namespace tern
