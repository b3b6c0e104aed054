#include "emit/llvm_compiler.h"

#include <dlfcn.h>

#include "base/platform/module.h"
#include "emit/llvm_plugin.h"

namespace tern {

namespace {

constexpr const char* kFile = "libtern-llvm.so";

// How the first word of Caps::isa names an architecture and a processor.
struct Family {
  std::string_view prefix, triple, cpu;  // cpu empty: the word itself
};
constexpr Family kFamilies[] = {
    {"x86-64", "x86_64-unknown-linux-gnu", {}},
    {"neon", "aarch64-unknown-linux-gnu", "generic"},
};

const tern_llvm_plugin* table(const void* p) { return static_cast<const tern_llvm_plugin*>(p); }

}  // namespace

CpuTarget cpu_target(std::string_view isa) {
  CpuTarget t;
  const size_t plus = isa.find('+');
  t.cpu = isa.substr(0, plus);
  for (const Family& f : kFamilies) {
    if (!t.cpu.starts_with(f.prefix)) continue;
    t.triple = f.triple;
    if (!f.cpu.empty()) t.cpu = f.cpu;
    break;
  }
  while (plus != std::string_view::npos && !isa.empty()) {
    const size_t at = isa.find('+');
    if (at == std::string_view::npos) break;
    const size_t end = isa.find('+', at + 1);
    t.features += (t.features.empty() ? "+" : ",+") + std::string(isa.substr(at + 1, end - at - 1));
    isa = end == std::string_view::npos ? std::string_view{} : isa.substr(end);
  }
  return t;
}

Result<LlvmCompiler> LlvmCompiler::open(std::string_view path) {
  std::vector<std::string> places;
  if (!path.empty()) {
    places = {std::string(path)};
  } else {
    const std::string folder = module_folder();
    if (!folder.empty()) places = {folder + "/" + kFile, folder + "/../lib/" + kFile};
    places.push_back(kFile);
  }
  void* library = nullptr;
  std::string looked, opened;
  for (const std::string& place : places) {
    // RTLD_LOCAL keeps LLVM's symbols from meeting those of another LLVM in the process (drivers bring their own).
    library = dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL);
    opened = place;
    if (library) break;
    const char* why = dlerror();
    looked += (looked.empty() ? "" : "; ") + std::string(why ? why : place);
  }
  if (!library) return make_error(Code::not_found, "the LLVM plug-in could not be opened: " + looked);
  auto entry = reinterpret_cast<tern_llvm_plugin_fn>(dlsym(library, TERN_LLVM_PLUGIN_SYMBOL));
  if (!entry) return make_error(Code::unsupported, std::string(kFile) + " has no symbol " TERN_LLVM_PLUGIN_SYMBOL);
  const tern_llvm_plugin* t = entry();
  if (t->version != TERN_LLVM_PLUGIN_VERSION) {
    return make_error(Code::unsupported, std::string(kFile) + " has version " + std::to_string(t->version) +
                                             ", wanted " + std::to_string(TERN_LLVM_PLUGIN_VERSION));
  }
  LlvmCompiler out;
  out.table_ = t;
  out.path_ = opened;
  out.host_ = {{}, t->host_cpu, t->host_features, 0};
  out.identity_ = "llvm " + std::string(t->llvm_version) + ", plug-in " + std::to_string(t->version) + "." +
                  std::to_string(t->revision);
  return out;
}

namespace {

template <class T>
Result<T> request(const void* plugin, std::span<const std::byte> kir, const CpuTarget& target, tern_llvm_want want) {
  const tern_llvm_request r{
      kir.data(),         kir.size(), target.triple.c_str(), target.cpu.c_str(), target.features.c_str(),
      target.vector_bits, want};
  tern_llvm_result answer{};
  table(plugin)->compile(&r, &answer);
  if (answer.error) {
    Error e = make_error(Code::unsupported, answer.error);
    table(plugin)->release(&answer);
    return e;
  }
  using Item = typename T::value_type;
  const Item* data = static_cast<const Item*>(answer.data);
  T out(data, data + answer.bytes);
  table(plugin)->release(&answer);
  return out;
}

}  // namespace

Result<std::vector<std::byte>> LlvmCompiler::compile(std::span<const std::byte> kir, const CpuTarget& target) const {
  return request<std::vector<std::byte>>(table_, kir, target, TERN_LLVM_OBJECT);
}

Result<std::string> LlvmCompiler::text(std::span<const std::byte> kir, const CpuTarget& target, bool assembly) const {
  return request<std::string>(table_, kir, target, assembly ? TERN_LLVM_ASSEMBLY : TERN_LLVM_IR);
}

}  // namespace tern
