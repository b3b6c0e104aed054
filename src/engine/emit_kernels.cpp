#include "engine/emit_kernels.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>

#include "base/version.h"
#include "emit/llvm_compiler.h"
#include "runtime/disk_cache.h"

namespace tern::engine {
namespace {

// Changes whenever the code generator may give other code for the same kernel.
constexpr std::string_view kCodegenVersion = "llvm 2";

Hash object_key(const KernelDef& def, const Caps& caps) {
  return Hasher().text(version()).text(kCodegenVersion).text(caps.isa).bytes(def.code).done();
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
    if (auto object = cache.find(object_key(def, caps))) {
      def.code = std::move(*object);
      def.kind = KernelDef::Kind::binary;
    } else {
      missing.push_back(i);
    }
  }
  if (missing.empty()) return ok();
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
  std::vector<std::thread> threads;
  for (unsigned t = 1; t < std::min<size_t>(options.threads, missing.size()); ++t) threads.emplace_back(work);
  work();
  for (std::thread& t : threads) t.join();
  return failure;
}

}  // namespace tern::engine
