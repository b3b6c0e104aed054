// compile(): a graph and a device become an Executable that serves every size its symbols allow.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tern/device.h"
#include "tern/graph.h"
#include "tern/result.h"
#include "tern/tensor.h"
#include "tern/tune/tuning.h"

namespace tern {

class WeightSource;
class Params;
class Session;

// Conditions on symbols by name: {{"T", 1, 1}, {"L", 0, 1}} is the range of a decode step. The first range that holds
// at bind is taken; a last range without conditions is added where it is missing.
struct SymbolBound {
  std::string symbol;
  int64_t min, max;
};
using Range = std::vector<SymbolBound>;

struct Options {
  std::vector<Range> ranges;
  // {output, input}: the pair becomes a state of the output's name, read at the start and replaced at the end.
  std::vector<std::pair<std::string, std::string>> ties;
  bool precise = false;        // float activations against quantised weights
  bool deterministic = false;  // the CPU is always deterministic
  std::vector<std::string> skip_passes;
  // Called after each pass that changed the graph (printed form on demand by print()).
  std::function<void(std::string_view pass, const Graph& graph)> on_pass;
  std::string cache_dir;         // compiled kernels; empty: tern/kernels in the user's cache folder; "none": no cache
  std::string plugin_path;       // code generator; empty: beside the library or the program; "none": none
  std::string pack_dir;          // kernels compiled with tern; empty: beside the library or the program; "none": none
  unsigned compile_threads = 0;  // 0: the cores this process may use
  std::shared_ptr<const Tuning> tuning;  // of kernels' variants; null: what load_tuning() gives
};

using IoId = uint32_t;
enum class IoKind : uint8_t { input, output, param, state };

struct IoInfo {
  IoId id;
  IoKind kind;
  std::string name;
  TensorType type;
  std::string shape_text;  // "[T, 576]"
};

// Where a kernel comes from, in the order that is looked in. Interpreted kernels give the same numbers, slower: what
// the packs lack while there is no code generator.
enum class KernelSource : uint8_t { pack, cache, compiled, interpreted, text };
std::string_view kernel_source_name(KernelSource source);

// What one step of the compiled program is; for `tern explain`.
struct StepInfo {
  std::string label, kernel, problem, variant;
  std::optional<KernelSource> source;  // of its kernel; nothing for copies and fills
  uint32_t phase;
  double bytes, flop, seconds;                                // estimates at the range's upper bound
  std::vector<std::pair<std::string, std::string>> refusals;  // candidate, why
};
struct RangeInfo {
  std::string when;
  std::vector<StepInfo> steps;
  uint32_t phases = 0;
  uint64_t arena_bytes = 0;
};
struct CompileTimings {
  double passes_s = 0, lower_s = 0, kernels_s = 0, total_s = 0;
  uint32_t kernels = 0;  // that the program has; each has one of these sources
  uint32_t kernels_packed = 0, kernels_cached = 0, kernels_compiled = 0, kernels_interpreted = 0;
  uint32_t kernels_text = 0;                             // written in the device's language, which its driver compiles
  std::vector<std::pair<std::string, double>> compiled;  // kernel name, seconds; for those compiled now
  // What a user should know, a sentence each: that kernels are interpreted, why, and the cure; that a pack was refused.
  std::vector<std::string> notes;
};
struct Explanation {
  std::vector<RangeInfo> ranges;
  CompileTimings timings;
};
// Bytes that a session of these sizes will hold.
struct MemoryNeed {
  uint64_t weights = 0, state = 0, scratch = 0, io = 0;
  uint64_t total() const { return weights + state + scratch + io; }
};

// Immutable, shared by threads; copies share.
class Executable {
 public:
  const std::vector<IoInfo>& io() const;
  Result<IoId> io(std::string_view name) const;
  // Parameters of this program, empty; fill them and share them between sessions.
  Params params() const;
  Result<Session> open(const Params& params) const;
  Explanation explain() const;
  const CompileTimings& timings() const;
  MemoryNeed memory() const;
  std::string program_text() const;
  const Device& device() const;

  struct Impl;
  explicit Executable(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
  const std::shared_ptr<const Impl>& impl() const { return impl_; }

 private:
  std::shared_ptr<const Impl> impl_;
};

// The table of variants that was kept for this device, in tern/tuning of the user's cache folder; an empty one where
// there is none. save_tuning replaces it and gives its path.
Result<Tuning> load_tuning(const Device& device);
Result<std::string> save_tuning(const Device& device, const Tuning& tuning);

Result<Executable> compile(Graph graph, const Device& device, const Options& options = {});
// What a session of the compiled graph will hold, without making its kernels or reading a weight.
Result<MemoryNeed> memory_need(Graph graph, const Device& device, const Options& options = {});

}  // namespace tern
