#include "tools/tern/run/sampling.h"

#include <charconv>
#include <cmath>

namespace tern::tool {

void add_sampling_flags(CommandLine& line, SamplingOptions& s) {
  line.option("--temp", s.temperature, "Temperature; 0: always the most probable token").shows_default();
  line.option("--top-k", s.top_k, "Only the k most probable tokens; 0: all").shows_default();
  line.option("--top-p", s.top_p, "Only the most probable tokens that together reach this probability").shows_default();
  line.option("--min-p", s.min_p, "Only tokens of at least this share of the best one's probability").shows_default();
  line.option("--repeat-penalty", s.repeat_penalty, "Divides the logits of tokens that came lately; 1: off")
      .shows_default();
  line.option("--frequency-penalty", s.frequency_penalty, "Subtracted for each time that a token came lately")
      .shows_default();
  line.option("--presence-penalty", s.presence_penalty, "Subtracted once from tokens that came lately").shows_default();
  line.option("--seed", s.seed, "Seed: the same seed gives the same text")
      .shows_default()
      .check("UINT64", [](const std::string& text) {
        uint64_t seed = 0;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seed);
        const bool good = error == std::errc{} && end == text.data() + text.size();
        return good ? std::string() : "wants a whole number of 0 .. 18446744073709551615, not '" + text + "'";
      });
}

Status check_sampling_flags(const SamplingOptions& s) {
  const auto refuse = [](const char* text) { return make_error(Code::invalid, text); };
  if (!std::isfinite(s.temperature) || s.temperature < 0) return refuse("--temp wants a finite number of at least 0");
  if (s.top_k < 0) return refuse("--top-k wants 0 (all) or more");
  if (!(s.top_p > 0 && s.top_p <= 1)) return refuse("--top-p wants more than 0 and at most 1");
  if (!(s.min_p >= 0 && s.min_p <= 1)) return refuse("--min-p wants 0 .. 1");
  if (!std::isfinite(s.repeat_penalty) || s.repeat_penalty <= 0) return refuse("--repeat-penalty wants more than 0");
  if (!std::isfinite(s.frequency_penalty)) return refuse("--frequency-penalty wants a number");
  if (!std::isfinite(s.presence_penalty)) return refuse("--presence-penalty wants a number");
  return ok();
}

}  // namespace tern::tool
