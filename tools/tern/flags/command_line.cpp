#include "tools/tern/flags/command_line.h"

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>

namespace tern::tool {

Option& Option::required() {
  option_->required();
  return *this;
}
Option& Option::shows_default() {
  option_->capture_default_str();
  return *this;
}
Option& Option::may_be_repeated() {
  option_->take_all()->expected(1)->allow_extra_args(false);
  return *this;
}
Option& Option::between(unsigned least, unsigned most) {
  option_->check(CLI::Range(least, most));
  return *this;
}
Option& Option::one_of(const std::vector<std::string>& words) {
  option_->check(CLI::IsMember(words));
  return *this;
}
Option& Option::check(const std::string& what, std::function<std::string(const std::string&)> wrong) {
  option_->check(CLI::Validator([wrong = std::move(wrong)](const std::string& text) { return wrong(text); }, what));
  return *this;
}
Option& Option::needs(const Option& other) {
  option_->needs(other.option_);
  return *this;
}
Option& Option::excludes(const Option& other) {
  option_->excludes(other.option_);
  return *this;
}

template <class T>
Option CommandLine::option(const std::string& names, T& to, const std::string& help) {
  return Option(app_.add_option(names, to, help));
}
Option CommandLine::option(const std::string& names, const std::function<void(const std::string&)>& take,
                           const std::string& help) {
  return Option(app_.add_option_function<std::string>(names, take, help));
}
Option CommandLine::flag(const std::string& names, bool& to, const std::string& help) {
  return Option(app_.add_flag(names, to, help));
}
void CommandLine::footer(const std::string& text) { app_.footer(text); }

template Option CommandLine::option(const std::string&, std::string&, const std::string&);
template Option CommandLine::option(const std::string&, unsigned&, const std::string&);
template Option CommandLine::option(const std::string&, int&, const std::string&);
template Option CommandLine::option(const std::string&, uint64_t&, const std::string&);
template Option CommandLine::option(const std::string&, float&, const std::string&);
template Option CommandLine::option(const std::string&, std::optional<std::string>&, const std::string&);
template Option CommandLine::option(const std::string&, std::optional<unsigned>&, const std::string&);
template Option CommandLine::option(const std::string&, std::optional<uint64_t>&, const std::string&);
template Option CommandLine::option(const std::string&, std::vector<std::string>&, const std::string&);

}  // namespace tern::tool
