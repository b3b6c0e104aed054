// The functions that templates find without asking: range, dict, namespace, and what transformers adds.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "base/utf8.h"
#include "llm/chat/jinja/interp.h"
#include "llm/chat/lib/library.h"

namespace tern::jinja {
namespace {

constexpr int64_t kMaxRange = 100'000;  // as Jinja2's sandbox

Value range(Interp& in, Args& args) {
  Value v[3];
  if (!bind_args(in, "range", args, {"", "", ""}, v)) return Value();
  int64_t n[3] = {0, 0, 1};
  for (size_t i = 0; i < args.positional.size(); ++i) {
    if (!v[i].is_integral()) return in.fail(fmt::format("range wants integers, not {}", type_name(v[i])));
    n[i] = v[i].integer();
    if (n[i] < -(int64_t{1} << 60) || n[i] > (int64_t{1} << 60)) return in.fail("range is too large", Code::limit);
  }
  if (args.positional.empty()) return in.fail("range wants an end");
  if (args.positional.size() == 1) std::swap(n[0], n[1]);
  if (n[2] == 0) return in.fail("range wants a step that is not 0");
  const int64_t gap = n[2] > 0 ? n[1] - n[0] : n[0] - n[1], stride = n[2] > 0 ? n[2] : -n[2];
  const int64_t count = gap <= 0 ? 0 : (gap - 1) / stride + 1;
  if (count > kMaxRange)
    return in.fail(fmt::format("range has {} values, the limit is {}", count, kMaxRange), Code::limit);
  std::vector<Value> items;
  items.reserve(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) items.emplace_back(n[0] + i * n[2]);
  return in.list(std::move(items));
}

// dict(other, a=1)
Value dict(Interp& in, Args& args) {
  Dict out;
  if (args.positional.size() > 1) return in.fail("dict takes one positional argument");
  if (!args.positional.empty()) {
    const Value& from = args.positional[0];
    if (!from.is(Kind::dict)) return in.fail(fmt::format("dict wants a dict, not {}", type_name(from)));
    if (!in.work(from.dict().items.size() * 16)) return Value();
    out = from.dict();
  }
  for (auto& [name, value] : args.named) out.set(Value(name), std::move(value));
  return in.dict(std::move(out));
}

Value make_space(Interp& in, Args& args) {
  Namespace* space = in.make_namespace();
  if (args.positional.size() > 1) return in.fail("namespace takes one positional argument");
  if (!args.positional.empty()) {
    if (!args.positional[0].is(Kind::dict)) return in.fail("namespace wants a dict");
    for (const Pair& pair : args.positional[0].dict().items)
      if (in.work(space->items.size()) && pair.first.is_string()) space->set(pair.first.string(), pair.second);
  }
  for (auto& [name, value] : args.named)
    if (in.work(space->items.size())) space->set(name, std::move(value));
  return Value(space);
}

Value raise_exception(Interp& in, Args& args) {
  Value v[1];
  if (!bind_args(in, "raise_exception", args, {"message"}, v) || !in.work(in.weigh(v[0]))) return Value();
  return in.fail(fmt::format("the chat template refuses: {}", printable(to_text(v[0]), 400)));
}

std::string two_digits(unsigned value, char mark) {
  if (mark == '-') return std::to_string(value);
  if (mark == '_') return fmt::format("{:2}", value);
  return fmt::format("{:02}", value);
}

// One conversion of strftime in the C locale; false where it is not known.
bool append_time(std::string& out, char c, char mark, const Clock& clock) {
  static constexpr std::string_view kDays[] = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                               "Thursday", "Friday", "Saturday"};
  static constexpr std::string_view kMonths[] = {"January", "February", "March",     "April",   "May",      "June",
                                                 "July",    "August",   "September", "October", "November", "December"};
  using namespace std::chrono;
  const sys_seconds now{seconds{clock.unix_seconds} + minutes{clock.utc_offset_minutes}};
  const sys_days day = floor<days>(now);
  const year_month_day date{day};
  const hh_mm_ss<seconds> time{now - day};
  const unsigned weekday_index = weekday{day}.c_encoding(), month = static_cast<unsigned>(date.month()) - 1;
  const auto hour = static_cast<unsigned>(time.hours().count()), hour12 = hour % 12 == 0 ? 12 : hour % 12;
  const auto minute = static_cast<unsigned>(time.minutes().count()),
             second = static_cast<unsigned>(time.seconds().count());
  const int year = static_cast<int>(date.year());
  const auto day_of_year = static_cast<unsigned>((day - sys_days{date.year() / January / 1}).count()) + 1;
  const auto dd = static_cast<unsigned>(date.day());
  switch (c) {
    case 'Y': out += std::to_string(year); return true;
    case 'y': out += two_digits(static_cast<unsigned>(year % 100), mark); return true;
    case 'm': out += two_digits(month + 1, mark); return true;
    case 'd': out += two_digits(dd, mark); return true;
    case 'e': out += two_digits(dd, mark == '-' ? '-' : '_'); return true;
    case 'B': out += kMonths[month]; return true;
    case 'b':
    case 'h': out += kMonths[month].substr(0, 3); return true;
    case 'A': out += kDays[weekday_index]; return true;
    case 'a': out += kDays[weekday_index].substr(0, 3); return true;
    case 'w': out += std::to_string(weekday_index); return true;
    case 'H': out += two_digits(hour, mark); return true;
    case 'I': out += two_digits(hour12, mark); return true;
    case 'M': out += two_digits(minute, mark); return true;
    case 'S': out += two_digits(second, mark); return true;
    case 'p': out += hour < 12 ? "AM" : "PM"; return true;
    case 'j': out += mark == '-' ? std::to_string(day_of_year) : fmt::format("{:03}", day_of_year); return true;
    case 'F': out += fmt::format("{}-{:02}-{:02}", year, month + 1, dd); return true;
    case 'T': out += fmt::format("{:02}:{:02}:{:02}", hour, minute, second); return true;
    case 'R': out += fmt::format("{:02}:{:02}", hour, minute); return true;
    case 'D': out += fmt::format("{:02}/{:02}/{:02}", month + 1, dd, year % 100); return true;
    case 'n': out += '\n'; return true;
    case 't': out += '\t'; return true;
    case '%': out += '%'; return true;
    default: return false;
  }
}

Value strftime_now(Interp& in, Args& args) {
  Value v[1];
  if (!bind_args(in, "strftime_now", args, {"format"}, v)) return Value();
  if (!v[0].is_string() || !in.clock()) return in.fail("strftime_now wants a format");
  const std::string& format = v[0].string();
  const int64_t limit = int64_t{1} << 37;  // years of four digits
  if (in.clock()->unix_seconds < -(int64_t{1} << 36) || in.clock()->unix_seconds > limit)
    return in.fail("the time given is out of range");
  if (!in.memory(format.size() * 8)) return Value();
  std::string out;
  for (size_t i = 0; i < format.size(); ++i) {
    if (format[i] != '%') {
      out += format[i];
      continue;
    }
    char mark = '\0';
    if (i + 1 < format.size() && (format[i + 1] == '-' || format[i + 1] == '_' || format[i + 1] == '0'))
      mark = format[++i];
    if (i + 1 >= format.size() || !append_time(out, format[++i], mark, *in.clock()))
      return in.fail(fmt::format("strftime_now does not know the format \"{}\"", printable(format, 60)),
                     Code::unsupported);
  }
  return in.text(std::move(out));
}

constexpr Global kGlobals[] = {
    {"range", range},
    {"dict", dict},
    {"namespace", make_space},
    {"raise_exception", raise_exception},
    {"strftime_now", strftime_now},
};

}  // namespace

const Global* find_global(std::string_view name) {
  const auto* it =
      std::find_if(std::begin(kGlobals), std::end(kGlobals), [&](const Global& g) { return g.name == name; });
  return it == std::end(kGlobals) ? nullptr : it;
}

}  // namespace tern::jinja
