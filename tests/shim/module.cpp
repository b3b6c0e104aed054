#include "shim/module.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>

#include "unit/temp_folder.h"

namespace tern::shim {

namespace {

// How texts of a language become C++ of this host.
struct Language {
  std::string_view name;
  bool clang;  // not any compiler
  std::string_view flags, words;
  std::vector<uint32_t> subgroups;
  std::string (*ready)(const std::string& text);
  // `extern "C" void call_<entry>(void* const* b, const unsigned* d)`.
  Result<std::string> (*call)(const Source& source);
};

std::string as_it_is(const std::string& text) { return text; }

// asm("cvt.f32.f16 %0, %1;" : "=f"(a) : "h"(b)) becomes ptx_cvt_f32_f16(a, b).
std::string without_ptx(const std::string& text) {
  static const std::regex one(R"re(asm\("([a-z0-9.]+) %0, %1;" : "=[fh]"\((\w+)\) : "[fh]"\((.+?)\)\);)re");
  std::string out;
  auto from = text.cbegin();
  for (std::sregex_iterator i(text.begin(), text.end(), one), end; i != end; ++i) {
    std::string name = (*i)[1];
    std::replace(name.begin(), name.end(), '.', '_');
    out.append(from, (*i)[0].first);
    out += "ptx_" + name + "(" + (*i)[2].str() + ", " + (*i)[3].str() + ");";
    from = (*i)[0].second;
  }
  return out.append(from, text.cend());
}

std::string head_of_call(const std::string& entry) {
  return "extern \"C\" void call_" + entry + "(void* const* b, const unsigned* d) { (void)b, (void)d; ";
}
Result<std::string> plain_call(const Source& s) {
  return head_of_call(s.text.entry) + "tern_shim::call(" + s.text.entry + ", b, d); }\n";
}
Result<std::string> cpp_call(const Source& s) {
  return head_of_call(s.text.entry) +
         "const tern_thread at = {tern_host->lane, tern_host->lanes, tern_host->group, tern_host->subgroup, "
         "tern_host->barrier, tern_host->gather}; tern_shim::call_with(at, " +
         s.text.entry + ", b, d); }\n";
}

// By the attributes of its parameters.
Result<std::string> metal_call(const Source& s) {
  static const std::map<std::string, std::string, std::less<>> kBuiltins = {
      {"thread_index_in_threadgroup", "tern_host->lane"},
      {"threadgroup_position_in_grid", "tern_host->group"},
      {"simdgroup_index_in_threadgroup", "tern_host->lane / tern_host->subgroup"},
      {"thread_index_in_simdgroup", "tern_shim::own()"},
      {"simdgroups_per_threadgroup", "(tern_host->lanes + tern_host->subgroup - 1) / tern_host->subgroup"}};
  static const std::regex one(R"re((.+) \w+ \[\[(\w+)(\((\d+)\))?\]\])re");
  const auto wrong = [&](const std::string& what) { return make_error(Code::invalid, s.text.entry + ": " + what); };
  const std::string& text = s.text.text;
  const std::string threads = "[[max_total_threads_per_threadgroup(" + std::to_string(s.kernel->lanes) + ")]]";
  const size_t start = text.find(threads + " kernel void " + s.text.entry + "(");
  if (start == std::string::npos) return wrong("there is no '" + threads + " kernel void'");
  size_t at = text.find('(', start + threads.size()) + 1;
  const size_t end = text.find(") {", at), bindings = s.kernel->bindings.size();
  std::set<size_t> seen;
  std::string arguments;
  while (at < end) {
    const size_t comma = std::min(text.find(", ", at), end);
    const std::string parameter = text.substr(at, comma - at);
    at = comma == end ? end : comma + 2;
    std::smatch m;
    if (!std::regex_match(parameter, m, one)) return wrong("'" + parameter + "' has no attribute");
    const bool buffer = m[2] == "buffer";
    const auto builtin = kBuiltins.find(m[2].str());
    if (!buffer && (builtin == kBuiltins.end() || m[1] != "uint")) return wrong("no lane is given '" + parameter + "'");
    const size_t index = buffer ? std::stoul(m[4]) : 0;
    if (buffer && (index > bindings || !seen.insert(index).second))
      return wrong("no buffer lies at '" + parameter + "'");
    arguments += arguments.empty() ? "" : ", ";
    arguments += !buffer             ? builtin->second
                 : index == bindings ? "(" + m[1].str() + ")d"
                                     : "(" + m[1].str() + ")b[" + std::to_string(index) + "]";
  }
  return head_of_call(s.text.entry) + s.text.entry + "(" + arguments + "); }\n";
}

#if defined(__x86_64__)
constexpr std::string_view kFused = "-O1 -ffp-contract=fast-honor-pragmas -mfma";  // the text must forbid it
#else
constexpr std::string_view kFused = "-O1 -ffp-contract=fast-honor-pragmas";
#endif
constexpr std::string_view kExact = "-O1 -ffp-contract=off -fno-strict-aliasing -Wno-unknown-pragmas -Wno-attributes";

const std::vector<Language>& all() {
  static const std::vector<Language> rows = {
      {"cuda", false, kExact, "cuda.h", {32}, without_ptx, plain_call},
      {"hip", true, kFused, "hip.h", {32, 64}, as_it_is, plain_call},
      {"msl", false, kExact, "metal_stdlib", {4, 8, 16, 32, 64}, as_it_is, metal_call},
      {"cpp", false, kExact, "cpp.h", {1, 4, 8, 16, 32, 64}, as_it_is, cpp_call},
  };
  return rows;
}
const Language& row_of(std::string_view name) {
  return *std::find_if(all().begin(), all().end(), [&](const Language& l) { return l.name == name; });
}
std::string_view compiler_of(const Language& l) { return l.clang ? TERN_TEST_CLANG : TERN_TEST_CXX; }

std::string read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace

std::span<const std::string_view> Module::languages() {
  static const std::vector<std::string_view> names = [] {
    std::vector<std::string_view> out;
    for (const Language& l : all()) out.push_back(l.name);
    return out;
  }();
  return names;
}
std::span<const uint32_t> Module::subgroups(std::string_view language) { return row_of(language).subgroups; }
std::string Module::missing(std::string_view language) {
  if (!compiler_of(row_of(language)).empty()) return {};
  return "there is no clang-19, whose vectors the text of " + std::string(language) + " uses (Debian: clang-19)";
}

Result<Module> Module::make(std::string_view language, std::span<const Source> sources) {
  const Language& l = row_of(language);
  std::string text = "#include \"" + std::string(l.words) + "\"\n";
  std::set<std::string> seen;
  for (const Source& s : sources) {
    if (!seen.insert(s.text.entry).second) continue;
    TERN_TRY(const std::string call, l.call(s));
    text += l.ready(s.text.text) + call;
  }
  const TempFolder folder;
  const std::string source = folder.write("kernels.cpp", text), object = folder.file("kernels.so"),
                    log = folder.file("log");
  const std::string command = std::string(compiler_of(l)) + " -std=c++20 -x c++ -shared -fPIC -w " +
                              std::string(l.flags) + " -I " TERN_TEST_SHIM "/words -o " + object + " " + source + " >" +
                              log + " 2>&1";
  if (std::system(command.c_str()) != 0)
    return make_error(Code::invalid, "the compiler refuses kernels in " + std::string(language) + ":\n" +
                                         read(log).substr(0, 4000) + "\n" + command);
  Module m;
  m.library_.reset(dlopen(object.c_str(), RTLD_NOW | RTLD_LOCAL), [](void* handle) {
    if (handle != nullptr) dlclose(handle);
  });
  if (!m.library_) return make_error(Code::invalid, dlerror());
  *static_cast<tern_shim::Host**>(dlsym(m.library_.get(), "tern_host")) = &Fibres::host();
  for (const std::string& entry : seen)
    m.calls_[entry] = reinterpret_cast<Call>(dlsym(m.library_.get(), ("call_" + entry).c_str()));
  std::istringstream all_lines(text);
  for (std::string line; std::getline(all_lines, line);) m.lines_.push_back(line);
  return m;
}

Status Module::run(const std::string& entry, void* const* bindings, const uint32_t* dims, const Launch& launch) const {
  static Fibres fibres;
  const Call call = calls_.at(entry);
  Status done = fibres.run(launch, [&] { call(bindings, dims); });
  if (done.ok()) return done;
  // The lines that it names, in words.
  std::string text = entry + ", " + done.error().text;
  static const std::regex line("line (\\d+)");
  std::set<size_t> named;
  for (std::sregex_iterator i(text.begin(), text.end(), line), end; i != end; ++i) named.insert(std::stoul((*i)[1]));
  for (const size_t n : named) {
    if (n > 0 && n <= lines_.size()) text += "\n" + std::to_string(n) + ": " + lines_[n - 1];
  }
  return make_error(Code::invalid, text);
}

}  // namespace tern::shim
