#include "llm/tokenizer/pretokenizer.h"

#include <fmt/format.h>
#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <cstdlib>

#include "base/utf8.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

namespace tern::llm {
namespace {

// White space as Unicode's property has it. PCRE2's \s also takes U+180E, which no tokenizer means.
#define TERN_SPACE R"(\x{9}-\x{d}\x{20}\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000})"
#define TERN_GPT2                                                                                                  \
  "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^" TERN_SPACE "\\p{L}\\p{N}]+|[" TERN_SPACE "]+(?![^" TERN_SPACE \
  "])|[" TERN_SPACE "]+"
// {digits} of the number rule is what sets llama-3 and qwen2 apart.
#define TERN_CL100K(digits)                                                                                            \
  "(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|" digits "| ?[^" TERN_SPACE \
  "\\p{L}\\p{N}]+[\\r\\n]*|[" TERN_SPACE "]*[\\r\\n]+|[" TERN_SPACE "]+(?![^" TERN_SPACE "])|[" TERN_SPACE "]+"

struct Family {
  std::string_view names;  // as files write tokenizer.ggml.pre, separated by spaces
  std::array<const char*, 4> patterns;
  bool ignore_merges;
  bool adds_bos;
  bool composes;  // NFC first, as these models' own tokenizers do
};

// Sources: the tokenizer.json files of the models (pre_tokenizer sections) and OpenAI's tiktoken; names as GGUF files
// carry them. "default" is what files without a name were made with.
constexpr Family kFamilies[] = {
    {"default", {R"([\p{P}\$\+<=>\^~\|]+)", TERN_GPT2, R"(\p{N}+)", "[0-9][0-9][0-9]"}, false, false, false},
    {"gpt-2 gpt2 phi-2 mpt olmo", {TERN_GPT2}, false, false, false},
    {"smollm starcoder refact command-r", {R"(\p{N})", TERN_GPT2}, false, false, false},
    {"llama-bpe llama3 llama-v3 llama-3 falcon3", {TERN_CL100K("\\p{N}{1,3}")}, true, true, false},
    {"qwen2 qwen3 deepseek-r1-qwen stablelm2", {TERN_CL100K("\\p{N}")}, false, false, true},
};

bool has_name(std::string_view names, std::string_view name) {
  while (!names.empty()) {
    const size_t n = std::min(names.find(' '), names.size());
    if (names.substr(0, n) == name) return true;
    names.remove_prefix(std::min(n + 1, names.size()));
  }
  return false;
}

struct FreeCode {
  void operator()(pcre2_code* code) const { pcre2_code_free(code); }
};
struct FreeMatch {
  void operator()(pcre2_match_data* data) const { pcre2_match_data_free(data); }
};
struct FreeContext {
  void operator()(pcre2_match_context* context) const { pcre2_match_context_free(context); }
};
using CodePtr = std::unique_ptr<pcre2_code, FreeCode>;
using MatchPtr = std::unique_ptr<pcre2_match_data, FreeMatch>;
using ContextPtr = std::unique_ptr<pcre2_match_context, FreeContext>;

Result<CodePtr> compile(const char* pattern) {
  int error = 0;
  PCRE2_SIZE at = 0;
  CodePtr code(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern), PCRE2_ZERO_TERMINATED, PCRE2_UTF | PCRE2_UCP,
                             &error, &at, nullptr));
  if (!code) return make_error(Code::internal, fmt::format("pre-tokenizer pattern: PCRE2 error {} at {}", error, at));
  // Without machine code (no executable memory) the interpreter does the same, slower.
  (void)pcre2_jit_compile(code.get(), PCRE2_JIT_COMPLETE);
  return code;
}

// One call's working memory.
struct Matcher {
  MatchPtr data{pcre2_match_data_create(1, nullptr)};
  ContextPtr context{pcre2_match_context_create(nullptr)};

  Matcher() {
    if (!context) return;
    pcre2_set_match_limit(context.get(), 10'000'000);
    pcre2_set_heap_limit(context.get(), 64 * 1024);  // KiB
  }

