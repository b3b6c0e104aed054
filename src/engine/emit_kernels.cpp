#include "engine/emit_kernels.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>

#include "base/measure/memory.h"
#include "base/platform/thread.h"
#include "base/version.h"
#include "emit/llvm_compiler.h"
#include "kir/serial.h"
#include "runtime/disk_cache.h"

namespace tern::engine {
namespace {

// Changes whenever the code generator may give other code for the same kernel.
constexpr std::string_view kCodegenVersion = "llvm 2";

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

Hash object_key(const KernelDef& def, const Caps& caps) {
  return Hasher().text(version()).text(kCodegenVersion).text(caps.isa).bytes(def.code).done();
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

}  // namespace

Status emit_kernels(Program& program, const Caps& caps, const EmitOptions& options, CompileTimings& timings) {
  const runtime::DiskCache cache(options.cache_dir);
  std::vector<size_t> missing;
  for (size_t i = 0; i < program.kernels.size(); ++i) {
    KernelDef& def = program.kernels[i];
    if (def.kind != KernelDef::Kind::kir) continue;
    ++timings.kernels;
    if (!caps.mixed_access) TERN_OK(follow_signature(def));
    if (auto object = cache.find(object_key(def, caps))) {
      def.code = std::move(*object);
      def.kind = KernelDef::Kind::binary;
    } else {
      missing.push_back(i);
    }
  }
  if (missing.empty()) return ok();
  TERN_OK(room_for_compiler(missing.size()));
  // Only now: a start from a warm cache never loads the code generator.
  TERN_TRY(const LlvmCompiler compiler, LlvmCompiler::open(options.plugin_path));
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
      if (object) cache.store(object_key(def, caps), *object);
      const std::lock_guard lock(mutex);
      if (!object) {
        if (failure) failure = make_error(object.error().code, "kernel '" + def.name + "': " + object.error().text);
        continue;
      }
      timings.compiled.emplace_back(def.name, seconds);
      ++timings.kernels_compiled;
      def.code = std::move(*object);
      def.kind = KernelDef::Kind::binary;
    }
  };
  work_on_threads(static_cast<unsigned>(std::min<size_t>(options.threads, missing.size())), work);
  return failure;
}

}  // namespace tern::engine
