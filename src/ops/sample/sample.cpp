// sample: tern/ops/sample.h says what it does, step by step.
#include "tern/ops/sample.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "ops/common/numbers.h"
#include "ops/common/rules.h"
#include "ops/op_list.h"
#include "ops/sample/philox.h"

namespace tern {
namespace {

enum : size_t { kLogits, kSettings, kHistory, kSeeds };

Types infer(InferCtx& ctx) {
  constexpr DType kTypes[] = {DType::f32, DType::f32, DType::i32, DType::u32};
  constexpr std::string_view kNames[] = {"logits", "settings", "history", "seeds"};
  for (size_t i = 0; i < 4; ++i) {
    TERN_OK(want_dtype(ctx, i, kTypes[i]));
    TERN_OK(ctx.rank(i, 2));
    if (i) TERN_OK(ctx.same(ctx.in[0].shape[0], ctx.in[i].shape[0], "rows of logits and " + std::string(kNames[i])));
  }
  TERN_OK(ctx.same(ctx.in[kSettings].shape[1], static_cast<int64_t>(SampleSetting::count_), "columns of settings"));
  TERN_OK(ctx.same(ctx.in[kSeeds].shape[1], 4, "columns of seeds"));
  TERN_OK(at_most(ctx, ctx.in[kLogits].shape[1], INT32_MAX, "vocabulary"));
  return one(DType::i32, {ctx.in[0].shape[0]});
}

struct Candidate {
  int64_t id;
  double logit;
};

class Row {
 public:
  Row(const RefTensors& r, int64_t row)
      : settings_(r.in[kSettings]->f.data() + row * static_cast<int64_t>(SampleSetting::count_)) {
    const int64_t v = r.in[kLogits]->shape[1], h = r.in[kHistory]->shape[1];
    const double* logits = r.in[kLogits]->f.data() + row * v;
    std::map<int64_t, int64_t> seen;
    for (int64_t i = 0; i < h; ++i) ++seen[r.in[kHistory]->i[static_cast<size_t>(row * h + i)]];
    for (int64_t id = 0; id < v; ++id) {
      const auto n = seen.find(id);
      const double logit = n == seen.end() ? logits[id] : penalised(logits[id], n->second);
      if (!std::isnan(logit) && logit > -HUGE_VAL) all_.push_back({id, logit});
    }
    const int64_t* s = r.in[kSeeds]->i.data() + row * 4;
    const auto word = [&](int i) { return static_cast<uint32_t>(s[i]); };
    draw_ = static_cast<double>(philox4x32({word(2), word(3), 0, 0}, {word(0), word(1)})[0] >> 8) * 0x1p-24;
  }

  int64_t choose() {
    if (all_.empty()) return -1;
    std::stable_sort(all_.begin(), all_.end(),
                     [](const Candidate& a, const Candidate& b) { return a.logit > b.logit; });
    if (!(at(SampleSetting::temperature) > 0)) return all_[0].id;
    top_k();
    top_p();
    min_p();
    return draw();
  }

 private:
  double at(SampleSetting s) const { return settings_[static_cast<size_t>(s)]; }

  double penalised(double logit, int64_t n) const {
    const double repeat = at(SampleSetting::repeat_penalty);
    if (repeat > 0) logit = logit > 0 ? logit / repeat : logit * repeat;
    return logit - static_cast<double>(n) * at(SampleSetting::frequency_penalty) - at(SampleSetting::presence_penalty);
  }

  // exp((logit - best) / temperature), infinities among themselves included.
  double weight(double logit, double temperature) const {
    const double best = all_[0].logit;
    return logit == best ? 1 : std::exp((logit - best) / temperature);
  }

  void keep(size_t n) { all_.resize(std::clamp<size_t>(n, 1, all_.size())); }

  void top_k() {
    const double k = at(SampleSetting::top_k);
    if (k >= 1 && k < static_cast<double>(all_.size())) keep(static_cast<size_t>(k));
  }

  void top_p() {
    const double p = at(SampleSetting::top_p);
    if (!(p < 1)) return;
    double total = 0, sum = 0;
    for (const Candidate& c : all_) total += weight(c.logit, 1);
    size_t n = 0;
    while (n < all_.size() && !(n > 0 && sum >= p * total)) sum += weight(all_[n++].logit, 1);
    keep(n);
  }

  void min_p() {
    const double p = at(SampleSetting::min_p);
    if (!(p > 0)) return;
    const double floor = all_[0].logit + std::log(p);
    size_t n = 1;
    while (n < all_.size() && all_[n].logit >= floor) ++n;
    keep(n);
  }

  int64_t draw() {
    std::vector<std::pair<int64_t, double>> weights;
    double total = 0, sum = 0;
    for (const Candidate& c : all_) weights.push_back({c.id, weight(c.logit, at(SampleSetting::temperature))});
    std::sort(weights.begin(), weights.end());
    for (const auto& w : weights) total += w.second;
    for (const auto& [id, w] : weights) {
      sum += w;
      if (sum > draw_ * total) return id;
    }
    return weights.back().first;  // unreachable but for rounding: u is below 1
  }

  const double* settings_;
  std::vector<Candidate> all_;
  double draw_ = 0;
};

Status reference(const Node&, RefTensors& r) {
  for (int64_t row = 0; row < r.out[0].size(); ++row) r.out[0].i[static_cast<size_t>(row)] = Row(r, row).choose();
  return ok();
}

}  // namespace

constinit const OpDef kSampleOp{.name = "sample", .min_in = 4, .max_in = 4, .infer = infer, .reference = reference};

Value sample(Builder& b, Value logits, Value settings, Value history, Value seeds) {
  return b.op("sample", {logits, settings, history, seeds});
}

}  // namespace tern
