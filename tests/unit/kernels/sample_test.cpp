// sample against the steps that include/tern/ops/sample.h lists, written plainly.
#include <algorithm>
#include <array>

#include "unit/kernels/harness.h"

namespace tern::test {

namespace {

struct Settings {
  float temperature = 1, top_k = 0, top_p = 1, min_p = 0, repeat = 1, frequency = 0, presence = 0;
};

// Philox4x32-10 (Salmon et al. 2011): the first word.
uint32_t philox(std::array<uint32_t, 4> c, std::array<uint32_t, 2> key) {
  for (int i = 0; i < 10; ++i) {
    const uint64_t p = 0xD2511F53ull * c[0], q = 0xCD9E8D57ull * c[2];
    c = {static_cast<uint32_t>(q >> 32) ^ c[1] ^ key[0], static_cast<uint32_t>(q),
         static_cast<uint32_t>(p >> 32) ^ c[3] ^ key[1], static_cast<uint32_t>(p)};
    key[0] += 0x9E3779B9, key[1] += 0xBB67AE85;
  }
  return c[0];
}

struct Choice {
  int64_t id;
  double logit;
};

// The id, and whether rounding could move the draw (`margin`: how far u is from the nearest step of the running sum).
int64_t expected(std::vector<float> logits, const Settings& s, const std::vector<int32_t>& history,
                 const std::array<uint32_t, 4>& seed, double* margin) {
  *margin = 1;
  std::vector<Choice> all;
  for (int64_t id = 0; id < static_cast<int64_t>(logits.size()); ++id) {
    double x = logits[static_cast<size_t>(id)];
    const auto n = std::count(history.begin(), history.end(), static_cast<int32_t>(id));
    if (n > 0) {
      if (s.repeat > 0) x = x > 0 ? x / s.repeat : x * s.repeat;
      x -= static_cast<double>(n) * s.frequency + s.presence;
    }
    if (!std::isnan(x) && x > -HUGE_VAL) all.push_back({id, x});
  }
  if (all.empty()) return -1;
  std::stable_sort(all.begin(), all.end(), [](const Choice& a, const Choice& b) { return a.logit > b.logit; });
  if (!(s.temperature > 0)) return all[0].id;
  if (s.top_k >= 1) all.resize(std::min(all.size(), static_cast<size_t>(s.top_k)));
  const double best = all[0].logit;
  if (s.top_p < 1) {
    double total = 0, sum = 0;
    for (const Choice& c : all) total += std::exp(c.logit - best);
    size_t n = 0;
    while (n < all.size() && !(n > 0 && sum >= s.top_p * total)) sum += std::exp(all[n++].logit - best);
    *margin = std::min(*margin, std::fabs(sum - s.top_p * total) / total);
    all.resize(n);
  }
  if (s.min_p > 0) {
    size_t n = 1;
    while (n < all.size() && all[n].logit >= best + std::log(s.min_p)) ++n;
    all.resize(n);
  }
  std::sort(all.begin(), all.end(), [](const Choice& a, const Choice& b) { return a.id < b.id; });
  double total = 0, sum = 0;
  for (const Choice& c : all) total += std::exp((c.logit - best) / s.temperature);
  const double u = static_cast<double>(philox({seed[2], seed[3], 0, 0}, {seed[0], seed[1]}) >> 8) / 16777216.0;
  for (const Choice& c : all) {
    sum += std::exp((c.logit - best) / s.temperature);
    *margin = std::min(*margin, std::fabs(sum / total - u));
    if (sum > u * total) return c.id;
  }
  return all.back().id;
}

}  // namespace

TEST(Sample, FollowsTheStepsOfTheOp) {
  const std::vector<Settings> rows = {{},
                                      {.temperature = 0},
                                      {.temperature = 0.7f, .top_k = 40},
                                      {.temperature = 1.3f, .top_p = 0.9f},
                                      {.temperature = 0.8f, .min_p = 0.05f},
                                      {.temperature = 1, .top_k = 20, .top_p = 0.8f, .min_p = 0.02f},
                                      {.temperature = 0, .repeat = 1.5f, .frequency = 0.3f, .presence = 0.2f},
                                      {.temperature = 0.9f, .top_k = 1},
                                      {.temperature = 1, .repeat = 1.2f, .frequency = 0.1f}};
  const int64_t L = static_cast<int64_t>(rows.size()), H = 24;
  for (const Place& place : places()) {
    const int64_t V = place.interpret ? 300 : 1500;
    for (uint32_t round = 0; round < (place.interpret ? 2u : 12u); ++round) {
      SCOPED_TRACE(std::string(place.name) + " round " + std::to_string(round));
      Case c;
      const Dim l = c.symbol("L", 1, 64, L);
      c.p.family = Family::sample;
      c.p.desc = SampleDesc{};
      c.p.extent = {l, V, H};
      const auto x = c.add(Role::x, {DType::f32, {l, V}}), s = c.add(Role::settings, {DType::f32, {l, 8}}),
                 h = c.add(Role::history, {DType::i32, {l, H}}), seeds = c.add(Role::seeds, {DType::u32, {l, 4}}),
                 out = c.add(Role::out, {DType::i32, {l}}, Access::write);
      c.output(out);
      Bid bid;
      ASSERT_TRUE(c.choose("sample", place.caps, &bid)) << c.error;
      Random r(round + 81);
      std::vector<float> logits(static_cast<size_t>(L * V)), settings;
      for (float& v : logits) v = std::round(r.real() * 64) / 8;  // many equal ones
      logits[5] = NAN, logits[9] = -INFINITY;
      std::vector<int32_t> history(static_cast<size_t>(L * H));
      for (auto& v : history) v = static_cast<int32_t>(r.below(40)) - 4;
      for (const Settings& row : rows) {
        for (float v : {row.temperature, row.top_k, row.top_p, row.min_p, row.repeat, row.frequency, row.presence, 0.f})
          settings.push_back(v);
      }
      std::vector<uint32_t> words(static_cast<size_t>(L * 4));
      for (auto& w : words) w = r.next();
      c.set(x, logits), c.set(s, settings), c.set(h, history), c.set(seeds, words);
      c.run("sample", place.caps, bid, place.interpret);
      if (HasFatalFailure()) return;
      const auto ids = c.get<int32_t>(out);
      for (size_t i = 0; i < rows.size(); ++i) {
        const auto begin = logits.begin() + static_cast<std::ptrdiff_t>(i) * V;
        const auto past = history.begin() + static_cast<std::ptrdiff_t>(i) * H;
        double margin;
        const int64_t want = expected({begin, begin + V}, rows[i], {past, past + H},
                                      {words[i * 4], words[i * 4 + 1], words[i * 4 + 2], words[i * 4 + 3]}, &margin);
        if (margin < 1e-5) continue;  // f32 sums may fall on the other side
        EXPECT_EQ(ids[i], want) << "row " << i;
      }
    }
  }
}

TEST(Sample, RowsWithoutAChoice) {
  for (const Place& place : places()) {
    Case c;
    c.p.family = Family::sample;
    c.p.desc = SampleDesc{};
    c.p.extent = {2, 70, 1};
    const auto x = c.add(Role::x, {DType::f32, {2, 70}}), s = c.add(Role::settings, {DType::f32, {2, 8}}),
               h = c.add(Role::history, {DType::i32, {2, 1}}), seeds = c.add(Role::seeds, {DType::u32, {2, 4}}),
               out = c.add(Role::out, {DType::i32, {2}}, Access::write);
    c.output(out);
    Bid bid;
    ASSERT_TRUE(c.choose("sample", place.caps, &bid)) << c.error;
    std::vector<float> logits(140, -INFINITY), settings(16, 0);
    for (size_t i = 0; i < 70; ++i) logits[i] = NAN;
    settings[8] = 1;
    c.set(x, logits), c.set(s, settings), c.set(h, std::vector<int32_t>{-1, -1}),
        c.set(seeds, std::vector<uint32_t>(8, 7));
    c.run("sample", place.caps, bid, place.interpret);
    if (HasFatalFailure()) return;
    EXPECT_EQ(c.get<int32_t>(out), (std::vector<int32_t>{-1, -1}));
  }
}

}  // namespace tern::test
