// tern-pack: compiles the kernels of usual models for one instruction set, into the pack that is installed with tern.
// Kernels that an earlier pack of the same code generator holds are taken from it, so that a build makes what changed.
#include <cstdio>
#include <cstring>
#include <map>
#include <string>

#include "base/mmap.h"
#include "emit/llvm_compiler.h"
#include "engine/code/packs.h"
#include "tools/packs/models.h"

namespace tern::packs {
namespace {

struct Flags {
  std::string plugin, level, out;
};

// The code generator's file decides what code comes out, beyond what its version says.
Result<std::string> maker(const std::string& plugin) {
  TERN_TRY(const std::unique_ptr<MappedFile> file, MappedFile::open(plugin));
  return Hasher().bytes(file->bytes()).done().hex();
}

// Objects of the last build's pack, where the same code generator made it.
std::map<Hash, std::vector<std::byte>> earlier(const Flags& flags, const std::string& made_by) {
  std::map<Hash, std::vector<std::byte>> out;
  const auto stamp = MappedFile::open(flags.out + ".maker");
  if (!stamp || std::string(reinterpret_cast<const char*>((*stamp)->bytes().data()), (*stamp)->size()) != made_by)
    return out;
  const auto pack = runtime::KernelPack::open(flags.out);
  if (!pack || pack->codegen() != engine::codegen_identity()) return out;
  for (size_t i = 0; i < pack->kernels(); ++i) {
    auto object = pack->find(pack->key(i));
    if (object && *object) out.emplace(pack->key(i), std::move(**object));
  }
  return out;
}

Status compile_all(const Kernels& kernels, const Flags& flags, runtime::PackContents& contents) {
  TERN_TRY(const LlvmCompiler compiler, LlvmCompiler::open(flags.plugin));
  const CpuTarget target = cpu_target(flags.level);
  for (const auto& [key, def] : kernels) {
    if (contents.objects.contains(key)) continue;
    auto object = compiler.compile(def.code, target);
    if (!object) return make_error(object.error().code, "kernel '" + def.name + "': " + object.error().text);
    contents.objects.emplace(key, std::move(*object));
  }
  return ok();
}

Status write_text(const std::string& path, const std::string& text) {
  std::FILE* file = std::fopen(path.c_str(), "wb");
  if (file == nullptr) return make_error(Code::io, "cannot write " + path);
  const bool good = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  return std::fclose(file) == 0 && good ? ok() : Status(make_error(Code::io, "cannot write " + path));
}

Status make(const Flags& flags) {
  TERN_TRY(const Device device, open_device("cpu", {.threads = 1, .isa = flags.level}));
  Kernels kernels;
  for (const Model& model : models()) TERN_OK(add_kernels(model, device, flags.level, kernels));
  TERN_TRY(const std::string made_by, maker(flags.plugin));
  runtime::PackContents contents{flags.level, engine::codegen_identity(), {}};
  for (auto& [key, object] : earlier(flags, made_by)) {
    if (kernels.contains(key)) contents.objects.emplace(key, std::move(object));
  }
  const size_t kept = contents.objects.size();
  TERN_OK(compile_all(kernels, flags, contents));
  TERN_OK(runtime::write_pack(flags.out, contents));
  TERN_OK(write_text(flags.out + ".maker", made_by));
  std::printf("%s: %zu kernels, %zu of them compiled now\n", flags.level.c_str(), contents.objects.size(),
              contents.objects.size() - kept);
  return ok();
}

int run(int argc, char** argv) {
  Flags flags;
  for (int i = 1; i + 1 < argc; i += 2) {
    std::string* const to = std::strcmp(argv[i], "--plugin") == 0  ? &flags.plugin
                            : std::strcmp(argv[i], "--level") == 0 ? &flags.level
                            : std::strcmp(argv[i], "--out") == 0   ? &flags.out
                                                                   : nullptr;
    if (to == nullptr) break;
    *to = argv[i + 1];
  }
  if (flags.plugin.empty() || flags.level.empty() || flags.out.empty()) {
    std::fprintf(stderr, "usage: tern-pack --plugin libtern-llvm.so --level x86-64-v3 --out x86-64-v3.pack\n");
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