  // Appends the matches and what lies between them.
  Status cut(const pcre2_code* code, std::string_view text, std::vector<std::string_view>& out) {
    size_t done = 0;
    while (done < text.size()) {
      int rc = match(code, text, done, PCRE2_NO_UTF_CHECK);
      if (rc == PCRE2_ERROR_JIT_STACKLIMIT) rc = match(code, text, done, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT);
      if (rc == PCRE2_ERROR_NOMATCH) break;
      if (rc < 0)
        return make_error(Code::limit, fmt::format("the pre-tokenizer gave up on the text: PCRE2 error {}", rc));
      const PCRE2_SIZE* ends = pcre2_get_ovector_pointer(data.get());
      if (ends[1] <= done) break;  // no pattern matches nothing; never loop should one
      if (ends[0] > done) out.push_back(text.substr(done, ends[0] - done));
      out.push_back(text.substr(ends[0], ends[1] - ends[0]));
      done = ends[1];
    }
    if (done < text.size()) out.push_back(text.substr(done));
    return ok();
  }

  int match(const pcre2_code* code, std::string_view text, size_t from, uint32_t options) {
    return pcre2_match(code, reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), from, options, data.get(),
                       context.get());
  }
};

// The run at the start of text that is well formed, or that is not.
size_t run_of(std::string_view text, bool well_formed) {
  size_t n = 0;
  while (n < text.size()) {
    const size_t sequence = utf8_sequence(text.substr(n));
    if ((sequence != 0) != well_formed) break;
    n += well_formed ? sequence : 1;
  }
  return n;
}

}  // namespace

struct Pretokenizer::Impl {
  const Family* family = nullptr;
  std::vector<CodePtr> codes;
};

Pretokenizer::Pretokenizer(std::unique_ptr<const Impl> impl) : impl_(std::move(impl)) {}
Pretokenizer::Pretokenizer(Pretokenizer&&) noexcept = default;
Pretokenizer& Pretokenizer::operator=(Pretokenizer&&) noexcept = default;
Pretokenizer::~Pretokenizer() = default;

Result<Pretokenizer> Pretokenizer::create(std::string_view name) {
  if (name.empty()) name = "default";
  std::string known;
  for (const Family& family : kFamilies) {
    (known += known.empty() ? "" : " ") += family.names;
    if (!has_name(family.names, name)) continue;
    auto impl = std::make_unique<Impl>();
    impl->family = &family;
    for (const char* pattern : family.patterns) {
      if (pattern == nullptr) break;
      TERN_TRY(CodePtr code, compile(pattern));
      impl->codes.push_back(std::move(code));
    }
    return Pretokenizer(std::unique_ptr<const Impl>(std::move(impl)));
  }
  return make_error(
      Code::unsupported,
      fmt::format("tokenizer.ggml.pre \"{}\" is not a known pre-tokenizer family (known: {})", printable(name), known));
}

Status Pretokenizer::split(std::string_view text, std::vector<std::string_view>& pieces) const {
  Matcher matcher;
  if (!matcher.data || !matcher.context) return make_error(Code::out_of_memory, "no memory for the pre-tokenizer");
  std::vector<std::string_view> from, to;
  while (!text.empty()) {
    const size_t good = run_of(text, true);
    if (good > 0) {
      from.assign(1, text.substr(0, good));
      for (const CodePtr& code : impl_->codes) {
        to.clear();
        for (const std::string_view piece : from) TERN_OK(matcher.cut(code.get(), piece, to));
        std::swap(from, to);
      }
      pieces.insert(pieces.end(), from.begin(), from.end());
      text.remove_prefix(good);
    }
    const size_t bad = run_of(text, false);
    if (bad > 0) pieces.push_back(text.substr(0, bad));
    text.remove_prefix(bad);
  }
  return ok();
}

bool Pretokenizer::composes() const { return impl_->family->composes; }

std::string Pretokenizer::composed(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const size_t good = run_of(text, true);
    utf8proc_uint8_t* mapped = nullptr;
    const auto size =
        utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()), static_cast<utf8proc_ssize_t>(good),
                     &mapped, static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
    if (size >= 0)
      out.append(reinterpret_cast<const char*>(mapped), static_cast<size_t>(size));
    else
      out += text.substr(0, good);
    std::free(mapped);
    text.remove_prefix(good);
    const size_t bad = run_of(text, false);
    out += text.substr(0, bad);
    text.remove_prefix(bad);
  }
  return out;
}

bool Pretokenizer::ignore_merges() const { return impl_->family->ignore_merges; }
bool Pretokenizer::adds_bos() const { return impl_->family->adds_bos; }

}  // namespace tern::llm
