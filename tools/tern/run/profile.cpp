#include "tools/tern/run/profile.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

namespace tern::tool {
namespace {

// "blk.12.ffn" and "blk.3.ffn" are one place.
std::string place_of(const std::string& label) {
  std::string out;
  for (size_t i = 0; i < label.size(); ++i) {
    const bool number = label[i] >= '0' && label[i] <= '9' && i > 0 && (label[i - 1] == '.' || out.back() == '*');
    if (!number)
      out += label[i];
    else if (out.back() != '*')
      out += '*';
  }
  return out;
}

}  // namespace

std::vector<TokenId> some_ids(uint32_t count, uint32_t vocabulary) {
  std::vector<TokenId> ids;
  uint32_t state = 1;
  for (uint32_t i = 0; i < count; ++i) {
    state = state * 1664525u + 1013904223u;
    ids.push_back(static_cast<TokenId>((state >> 8) % vocabulary));
  }
  return ids;
}

Result<std::vector<StepProfile>> run_profiled(LanguageModel& model, std::span<const TokenId> ids, uint32_t depth) {
  TERN_OK(model.truncate(0, std::min(depth, model.length(0))));
  SequenceStep step;
  step.tokens = ids;
  step.sampling.temperature = 0;
  model.session().set_profiling(true);
  const auto done = model.step(std::span(&step, 1));
  model.session().set_profiling(false);
  if (!done) return done.error();
  return model.session().profile();
}

Result<std::vector<ProfileRow>> profile_step(LanguageModel& model, std::span<const TokenId> ids, uint32_t depth) {
  TERN_TRY(const std::vector<StepProfile> steps, run_profiled(model, ids, depth));
  std::vector<ProfileRow> rows;
  for (const StepProfile& s : steps) {
    const std::string label = place_of(s.label);
    auto row = std::find_if(rows.begin(), rows.end(), [&](const ProfileRow& r) {
      return r.kernel == s.kernel && r.label == label && r.flop == r.steps * s.flop;  // sums of equal numbers, exact
    });
    if (row == rows.end()) row = rows.insert(row, {s.kernel, label});
    ++row->steps, row->seconds += s.seconds, row->bytes += s.bytes, row->flop += s.flop;
  }
  std::stable_sort(rows.begin(), rows.end(),
                   [](const ProfileRow& a, const ProfileRow& b) { return a.seconds > b.seconds; });
  return rows;
}

void print_profile(const char* title, const std::vector<ProfileRow>& rows) {
  double total = 0;
  for (const ProfileRow& r : rows) total += r.seconds;
  std::printf("\n%s: %.3f ms\n%-18s %-26s %5s %10s %6s %9s %9s\n", title, total * 1e3, "kernel", "place", "steps", "ms",
              "%", "GB/s", "Gop/s");
  for (const ProfileRow& r : rows) {
    std::printf("%-18s %-26s %5u %10.3f %6.1f %9.1f %9.1f\n", r.kernel.c_str(), r.label.c_str(), r.steps,
                r.seconds * 1e3, 100 * r.seconds / total, r.bytes / r.seconds / 1e9, r.flop / r.seconds / 1e9);
  }
}

Json profile_json(const std::vector<ProfileRow>& rows) {
  Json out = Json::array();
  for (const ProfileRow& r : rows) {
    out.push_back({{"kernel", r.kernel},
                   {"place", r.label},
                   {"steps", r.steps},
                   {"seconds", r.seconds},
                   {"bytes", r.bytes},
                   {"flop", r.flop}});
  }
  return out;
}

}  // namespace tern::tool
