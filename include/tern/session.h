// Sessions: running an Executable, its parameters and its states.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "tern/compile.h"
#include "tern/result.h"
#include "tern/tensor.h"

namespace tern {

using Progress = std::function<void(uint64_t done_bytes, uint64_t total_bytes)>;

// Parameters packed for one Executable's device. Copies share the memory; sessions share it by reference count.
// set/load are not synchronised with runs: change parameters between runs.
class Params {
 public:
  // Whole value, in the declared type (or in the declared block format).
  Status set(std::string_view name, const TensorView& value);
  Status set_rows(std::string_view name, int64_t first, const TensorView& rows);
  // Every parameter by name from the source; packs in parallel and drops the source's pages behind the reader.
  Status load(const WeightSource& source, const Progress& progress = {});
  // Names not set yet.
  std::vector<std::string> missing() const;
  uint64_t bytes() const;

  struct Impl;
  explicit Params(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
  const std::shared_ptr<Impl>& impl() const { return impl_; }

 private:
  std::shared_ptr<Impl> impl_;
};

// One value of a run. Inputs: TensorView. Outputs: MutableView in the declared dtype (its size must be exact). int64_t:
// the value of a symbol that no input's shape binds (id unused, symbol named).
struct IoBinding {
  IoId id = 0;
  std::variant<TensorView, MutableView> data;
};
struct SymbolValue {
  std::string name;
  int64_t value;
};

struct StepProfile {
  std::string label, kernel;
  double seconds, bytes, flop;
  std::string problem, candidate, variant;  // what it solves, and by what; empty for copies and fills
};

class CancelToken {
 public:
  CancelToken() : flag_(std::make_shared<std::atomic<bool>>(false)) {}
  void cancel() { flag_->store(true); }
  void reset() { flag_->store(false); }
  const std::atomic<bool>* flag() const { return flag_.get(); }

 private:
  std::shared_ptr<std::atomic<bool>> flag_;
};

using Ticket = uint64_t;
using StateSnapshot = std::vector<std::pair<std::string, std::vector<std::byte>>>;

// One stream of runs with its own states and scratch memory. Used by one thread at a time; cancel tokens from any
// thread.
class Session {
 public:
  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;
  ~Session();

  // Inputs are taken at once; outputs are filled when the ticket is done. Every input must be given exactly once;
  // outputs are optional. An output with a late size takes a view with room for what may come, up to the size's
  // maximum; what came lies dense at its start and shape() says how much it is. A run with late sizes returns when the
  // last of them is known, not before. Unknown ids, missing inputs, wrong dtypes, shapes and sizes are errors that name
  // the port.
  Result<Ticket> submit(std::span<const IoBinding> io, std::span<const SymbolValue> symbols = {},
                        const CancelToken* cancel = nullptr);
  Status wait(Ticket ticket);
  // Called from the device's thread, or at once where the ticket is done. It may submit, wait and end this session, and
  // throws nothing.
  void then(Ticket ticket, std::function<void(Status)> done);
  // submit + wait on the calling thread where the device allows it.
  Status run(std::span<const IoBinding> io, std::span<const SymbolValue> symbols = {},
             const CancelToken* cancel = nullptr);
  // Shape of an output in the last run.
  Result<std::vector<int64_t>> shape(IoId output) const;

  // States by name. Rows are indices of the first axis; data is dense in the state's dtype.
  Status read(std::string_view state, int64_t first_row, int64_t rows, std::span<std::byte> to);
  Status write(std::string_view state, int64_t first_row, int64_t rows, std::span<const std::byte> from);
  Status copy_rows(std::string_view state, int64_t first_row, int64_t rows, Session& from, std::string_view from_state,
                   int64_t from_row);
  Status reset_states();  // to zero
  // The state's own memory where the device shares it with the host, else a refusal as an error (unsupported).
  Result<std::span<std::byte>> map(std::string_view state);
  Result<StateSnapshot> snapshot();
  Status restore(const StateSnapshot& snapshot);
  Result<Session> clone();  // same parameters, copied states

  // Profiles the following runs step by step (slower); profile() is of the last run.
  void set_profiling(bool on);
  std::vector<StepProfile> profile() const;
  // Bytes that this session's buffers hold; weights and constants are shared with other sessions of its parameters.
  MemoryNeed memory() const;

  struct Impl;
  explicit Session(std::unique_ptr<Impl> impl);

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace tern
