#include "tern/tune/tuning.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <optional>

namespace tern {
namespace {

constexpr std::string_view kHeader = "tern tuning 1";

std::string number(double x) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4g", x);
  return text;
}
std::optional<double> number(std::string_view text) {
  double x = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), x);
  if (error != std::errc{} || end != text.data() + text.size() || !(x >= 0)) return std::nullopt;
  return x;
}

std::vector<std::string_view> split(std::string_view text, char at) {
  std::vector<std::string_view> out;
  while (true) {
    const size_t end = text.find(at);
    out.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return out;
    text.remove_prefix(end + 1);
  }
}

}  // namespace

Tuning Tuning::trial(size_t n) {
  Tuning tuning;
  tuning.trial_ = n;
  return tuning;
}

void Tuning::add(TunedKernel kernel) {
  const auto [it, fresh] = at_.try_emplace({kernel.kernel, kernel.problem}, kernels_.size());
  if (fresh)
    kernels_.push_back(std::move(kernel));
  else
    kernels_[it->second] = std::move(kernel);
}

size_t Tuning::choose(std::string_view kernel, std::string_view problem, std::span<const std::string> variants) const {
  if (trial_ > 0) return std::min(trial_, variants.size() - 1);
  if (kernels_.empty()) return 0;
  const auto known = at_.find({std::string(kernel), std::string(problem)});
  if (known == at_.end()) return 0;
  const auto variant = std::find(variants.begin(), variants.end(), kernels_[known->second].variant);
  return variant == variants.end() ? 0 : static_cast<size_t>(variant - variants.begin());  // of another version of tern
}

std::string Tuning::text(std::string_view device) const {
  std::string out = std::string(kHeader) + "\t" + std::string(device) + "\n";
  for (const TunedKernel& k : kernels_)
    out += k.kernel + "\t" + k.variant + "\t" + number(k.seconds) + "\t" + number(k.usual_seconds) + "\t" + k.problem +
           "\n";
  return out;
}

Result<Tuning> Tuning::parse(std::string_view text, std::string_view device) {
  Tuning tuning;
  size_t line_number = 0;
  const auto refuse = [&](const char* why) {
    return Error{Code::malformed, "line " + std::to_string(line_number) + " of the tuning " + why, {}, line_number, 0};
  };
  for (const std::string_view line : split(text, '\n')) {
    ++line_number;
    const std::vector<std::string_view> fields = split(line, '\t');
    if (line_number == 1) {
      if (fields.size() != 2 || fields[0] != kHeader) return refuse("does not begin as tunings of this version do");
      if (fields[1] != device)
        return make_error(Code::not_found, "the tuning is of '" + std::string(fields[1]) + "', not of this device");
      continue;
    }
    if (line.empty()) continue;
    if (fields.size() != 5) return refuse("has not five fields");
    const auto seconds = number(fields[2]), usual = number(fields[3]);
    if (!seconds || !usual) return refuse("gives no time in seconds");
    tuning.add({std::string(fields[0]), std::string(fields[4]), std::string(fields[1]), *seconds, *usual});
  }
  return tuning;
}

}  // namespace tern
