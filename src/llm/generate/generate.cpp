#include <algorithm>
#include <chrono>

#include "base/platform/within_memory.h"
#include "llm/generate/model.h"

namespace tern {
namespace {

using Clock = std::chrono::steady_clock;
double since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

std::vector<std::pair<TokenId, float>> top(const std::vector<float>& logits, uint32_t n) {
  std::vector<TokenId> order(logits.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<TokenId>(i);
  const size_t keep = std::min<size_t>(n, order.size());
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(keep), order.end(),
                    [&](TokenId a, TokenId b) {
                      const float x = logits[static_cast<size_t>(a)], y = logits[static_cast<size_t>(b)];
                      return x != y ? x > y : a < b;
                    });
  std::vector<std::pair<TokenId, float>> out;
  for (size_t i = 0; i < keep; ++i) out.emplace_back(order[i], logits[static_cast<size_t>(order[i])]);
  return out;
}

// One sequence being generated.
struct Stream {
  uint32_t sequence = 0;
  std::vector<TokenId> all;  // prompt and what was fed since
  TokenId next = kNoToken;
  Detokenizer detokenizer;
  StopMatcher stops;
  GenerateResult result;
  bool done = false;

  Stream(const Tokenizer& tokenizer, const GenerateOptions& options)
      : detokenizer(tokenizer, true, options.special_text), stops(options.stop) {}
};

// What was held back for a stop string or a whole character, once nothing will follow.
std::string rest_of(Stream& s) {
  std::string text = s.stops.push(s.detokenizer.flush()).text;
  return text + s.stops.flush();
}

// Takes the id that a step chose; says what it means for the text and whether the stream ends. `full`: the context
// holds no further token.
Result<GeneratedToken> accept(Stream& s, const StepResult& step, const Tokenizer& tokenizer,
                              const GenerateOptions& options, bool full) {
  GeneratedToken token;
  token.id = step.id;
  if (options.top_logits > 0) token.top_logits = top(step.logits, options.top_logits);
  const size_t n = s.result.ids.size();
  s.result.ids.push_back(step.id);
  s.next = n < options.force.size() ? options.force[n] : step.id;
  const auto end = [&](StopReason reason) {
    s.result.reason = reason;
    s.done = true;
  };
  if (!options.ignore_end && tokenizer.is_end(s.next)) {
    end(StopReason::end_token);
  } else {
    TERN_TRY(const std::string piece, s.detokenizer.push(s.next));
    StopMatcher::Out out = s.stops.push(piece);
    token.text = std::move(out.text);
    if (out.stopped) {
      end(StopReason::stop_string);
    } else if (s.result.ids.size() >= options.max_tokens) {
      end(StopReason::length);
    } else if (full) {
      end(StopReason::context_full);
    }
  }
  if (s.done && s.result.reason != StopReason::stop_string) token.text += rest_of(s);
  s.result.text += token.text;
  return token;
}

// The run was cancelled: what there is counts.
void cancel(Stream& s) {
  s.result.reason = StopReason::cancelled;
  s.result.text += rest_of(s);
  s.done = true;
}

SequenceStep step_of(const Stream& s, std::span<const TokenId> tokens, const GenerateOptions& options, bool sample) {
  SequenceStep step;
  step.sequence = s.sequence;
  step.tokens = tokens;
  step.sample = sample;
  step.sampling = options.sampling;
  step.draw = s.result.ids.size();
  step.history = s.all;
  return step;
}

}  // namespace

std::string_view stop_reason_name(StopReason reason) {
  switch (reason) {
    case StopReason::length: return "length";
    case StopReason::end_token: return "end_token";
    case StopReason::stop_string: return "stop_string";
    case StopReason::cancelled: return "cancelled";
    case StopReason::context_full: return "context_full";
  }
  return "length";
}

Result<StepResult> LanguageModel::Impl::prefill(uint32_t sequence, std::span<const TokenId> prompt, size_t kept,
                                                const GenerateOptions& options) {
  TERN_OK(pages.reserve(sequence, lengths[sequence] + uint64_t{prompt.size() - kept}));  // before a chunk of it is fed
  SequenceStep step;
  step.sequence = sequence;
  step.sampling = options.sampling;
  step.history = prompt;
  StepResult last;
  // The logits of the prompt's last token are always looked at: a model whose numbers are not finite fails here, not in
  // its text.
  for (size_t at = kept; at < prompt.size(); at += step.tokens.size()) {
    step.tokens = prompt.subspan(at, std::min<size_t>(prompt.size() - at, shape.max_tokens));
    step.sample = at + step.tokens.size() == prompt.size();
    TERN_TRY(std::vector<StepResult> r, run(std::span(&step, 1), step.sample, options.cancel));
    last = std::move(r[0]);
  }
  return last;
}

Result<GenerateResult> LanguageModel::generate(std::span<const TokenId> prompt, const GenerateOptions& options,
                                               const std::function<bool(const GeneratedToken&)>& each,
                                               uint32_t sequence) try {
  Impl& m = *impl_;
  if (prompt.empty()) return make_error(Code::invalid, "the prompt has no tokens");
  if (sequence >= m.lengths.size())
    return make_error(Code::invalid, "there is no sequence " + std::to_string(sequence));
  Stream s(m.tokenizer, options);
  s.sequence = sequence;
  s.all.assign(prompt.begin(), prompt.end());
  s.result.prompt_tokens = static_cast<uint32_t>(prompt.size());
  if (options.max_tokens == 0) return s.result;
  const bool logits = options.top_logits > 0;
  const auto start = Clock::now();
  if (options.reuse) {
    // The last token is fed in any case: its logits choose the next one.
    const auto same =
        std::mismatch(prompt.begin(), prompt.end() - 1, m.tokens[sequence].begin(), m.tokens[sequence].end());
    s.result.reused_tokens = static_cast<uint32_t>(same.first - prompt.begin());
    TERN_OK(truncate(sequence, s.result.reused_tokens));
  }
  TERN_TRY(StepResult last, m.prefill(sequence, prompt, s.result.reused_tokens, options));
  s.result.prefill_s = since(start);
  const auto decode = Clock::now();
  for (;;) {
    TERN_TRY(const GeneratedToken token, accept(s, last, m.tokenizer, options, m.lengths[sequence] >= context()));
    if (each && !each(token) && !s.done) cancel(s);
    if (s.done) break;
    s.all.push_back(s.next);
    const SequenceStep step = step_of(s, std::span(&s.all.back(), 1), options, true);
    auto r = m.run(std::span(&step, 1), logits, options.cancel);
    if (!r) {
      if (r.error().code != Code::cancelled) return r.take_error();
      cancel(s);
      break;
    }
    ++s.result.decode_steps;
    last = std::move((*r)[0]);
  }
  s.result.decode_s = since(decode);
  return s.result;
} catch (const std::bad_alloc&) {
  return memory_ended();
}

Result<std::vector<GenerateResult>> LanguageModel::generate_batch(std::span<const std::vector<TokenId>> prompts,
                                                                  const GenerateOptions& options) try {
  Impl& m = *impl_;
  if (prompts.size() > m.lengths.size())
    return make_error(Code::invalid, "more prompts than sequences; open the model with max_sequences = " +
                                         std::to_string(prompts.size()));
  for (size_t i = 0; i < prompts.size(); ++i) {
    if (prompts[i].empty()) return make_error(Code::invalid, "prompt " + std::to_string(i) + " has no tokens");
  }
  std::vector<Stream> streams;
  std::vector<std::optional<StepResult>> last(prompts.size());
  for (size_t i = 0; i < prompts.size(); ++i) {
    Stream& s = streams.emplace_back(m.tokenizer, options);
    s.sequence = static_cast<uint32_t>(i);
    s.all = prompts[i];
    s.result.prompt_tokens = static_cast<uint32_t>(prompts[i].size());
    if (options.max_tokens > 0) {
      TERN_TRY(last[i], m.prefill(s.sequence, prompts[i], 0, options));
    }
  }
  for (;;) {
    std::vector<SequenceStep> steps;
    std::vector<size_t> who;
    for (size_t i = 0; i < streams.size(); ++i) {
      Stream& s = streams[i];
      if (s.done || !last[i]) continue;
      TERN_OK(accept(s, *last[i], m.tokenizer, options, m.lengths[i] >= context()));
      last[i].reset();
      if (s.done) continue;
      s.all.push_back(s.next);
      steps.push_back(step_of(s, std::span(&s.all.back(), 1), options, true));
      who.push_back(i);
    }
    if (steps.empty()) break;
    auto r = m.run(steps, options.top_logits > 0, options.cancel);
    if (!r) {
      if (r.error().code != Code::cancelled) return r.take_error();
      for (const size_t i : who) cancel(streams[i]);
      break;
    }
    for (size_t k = 0; k < who.size(); ++k) {
      last[who[k]] = std::move((*r)[k]);
      ++streams[who[k]].result.decode_steps;
    }
  }
  std::vector<GenerateResult> out;
  for (Stream& s : streams) out.push_back(std::move(s.result));
  return out;
} catch (const std::bad_alloc&) {
  return memory_ended();
}

}  // namespace tern
