// Every allocation of the public functions fails once: each comes back as Code::out_of_memory or does without, nothing
// throws or ends the process, and what was there before still works.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <functional>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "tern/llm.h"
#include "tern/llm/chat.h"
#include "tern/ops/elementwise.h"
#include "tern/ops/linear.h"
#include "tern/session.h"

namespace {

constexpr int64_t kNever = int64_t{1} << 60;
std::atomic<int64_t> left{kNever};  // allocations until one fails

}  // namespace

// Every form that the standard library may take: a sanitizer brings its own of those that are left out. Out of line:
// where one of them is inlined without the other, the compiler sees a pair that does not match.
[[gnu::noinline]] void* operator new(size_t bytes, const std::nothrow_t&) noexcept {
  if (left.fetch_sub(1, std::memory_order_relaxed) == 0) return nullptr;
  return std::malloc(bytes == 0 ? 1 : bytes);
}
[[gnu::noinline]] void* operator new(size_t bytes) {
  if (void* p = operator new(bytes, std::nothrow)) return p;
  throw std::bad_alloc();
}
void* operator new[](size_t bytes) { return operator new(bytes); }
void* operator new[](size_t bytes, const std::nothrow_t& none) noexcept { return operator new(bytes, none); }
[[gnu::noinline]] void operator delete(void* p) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, size_t) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, const std::nothrow_t&) noexcept { std::free(p); }
void operator delete[](void* p) noexcept { operator delete(p); }
void operator delete[](void* p, size_t) noexcept { operator delete(p); }
void operator delete[](void* p, const std::nothrow_t&) noexcept { operator delete(p); }

namespace tern {
namespace {

// Runs f with its allocation number 0, 1, 2, … failing, farther and farther apart, until none is left that could.
void every_allocation_fails(const std::function<Status()>& f) {
  ASSERT_TRUE(f().ok()) << f().error().message();  // kernels are in the cache on disk from here on
  int failures = 0;
  for (int64_t n = 0;; n = n < 100 ? n + 1 : n + n / 24) {
    left = n;
    Status status = ok();
    bool threw = false;
    try {
      status = f();
    } catch (...) {
      threw = true;
    }
    const bool reached = left.exchange(kNever) < 0;
    ASSERT_FALSE(threw) << "allocation " << n;
    if (!status) {
      ++failures;
      ASSERT_EQ(status.error().code, Code::out_of_memory) << "allocation " << n << ": " << status.error().message();
    }
    if (!reached) break;
  }
  EXPECT_GT(failures, 5);
  const Status after = f();
  EXPECT_TRUE(after.ok()) << after.error().message();
}

const char* const kText = TERN_TEST_DATA "/gguf/model_ok_q4_0.gguf";

Result<Graph> mlp() {
  Builder b;
  const Dim n = b.symbol("N", 1, 64);
  const Value x = b.input("x", DType::f32, {n, 2});
  const Value hidden = relu(b, linear(b, x, b.param("w1", DType::f32, {3, 2})));
  b.output("y", linear(b, hidden, b.param("w2", DType::f32, {1, 3})));
  return b.finish();
}

Options with_plugin() {
  Options options;
  options.plugin_path = TERN_LLVM_PLUGIN_PATH;
  return options;
}

LlmOptions small_context() {
  LlmOptions options;
  options.context = 64;
  options.max_sequences = 2;
  options.device_options.threads = 2;
  options.plugin_path = TERN_LLVM_PLUGIN_PATH;
  return options;
}

class MemoryEnds : public testing::TestWithParam<const char*> {};

TEST_P(MemoryEnds, InCompile) {
  auto graph = mlp();
  ASSERT_TRUE(graph.ok());
  const auto device = open_device(GetParam());
  ASSERT_TRUE(device.ok());
  const std::string text = print(*graph);
  every_allocation_fails([&]() -> Status {
    TERN_TRY(Graph mine, parse_graph(text));
    TERN_TRY(const Executable program, compile(std::move(mine), *device, with_plugin()));
    return ok();
  });
}

// What sessions are given lies ready, so that only theirs are the allocations that fail.
class MemoryEndsInASession : public MemoryEnds {
 protected:
  void SetUp() override {
    auto graph = mlp();
    ASSERT_TRUE(graph.ok());
    const auto device = open_device(GetParam());
    ASSERT_TRUE(device.ok());
    auto program = compile(std::move(*graph), *device, with_plugin());
    ASSERT_TRUE(program.ok()) << program.error().message();
    program_ = std::make_unique<Executable>(std::move(*program));
    const IoId x = *program_->io("x"), y = *program_->io("y");
    for (int64_t rows = 1; rows <= 7; ++rows)
      bindings_.push_back({{x, view<float>(std::span(in_).first(static_cast<size_t>(2 * rows)), {rows, 2})},
                           {y, mutable_view<float>(std::span(out_).first(static_cast<size_t>(rows)), {rows, 1})}});
  }
  Status run(Session& session, size_t rows) {
    out_[rows - 1] = 0;
    TERN_OK(session.run(bindings_[rows - 1]));
    return out_[rows - 1] == 3 ? ok() : make_error(Code::internal, "wrong numbers");
  }

