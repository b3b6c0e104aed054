// The options of a verb, in front of the command line parser, whose headers cost every file that includes them more
// than all of its own code.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace tern::tool {

// One option that has been added. What it may be told is checked while the command line is parsed: wrong use.
class Option {
 public:
  explicit Option(CLI::Option* option) : option_(option) {}
  Option& required();
  Option& shows_default();    // in --help: the value that the variable has now
  Option& may_be_repeated();  // one value each time
  Option& between(unsigned least, unsigned most);
  Option& one_of(const std::vector<std::string>& words);
  // what: the kind of value, for --help; wrong(text): what is wrong with it, empty: nothing.
  Option& check(const std::string& what, std::function<std::string(const std::string&)> wrong);
  Option& needs(const Option& other);
  Option& excludes(const Option& other);

 private:
  CLI::Option* option_;
};

class CommandLine {
 public:
  explicit CommandLine(CLI::App& app) : app_(app) {}
  // names: "--long", "-s,--long", or a plain name for what stands without one. to: where the value goes.
  // T: std::string, unsigned, int, uint64_t, float, std::optional of the first, second and fourth of these, or
  // std::vector<std::string>.
  template <class T>
  Option option(const std::string& names, T& to, const std::string& help);
  Option option(const std::string& names, const std::function<void(const std::string&)>& take, const std::string& help);
  Option flag(const std::string& names, bool& to, const std::string& help);
  void footer(const std::string& text);

 private:
  CLI::App& app_;
};

}  // namespace tern::tool
