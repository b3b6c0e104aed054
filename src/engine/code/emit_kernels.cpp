#include "engine/code/emit_kernels.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>

#include "base/cache/disk_cache.h"
#include "base/measure/memory.h"
#include "base/platform/thread.h"
#include "emit/kernel_spirv.h"
#include "emit/kernel_text.h"
#include "emit/llvm_compiler.h"
#include "engine/code/packs.h"
#include "kir/serial.h"

namespace tern::engine {
namespace {

// LLVM ends the process where memory ends, so it is not started with less: about 12 MiB are in use when it compiles
// the kernels of a language model, and its library and what threads reserve take addresses.
constexpr uint64_t kCompilerBytes = uint64_t{48} << 20, kCompilerAddresses = uint64_t{256} << 20;

Status room_for_compiler(size_t kernels) {
  const SystemMemory memory = system_memory();
  const auto check = [&](uint64_t need, uint64_t have, const char* what) -> Status {
    if (have >= need) return ok();
    return Error{Code::out_of_memory,
                 std::to_string(kernels) + " kernels are to be compiled, for which the code generator wants " +
                     std::to_string(need) + " bytes of " + what + "; " + std::to_string(have) + " are available",
                 {},
                 need,
                 have};
  };
  TERN_OK(check(kCompilerBytes, memory.available, "memory"));
  return check(kCompilerAddresses, memory.addresses, "addresses (ulimit -v)");
}

// The kernel's own declarations follow the signature that lower gave it (mixed access).
Status follow_signature(KernelDef& def) {
  TERN_TRY(kir::Kernel kernel, kir::deserialize(def.code));
  if (kernel.bindings.size() != def.sig.bindings.size())
    return make_error(Code::internal, "kernel '" + def.name + "' and its signature disagree about its bindings");
  bool changed = false;
  for (size_t i = 0; i < kernel.bindings.size(); ++i) {
    kir::Access& mine = kernel.bindings[i].access;
    if (mine != kir::Access::read || def.sig.bindings[i] == Access::read) continue;
    mine = kir::Access::update;
    changed = true;
  }
  if (changed) def.code = kir::serialize(kernel);
  return ok();
}

double since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

using Sources = std::vector<std::optional<KernelSource>>;

void take(KernelDef& def, std::vector<std::byte> object) {
  def.code = std::move(object);
  def.kind = KernelDef::Kind::binary;
}

// Takes what the processor's pack has. A damaged pack is no reason to run nothing, but one to tell.
void from_pack(Program& program, const Caps& caps, const std::string& folder, Sources& sources,
               CompileTimings& timings) {
  const auto found = pack_for(folder, caps.isa);
  if (!found) return;
  if (!found->pack) {
    timings.notes.push_back(found->pack.error().message());
    return;
  }
  for (size_t i = 0; i < program.kernels.size(); ++i) {
    KernelDef& def = program.kernels[i];
    if (def.kind != KernelDef::Kind::kir) continue;
    auto object = found->pack->find(object_key(def.code, found->level));
    if (!object) {
      timings.notes.push_back(object.error().message());
      return;
    }
    if (!*object) continue;
    take(def, std::move(**object));
    sources[i] = KernelSource::pack;
    ++timings.kernels_packed;
  }
}

// The kernels that neither a pack nor the cache had, made now, several at a time.
Status compile_all(Program& program, const Caps& caps, const std::vector<size_t>& missing, const LlvmCompiler& compiler,
                   const DiskCache& cache, unsigned threads, Sources& sources, CompileTimings& timings) {
  TERN_OK(room_for_compiler(missing.size()));
  const CpuTarget target = cpu_target(caps.isa);
  std::atomic<size_t> next{0};
  std::mutex mutex;
  Status failure = ok();
  const auto work = [&] {
    for (size_t n = next++; n < missing.size(); n = next++) {
      KernelDef& def = program.kernels[missing[n]];
      const auto start = std::chrono::steady_clock::now();
      auto object = compiler.compile(def.code, target);
      const double seconds = since(start);
      if (object) cache.store(object_key(def.code, caps.isa), *object);
      const std::lock_guard lock(mutex);
      if (!object) {
        if (failure) failure = make_error(object.error().code, "kernel '" + def.name + "': " + object.error().text);
        continue;
      }
      timings.compiled.emplace_back(def.name, seconds);
      ++timings.kernels_compiled;
      take(def, std::move(*object));
      sources[missing[n]] = KernelSource::compiled;
    }
  };
  work_on_threads(static_cast<unsigned>(std::min<size_t>(threads, missing.size())), work);
  return failure;
}

// In the device's language: written anew each time, since that takes less than looking it up. Drivers keep what they
// make of it.
Status write_kernel(KernelDef& def, const Caps& caps) {
  TERN_TRY(const kir::Kernel kernel, kir::deserialize(def.code));
  const auto hold = [&](KernelDef::Kind kind, std::span<const std::byte> code, std::string entry, uint32_t work_items) {
    def.code.assign(code.begin(), code.end());
    def.kind = kind;
    def.entry = std::move(entry);
    def.work_items = work_items;
  };
  if (caps.form == KernelForm::spirv) {
    TERN_TRY(KernelSpirv module, emit_spirv(kernel, caps));
    hold(KernelDef::Kind::binary, std::as_bytes(std::span(module.words)), std::move(module.entry), module.invocations);
  } else {
    TERN_TRY(KernelText text, emit_text(kernel, caps));
    hold(KernelDef::Kind::text, std::as_bytes(std::span(text.text)), std::move(text.entry), text.work_items);
  }
  return ok();
}

Status write_kernels(Program& program, const Caps& caps, Sources& sources, CompileTimings& timings) {
  for (size_t i = 0; i < program.kernels.size(); ++i) {
    if (program.kernels[i].kind != KernelDef::Kind::kir) continue;
    TERN_OK(write_kernel(program.kernels[i], caps));
    sources[i] = KernelSource::text;
    ++timings.kernels_text;
  }
  return ok();
}

// Only now is the code generator opened: a start from packs or from a warm cache never loads it.
Result<LlvmCompiler> open_compiler(const std::string& path) {
  if (path == "none") return make_error(Code::not_found, "the code generator is not to be used");
  return LlvmCompiler::open(path);
}

std::string interpreted_note(size_t interpreted, size_t kernels, const Error& why) {
  return std::to_string(interpreted) + " of " + std::to_string(kernels) +
         " kernels are interpreted, which is slow: no pack of this build has them, and there is no code generator (" +
         why.message() + "). Install libtern-llvm.so and LLVM 19 beside the library to have them compiled";
}

}  // namespace

Result<Sources> emit_kernels(Program& program, const Caps& caps, const EmitOptions& options, CompileTimings& timings) {
  Sources sources(program.kernels.size());
  for (KernelDef& def : program.kernels) {
    if (def.kind != KernelDef::Kind::kir) continue;
    ++timings.kernels;
    if (!caps.mixed_access) TERN_OK(follow_signature(def));
  }
  if (caps.form == KernelForm::text || caps.form == KernelForm::spirv) {
    TERN_OK(write_kernels(program, caps, sources, timings));
    return sources;
  }
  from_pack(program, caps, packs_folder(options.pack_dir), sources, timings);
  const DiskCache cache(options.cache_dir);
  std::vector<size_t> missing;
  for (size_t i = 0; i < program.kernels.size(); ++i) {
    KernelDef& def = program.kernels[i];
    if (def.kind != KernelDef::Kind::kir) continue;
    if (auto object = cache.find(object_key(def.code, caps.isa))) {
      take(def, std::move(*object));
      sources[i] = KernelSource::cache;
      ++timings.kernels_cached;
    } else {
      missing.push_back(i);
    }
  }
  if (missing.empty()) return sources;
  const auto compiler = open_compiler(options.plugin_path);
  if (compiler) {
    TERN_OK(compile_all(program, caps, missing, *compiler, cache, options.threads, sources, timings));
    return sources;
  }
  // A code generator that was named, or lies there in another version, is a fault to hear of, not a lack.
  const bool named = !options.plugin_path.empty() && options.plugin_path != "none";
  if (named || compiler.error().code != Code::not_found) return compiler.error();
  for (const size_t i : missing) sources[i] = KernelSource::interpreted;
  timings.kernels_interpreted = static_cast<uint32_t>(missing.size());
  timings.notes.push_back(interpreted_note(missing.size(), timings.kernels, compiler.error()));
  return sources;
}

}  // namespace tern::engine