  std::vector<float> in_ = std::vector<float>(14, 3.f), out_ = std::vector<float>(7);
  std::vector<std::vector<IoBinding>> bindings_;
  const std::vector<float> w1_ = {1, 1, 1, -1, -1, 1}, w2_ = {0.5f, 1, 1};
  const TensorView first_ = view<float>(w1_, {3, 2}), second_ = view<float>(w2_, {1, 3});
  std::unique_ptr<Executable> program_;
};

TEST_P(MemoryEndsInASession, FromItsParametersOn) {
  Params params = program_->params();
  every_allocation_fails([&]() -> Status {
    TERN_OK(params.set("w1", first_));
    TERN_OK(params.set("w2", second_));
    TERN_TRY(Session session, program_->open(params));
    TERN_OK(run(session, 7));
    TERN_TRY(Session other, session.clone());
    TERN_OK(run(other, 3));
    TERN_TRY(const StateSnapshot kept, session.snapshot());
    return session.restore(kept);
  });
}

TEST_P(MemoryEndsInASession, WhichGoesOn) {
  Params params = program_->params();
  ASSERT_TRUE(params.set("w1", first_).ok());
  ASSERT_TRUE(params.set("w2", second_).ok());
  auto session = program_->open(params);
  ASSERT_TRUE(session.ok());
  size_t rows = 0;
  every_allocation_fails([&]() -> Status {
    rows = rows % 7 + 1;  // other sizes, other plans
    return run(*session, rows);
  });
}

INSTANTIATE_TEST_SUITE_P(Devices, MemoryEndsInASession, testing::Values("cpu", "mean"),
                         [](const auto& test) { return std::string(test.param); });
INSTANTIATE_TEST_SUITE_P(Devices, MemoryEnds, testing::Values("cpu", "mean"),
                         [](const auto& test) { return std::string(test.param); });

TEST(MemoryEndsInALanguageModel, WhileItOpens) {
  const std::string path = kText;
  const LlmOptions options = small_context();
  every_allocation_fails([&]() -> Status {
    TERN_TRY(const LanguageModel model, LanguageModel::open(path, options));
    return ok();
  });
}

TEST(MemoryEndsInALanguageModel, WhileItSpeaks) {
  auto model = LanguageModel::open(kText, small_context());
  ASSERT_TRUE(model.ok()) << model.error().message();
  GenerateOptions how;
  how.max_tokens = 4;
  how.sampling.temperature = 0;
  how.ignore_end = true;
  how.top_logits = 3;
  const std::vector<TokenId> prompt = *model->tokenizer().encode("Hi");
  const std::vector<std::vector<TokenId>> prompts = {prompt, prompt};
  const std::string text = model->generate(prompt, how)->text;
  every_allocation_fails([&]() -> Status {
    TERN_OK(model->truncate(0, 0));
    TERN_OK(model->truncate(1, 0));
    TERN_TRY(const std::vector<TokenId> ids, model->tokenizer().encode("Hi"));
    TERN_TRY(const GenerateResult said, model->generate(ids, how));
    TERN_OK(model->truncate(0, 0));
    TERN_TRY(const std::vector<GenerateResult> both, model->generate_batch(prompts, how));
    const bool same = said.text == text && both[0].text == text && both[1].text == text;
    return same ? ok() : make_error(Code::internal, "other text");
  });
}

TEST(MemoryEndsInALanguageModel, InAChatTemplate) {
  ChatInput input;
  input.messages.push_back({"user", std::string(100, 'x'), {}});
  every_allocation_fails([&]() -> Status {
    TERN_TRY(const ChatTemplate chat,
             ChatTemplate::parse("{% for m in messages %}{{ m.role | upper }}: {{ m['content'] + '\n' }}{% endfor %}"));
    TERN_TRY(const std::string text, chat.render(input));
    return text.size() == 107 ? ok() : make_error(Code::internal, text);
  });
}

}  // namespace
}  // namespace tern
