#include "llm/generate/model.h"

#include <algorithm>
#include <cmath>

#include "base/platform/within_memory.h"
#include "llm/generate/plan.h"

namespace tern {
namespace {

Status check_sampling(const SamplingOptions& s) {
  const auto want = [](bool good, const char* what) {
    return good ? ok() : Status(make_error(Code::invalid, std::string("sampling: ") + what));
  };
  TERN_OK(want(std::isfinite(s.temperature) && s.temperature >= 0, "temperature wants a finite number of at least 0"));
  TERN_OK(want(s.top_k >= 0, "top_k wants 0 (all) or more"));
  TERN_OK(want(s.top_p > 0 && s.top_p <= 1, "top_p wants more than 0 and at most 1"));
  TERN_OK(want(s.min_p >= 0 && s.min_p <= 1, "min_p wants 0 .. 1"));
  TERN_OK(want(std::isfinite(s.repeat_penalty) && s.repeat_penalty > 0, "repeat_penalty wants more than 0"));
  TERN_OK(want(std::isfinite(s.frequency_penalty), "frequency_penalty wants a finite number"));
  return want(std::isfinite(s.presence_penalty), "presence_penalty wants a finite number");
}

template <class T>
IoBinding input(IoId id, const std::vector<T>& data, std::vector<int64_t> shape) {
  return {id, view(std::span<const T>(data), std::move(shape))};
}

}  // namespace

LanguageModel::LanguageModel(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
LanguageModel::LanguageModel(LanguageModel&&) noexcept = default;
LanguageModel& LanguageModel::operator=(LanguageModel&&) noexcept = default;
LanguageModel::~LanguageModel() = default;

Result<LanguageModel> LanguageModel::open(const std::string& path, const LlmOptions& options) try {
  TERN_TRY(const std::unique_ptr<ModelFile> file, open_model_file(path));
  return open(*file, options);
} catch (const std::bad_alloc&) {
  return memory_ended();
}

Result<LanguageModel> LanguageModel::open(const ModelFile& file, const LlmOptions& options) try {
  TERN_TRY(LlmInfo info, inspect(file));
  TERN_TRY(StepShape shape, llm::shape_for(info, options));
  TERN_TRY(const Device device, open_device(options.device, options.device_options));
  TERN_TRY(auto made, llm::make_tokenizer(file, device));
  auto& [tokenizer, room] = made;
  TERN_TRY(Executable exe, llm::with_steps_that_fit(file, shape, options, [&](Graph graph, const Options& how) {
             return compile(std::move(graph), device, how);
           }));
  TERN_OK(llm::check_fits(file, info, options, device, exe.memory(), room));
  Params params = exe.params();
  TERN_OK(params.load(file, options.progress));
  TERN_TRY(Session session, exe.open(params));
  std::map<std::string, IoId, std::less<>> ids;
  for (const IoInfo& io : exe.io()) ids[io.name] = io.id;
  const uint32_t context = llm::context_for(info, options);
  auto impl = std::make_unique<Impl>(Impl{options,
                                          std::move(info),
                                          shape,
                                          context,
                                          std::move(tokenizer),
                                          exe,
                                          std::move(session),
                                          llm::PagePool(shape.max_sequences, context, shape.page),
                                          std::vector<uint32_t>(shape.max_sequences),
                                          std::vector<std::vector<TokenId>>(shape.max_sequences),
                                          std::move(ids),
                                          {}});
  return LanguageModel(std::move(impl));
} catch (const std::bad_alloc&) {
  return memory_ended();
}

const LlmInfo& LanguageModel::info() const { return impl_->info; }
const Tokenizer& LanguageModel::tokenizer() const { return impl_->tokenizer; }
const Executable& LanguageModel::executable() const { return impl_->executable; }
Session& LanguageModel::session() { return impl_->session; }
uint32_t LanguageModel::context() const { return impl_->context; }
uint32_t LanguageModel::chunk() const { return impl_->shape.max_tokens; }
uint32_t LanguageModel::length(uint32_t sequence) const {
  return sequence < impl_->lengths.size() ? impl_->lengths[sequence] : 0;
}

std::span<const TokenId> LanguageModel::tokens(uint32_t sequence) const {
  return sequence < impl_->tokens.size() ? std::span<const TokenId>(impl_->tokens[sequence])
                                         : std::span<const TokenId>();
}

Status LanguageModel::truncate(uint32_t sequence, uint32_t length) {
  if (sequence >= impl_->lengths.size())
    return make_error(Code::invalid, "there is no sequence " + std::to_string(sequence));
  impl_->lengths[sequence] = std::min(impl_->lengths[sequence], length);
  impl_->tokens[sequence].resize(impl_->lengths[sequence]);
  impl_->pages.truncate(sequence, impl_->lengths[sequence]);
  return ok();
}

void LanguageModel::Impl::add_row(const SequenceStep& step, int32_t row) {
  in.rows.push_back(row);
  const SamplingOptions& s = step.sampling;
  in.settings.insert(in.settings.end(), {s.temperature, static_cast<float>(s.top_k), s.top_p, s.min_p, s.repeat_penalty,
                                         s.frequency_penalty, s.presence_penalty, 0.f});
  for (uint32_t i = 0; i < shape.history; ++i) {
    const size_t have = step.history.size();
    in.history.push_back(i < have ? step.history[have - 1 - i] : -1);
  }
  const auto low = [](uint64_t v) { return static_cast<uint32_t>(v); };
  in.seeds.insert(in.seeds.end(), {low(s.seed), low(s.seed >> 32), low(step.draw), low(step.draw >> 32)});
}

Status LanguageModel::Impl::check(std::span<const SequenceStep> steps) {
  if (steps.empty()) return make_error(Code::invalid, "a step of no sequence");
  if (steps.size() > shape.max_sequences)
    return make_error(Code::invalid, "more sequences in a step than the model was opened for");
  in.seen.assign(lengths.size(), false);
  size_t count = 0;
  for (const SequenceStep& step : steps) {
    const std::string name = "sequence " + std::to_string(step.sequence);
    if (step.sequence >= lengths.size())
      return make_error(Code::invalid,
                        "there is no " + name + "; the model was opened for " + std::to_string(lengths.size()));
    if (in.seen[step.sequence]) return make_error(Code::invalid, name + " stands twice in a step");
    in.seen[step.sequence] = true;
    if (step.tokens.empty()) return make_error(Code::invalid, "a step without tokens for " + name);
    for (const TokenId id : step.tokens) {
      if (id < 0 || static_cast<uint32_t>(id) >= info.vocabulary)
        return make_error(Code::invalid, "token id " + std::to_string(id) + " lies outside the vocabulary of " +
                                             std::to_string(info.vocabulary));
    }
    count += step.tokens.size();
    if (step.sample) TERN_OK(check_sampling(step.sampling));
  }
  if (count <= shape.max_tokens) return ok();
  return make_error(Code::invalid, "a step of " + std::to_string(count) + " tokens exceeds the chunk of " +
                                       std::to_string(shape.max_tokens));
}

Status LanguageModel::Impl::fill(std::span<const SequenceStep> steps) {
  for (auto* v : {&in.ids, &in.position, &in.slot, &in.row_start, &in.kv_length, &in.pages, &in.rows, &in.history})
    v->clear();
  in.settings.clear();
  in.seeds.clear();
  in.row_start.push_back(0);
  for (const SequenceStep& step : steps) {
    const uint32_t before = lengths[step.sequence];
    TERN_OK(pages.reserve(step.sequence, before + uint64_t{step.tokens.size()}));
    for (size_t i = 0; i < step.tokens.size(); ++i) {
      const auto position = before + static_cast<uint32_t>(i);
      in.ids.push_back(step.tokens[i]);
      in.position.push_back(static_cast<int32_t>(position));
      in.slot.push_back(pages.slot(step.sequence, position));
    }
    in.row_start.push_back(static_cast<int32_t>(in.ids.size()));
    in.kv_length.push_back(static_cast<int32_t>(before + step.tokens.size()));
    const std::vector<int32_t>& held = pages.pages(step.sequence);
    for (uint32_t p = 0; p < shape.pages_per_sequence; ++p) in.pages.push_back(p < held.size() ? held[p] : 0);
    if (step.sample) add_row(step, static_cast<int32_t>(in.ids.size()) - 1);
  }
  return ok();
}

Result<std::vector<StepResult>> LanguageModel::Impl::run(std::span<const SequenceStep> steps, bool want_logits,
                                                         const CancelToken* cancel) {
  TERN_OK(check(steps));
  TERN_OK(fill(steps));
  const auto count = static_cast<int64_t>(in.ids.size()), sequences = static_cast<int64_t>(steps.size()),
             rows = static_cast<int64_t>(in.rows.size());
  const int64_t vocabulary = info.vocabulary;
  std::vector<int32_t> chosen(static_cast<size_t>(rows));
  std::vector<float> logits(want_logits ? static_cast<size_t>(rows * vocabulary) : 0);
  std::vector<IoBinding> io = {
      input(ids.find("ids")->second, in.ids, {count}),
      input(ids.find("position")->second, in.position, {count}),
      input(ids.find("slot")->second, in.slot, {count}),
      input(ids.find("row_start")->second, in.row_start, {sequences + 1}),
      input(ids.find("kv_length")->second, in.kv_length, {sequences}),
      input(ids.find("pages")->second, in.pages, {sequences, shape.pages_per_sequence}),
      input(ids.find("rows")->second, in.rows, {rows}),
      input(ids.find("settings")->second, in.settings, {rows, 8}),
      input(ids.find("history")->second, in.history, {rows, shape.history}),
      input(ids.find("seeds")->second, in.seeds, {rows, 4}),
  };
  io.push_back({ids.find("next")->second, mutable_view(std::span<int32_t>(chosen), {rows})});
  if (want_logits)
    io.push_back({ids.find("logits")->second, mutable_view(std::span<float>(logits), {rows, vocabulary})});
  TERN_OK(session.run(io, {}, cancel));
  std::vector<StepResult> out(steps.size());
  size_t row = 0;
  for (size_t s = 0; s < steps.size(); ++s) {
    if (steps[s].sample) {
      out[s].id = chosen[row];
      if (want_logits)
        out[s].logits.assign(logits.begin() + static_cast<std::ptrdiff_t>(row) * vocabulary,
                             logits.begin() + static_cast<std::ptrdiff_t>(row + 1) * vocabulary);
      const bool finite =
          std::all_of(out[s].logits.begin(), out[s].logits.end(), [](float v) { return std::isfinite(v); });
      if (out[s].id < 0 || !finite) {
        return make_error(Code::malformed,
                          "the logits of a step are not finite (NaN or inf): a tensor of this model holds such values; "
                          "`tern verify` names the layer");
      }
      ++row;
    }
  }
  for (const SequenceStep& step : steps) {
    lengths[step.sequence] += static_cast<uint32_t>(step.tokens.size());
    tokens[step.sequence].insert(tokens[step.sequence].end(), step.tokens.begin(), step.tokens.end());
  }
  return out;
}

Result<std::vector<StepResult>> LanguageModel::step(std::span<const SequenceStep> steps, bool want_logits,
                                                    const CancelToken* cancel) try {
  return impl_->run(steps, want_logits, cancel);
} catch (const std::bad_alloc&) {
  return memory_ended();
}

}  // namespace tern
