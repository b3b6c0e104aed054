#include "llm/chat/lib/library.h"

#include <fmt/format.h>

#include "base/utf8.h"
#include "llm/chat/jinja/interp.h"

namespace tern::jinja {

const Filter* find_filter(std::string_view name) {
  if (const Filter* filter = find_text_filter(name)) return filter;
  if (const Filter* filter = find_sequence_filter(name)) return filter;
  return find_number_filter(name);
}

bool bind_args(Interp& in, std::string_view who, Args& args, std::initializer_list<std::string_view> names,
               Value* out) {
  if (in.failed()) return false;
  if (args.positional.size() > names.size())
    return in.fail(fmt::format("{} takes at most {} arguments, not {}", who, names.size(), args.positional.size())),
           false;
  for (size_t i = 0; i < args.positional.size(); ++i) out[i] = args.positional[i];
  for (const auto& [name, value] : args.named) {
    size_t i = 0;
    while (i < names.size() && names.begin()[i] != name) ++i;
    if (i == names.size() || name.empty())
      return in.fail(fmt::format("{} takes no argument \"{}\"", who, printable(name, 60))), false;
    if (i < args.positional.size()) return in.fail(fmt::format("{} got \"{}\" twice", who, name)), false;
    out[i] = value;
  }
  return true;
}

}  // namespace tern::jinja
