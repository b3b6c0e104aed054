// tern-pack: compiles the kernels of usual models for one instruction set, into the pack that is installed with tern.
// Kernels that an earlier pack of the same code generator holds are taken from it, so that a build makes what changed;
// a level that adds instructions for dot4 alone takes over what has no dot4.
#include <algorithm>
#include <cstdio>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/mmap.h"
#include "emit/llvm_compiler.h"
#include "engine/code/packs.h"
#include "kir/serial.h"
#include "tools/packs/models.h"

namespace tern::packs {
namespace {

struct Flags {
  std::string plugin, level, out;
  std::string made_by;  // what stands for the code generator's sources
  std::string base;     // pack of the level that lacks this one's dot4 instructions and nothing else
};

using Object = std::vector<std::byte>;
using OptionalPack = std::optional<runtime::KernelPack>;

// The last build's pack, where the same code generator made it.
OptionalPack last_pack(const Flags& flags) {
  const auto stamp = MappedFile::open(flags.out + ".maker");
  if (!stamp || std::string(reinterpret_cast<const char*>((*stamp)->bytes().data()), (*stamp)->size()) != flags.made_by)
    return std::nullopt;
  auto pack = runtime::KernelPack::open(flags.out);
  if (!pack || pack->codegen() != engine::codegen_identity()) return std::nullopt;
  return *std::move(pack);
}

// Nothing where a damaged pack or none has it: it is made again.
std::optional<Object> taken(const OptionalPack& pack, const Hash& key) {
  auto object = pack ? pack->find(key) : std::optional<Object>();
  return object ? *std::move(object) : std::nullopt;
}

bool has_dot4(const kir::Kernel& kernel) {
  return std::any_of(kernel.nodes.begin(), kernel.nodes.end(),
                     [](const kir::Node& n) { return n.op == kir::Op::dot4; });
}

// The object of the base level, where it serves this one too.
Result<std::optional<Object>> taken_from_base(const OptionalPack& base, const KernelDef& def) {
  if (!base) return std::optional<Object>();
  TERN_TRY(const kir::Kernel kernel, kir::deserialize(def.code));
  return has_dot4(kernel) ? std::nullopt : taken(base, engine::object_key(def.code, base->level()));
}

// Puts every kernel's object into the contents; returns how many were compiled for it.
Result<size_t> fill(const Kernels& kernels, const Flags& flags, runtime::PackContents& contents) {
  const OptionalPack last = last_pack(flags);
  OptionalPack base;
  if (!flags.base.empty()) {
    TERN_TRY(base, runtime::KernelPack::open(flags.base));
  }
  TERN_TRY(const LlvmCompiler compiler, LlvmCompiler::open(flags.plugin));
  const CpuTarget target = cpu_target(flags.level);
  size_t compiled = 0;
  for (const auto& [key, def] : kernels) {
    std::optional<Object> object = taken(last, key);
    if (!object) {
      TERN_TRY(object, taken_from_base(base, def));
    }
    if (!object) {
      auto made = compiler.compile(def.code, target);
      if (!made) return make_error(made.error().code, "kernel '" + def.name + "': " + made.error().text);
      object = *std::move(made);
      ++compiled;
    }
    contents.objects.emplace(key, *std::move(object));
  }
  return compiled;
}

Status write_text(const std::string& path, const std::string& text) {
  std::FILE* file = std::fopen(path.c_str(), "wb");
  if (file == nullptr) return make_error(Code::io, "cannot write " + path);
  const bool good = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  return std::fclose(file) == 0 && good ? ok() : Status(make_error(Code::io, "cannot write " + path));
}

Status make(const Flags& flags) {
  TERN_TRY(const Device device, open_device("cpu", {.threads = 1, .isa = flags.level, .cache_dir = {}}));
  Kernels kernels;
  for (const Model& model : models()) TERN_OK(add_kernels(model, device, flags.level, kernels));
  runtime::PackContents contents{flags.level, engine::codegen_identity(), {}};
  TERN_TRY(const size_t compiled, fill(kernels, flags, contents));
  TERN_OK(runtime::write_pack(flags.out, contents));
  TERN_OK(write_text(flags.out + ".maker", flags.made_by));
  std::printf("%s: %zu kernels, %zu of them compiled now\n", flags.level.c_str(), contents.objects.size(), compiled);
  return ok();
}

int run(int argc, char** argv) {
  Flags flags;
  const std::map<std::string_view, std::string*> known = {{"--plugin", &flags.plugin},
                                                          {"--level", &flags.level},
                                                          {"--out", &flags.out},
                                                          {"--made-by", &flags.made_by},
                                                          {"--base", &flags.base}};
  bool good = argc % 2 == 1;
  for (int i = 1; good && i < argc; i += 2) {
    const auto flag = known.find(argv[i]);
    good = flag != known.end();
    if (good) *flag->second = argv[i + 1];
  }
  if (!good || flags.plugin.empty() || flags.level.empty() || flags.out.empty() || flags.made_by.empty()) {
    std::fprintf(stderr,
                 "usage: tern-pack --plugin libtern-llvm.so --made-by WORD --level x86-64-v3 --out x86-64-v3.pack "
                 "[--base OTHER.pack]\n");
    return 2;
  }
  if (const Status made = make(flags); !made) {
    std::fprintf(stderr, "tern-pack: %s\n", made.error().message().c_str());
    return 1;
  }
  return 0;
}

}  // namespace
}  // namespace tern::packs

int main(int argc, char** argv) { return tern::packs::run(argc, argv); }
