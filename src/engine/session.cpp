#include "tern/session.h"

#include <algorithm>
#include <deque>
#include <optional>

#include "base/platform/within_memory.h"
#include "engine/executable.h"

namespace tern {
namespace {

std::string shape_text(std::span<const int64_t> shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) text += (i ? ", " : "") + std::to_string(shape[i]);
  return text + "]";
}

// Which symbol got its value from where, for errors that name both sides.
struct Binder {
  const Program& program;
  std::vector<std::optional<int64_t>> values;
  std::vector<std::string> sources;

  explicit Binder(const Program& p) : program(p), values(p.dims->symbols().size()), sources(p.dims->symbols().size()) {}

  Status set(uint32_t symbol, int64_t value, const std::string& source) {
    if (program.dims->symbols()[symbol].late)
      return make_error(Code::invalid, "the size " + program.dims->symbols()[symbol].name +
                                           " is known in mid-run only; " + source + " cannot give it");
    if (values[symbol] && *values[symbol] != value) {
      return make_error(Code::invalid, program.dims->symbols()[symbol].name + " is " + std::to_string(*values[symbol]) +
                                           " by " + sources[symbol] + " and " + std::to_string(value) + " by " +
                                           source);
    }
    values[symbol] = value;
    sources[symbol] = source;
    return ok();
  }
  Status input(const IoDef& io, const TensorView& view) {
    const std::string source = "input '" + io.name + "'";
    if (view.dtype != io.type.dtype || view.format != io.type.format) {
      return make_error(Code::invalid, source + " is " + std::string(dtype_name(view.dtype)) + ", the program wants " +
                                           std::string(dtype_name(io.type.dtype)));
    }
    if (view.shape.size() != io.type.shape.size()) {
      return make_error(Code::invalid, source + " has shape " + shape_text(view.shape) + ", the program wants " +
                                           std::to_string(io.type.shape.size()) + " axes");
    }
    for (size_t axis = 0; axis < view.shape.size(); ++axis) {
      if (view.shape[axis] < 0) return make_error(Code::invalid, source + " has a negative size");
      if (const auto symbol = program.dims->as_symbol(io.type.shape[axis])) {
        TERN_OK(set(*symbol, view.shape[axis], source + " axis " + std::to_string(axis)));
      }
    }
    TERN_TRY(const uint64_t bytes, dense_bytes(view.dtype, view.format, view.shape));
    if (bytes != view.data.size()) {
      return Error{Code::invalid,
                   source + " of shape " + shape_text(view.shape) + " needs " + std::to_string(bytes) +
                       " bytes and has " + std::to_string(view.data.size()),
                   {},
                   bytes,
                   view.data.size()};
    }
    return ok();
  }
  Result<std::vector<int64_t>> finish() const {
    std::vector<int64_t> out;
    for (size_t i = 0; i < values.size(); ++i) {
      const Symbol& s = program.dims->symbols()[i];
      if (!values[i] && !s.late) {
        return make_error(Code::invalid, "no input's shape gives the size " + s.name + "; pass it as a symbol value");
      }
      out.push_back(values[i].value_or(s.max));
    }
    return out;
  }
};

bool is_late(const Program& program, Dim dim) {
  const std::vector<uint32_t> symbols = dim.is_expr() ? program.dims->symbols_of(dim) : std::vector<uint32_t>{};
  return std::any_of(symbols.begin(), symbols.end(), [&](uint32_t s) { return program.dims->symbols()[s].late; });
}

Status check_shape(const Program& program, const std::string& what, const TensorType& type,
                   std::span<const int64_t> shape, std::span<const int64_t> symbols) {
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    if (is_late(program, type.shape[axis])) continue;  // known in mid-run: check_room
    TERN_TRY(const int64_t want, program.dims->eval(type.shape[axis], symbols));
    if (want == shape[axis]) continue;
    return make_error(Code::invalid, what + " has size " + std::to_string(shape[axis]) + " in axis " +
                                         std::to_string(axis) + ", the program wants " +
                                         program.dims->text(type.shape[axis]) + " = " + std::to_string(want));
  }
  return ok();
}

// After the late sizes are known: each axis of the caller's memory has room for what came.
Status check_room(const runtime::Instance& instance, const IoDef& def, std::span<const int64_t> shape) {
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    TERN_TRY(const int64_t came, instance.value(def.type.shape[axis]));
    if (came <= shape[axis]) continue;
    return make_error(Code::limit, "output '" + def.name + "' has " + std::to_string(came) + " elements in axis " +
                                       std::to_string(axis) + ", the view " + std::to_string(shape[axis]));
  }
  return ok();
}

// Waiting for what nobody will do has no end.
Error no_such_ticket(Ticket ticket) {
  return make_error(Code::invalid, "this session gave no ticket " + std::to_string(ticket));
}

}  // namespace

struct Session::Impl {
  std::shared_ptr<const Executable::Impl> exe;
  std::shared_ptr<Params::Impl> params;
  std::unique_ptr<runtime::Instance> instance;
  // The latest submissions: a run, and the last of the transfers behind it, whose ticket stands for both.
  struct Run {
    hal::Ticket run = 0, last = 0;
  };
  static constexpr size_t kRunsKept = 64;
  std::deque<Run> runs;
  Run latest() const { return runs.empty() ? Run() : runs.back(); }
  hal::Ticket run_of(hal::Ticket last) const {
    for (const Run& r : runs) {
      if (r.last == last) return r.run;
    }
    return last;
  }
  bool profiling = false;
  std::vector<hal::StepTiming> timings;
  uint32_t profiled_list = kNone;
  bool ran = false;
  uint64_t prepared_for = 0;  // Params::Impl::changes at the last prepare
  CancelToken token;          // keeps the flag of the run in flight alive

  const Program& program() const { return exe->loaded->program; }
  // For the transfers too where the run failed: until they are done they write where they were told to. The run's own
  // failure counts.
  Status wait(hal::Ticket last) {
    Status a = instance->queue().wait(run_of(last), -1);
    Status b = instance->queue().wait(last, -1);
    return a ? std::move(b) : std::move(a);
  }
  Status wait_all() { return wait(latest().last); }
  Result<const IoDef*> io(IoId id, IoDef::Kind kind) const {
    const auto& all = program().io.io;
    if (id >= all.size())
      return make_error(Code::not_found, "there is no input or output with index " + std::to_string(id));
    if (all[id].kind != kind) {
      return make_error(Code::invalid, "'" + all[id].name + "' is given as an " +
                                           (kind == IoDef::Kind::input ? "input" : "output") + " and is none");
    }
    return &all[id];
  }
  struct StateRows {
    hal::Buffer* buffer;
    uint64_t at, bytes;
  };
  Result<StateRows> state_rows(std::string_view name, int64_t first, int64_t rows) {
    for (const IoDef& def : program().io.io) {
      if (def.kind != IoDef::Kind::state || def.name != name) continue;
      hal::Buffer& buffer = instance->buffer(def.buffers[0]);
      const int64_t all = def.type.shape.empty() ? 1 : def.type.shape[0].constant().value_or(-1);
      if (all < 0)
        return make_error(Code::unsupported,
                          "state '" + def.name + "' has a symbolic first axis; its rows have no fixed place");
      if (first < 0 || rows < 0 || first > all - rows) {
        return make_error(Code::invalid, std::to_string(rows) + " rows from row " + std::to_string(first) +
                                             " on lie outside state '" + def.name + "' with " + std::to_string(all) +
                                             " rows");
      }
      const uint64_t row_bytes = all == 0 ? 0 : buffer.size() / static_cast<uint64_t>(all);
      return StateRows{&buffer, static_cast<uint64_t>(first) * row_bytes, static_cast<uint64_t>(rows) * row_bytes};
    }
    return make_error(Code::not_found, "the program has no state '" + std::string(name) + "'");
  }
  Result<std::vector<int64_t>> bind(std::span<const IoBinding> io_bindings, std::span<const SymbolValue> symbols);
  Status upload(std::span<const IoBinding> io_bindings);
  Status prepare();  // what hangs on parameters alone, where those have changed
  Result<Ticket> submit(std::span<const IoBinding> io_bindings, std::span<const SymbolValue> symbols,
                        const CancelToken* cancel, bool blocking);
};

Session::Session(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&& other) noexcept {
  if (this != &other) {
    if (impl_) (void)impl_->wait_all();
    impl_ = std::move(other.impl_);
  }
  return *this;
}
// A run in flight uses this session's memory.
Session::~Session() {
  if (impl_) (void)impl_->wait_all();
}

Result<std::vector<int64_t>> Session::Impl::bind(std::span<const IoBinding> io_bindings,
                                                 std::span<const SymbolValue> symbols) {
  const Program& p = program();
  Binder binder(p);
  std::vector<bool> given(p.io.io.size());
  for (const IoBinding& b : io_bindings) {
    const bool input = std::holds_alternative<TensorView>(b.data);
    TERN_TRY(const IoDef* def, io(b.id, input ? IoDef::Kind::input : IoDef::Kind::output));
    if (given[b.id]) return make_error(Code::invalid, "'" + def->name + "' is given twice");
    given[b.id] = true;
    if (input) TERN_OK(binder.input(*def, std::get<TensorView>(b.data)));
  }
  for (size_t i = 0; i < p.io.io.size(); ++i) {
    if (p.io.io[i].kind == IoDef::Kind::input && !given[i])
      return make_error(Code::invalid, "input '" + p.io.io[i].name + "' is missing");
  }
  for (const SymbolValue& s : symbols) {
    const auto symbol = p.dims->find_symbol(s.name);
    if (!symbol) return make_error(Code::not_found, "the program has no size symbol '" + s.name + "'");
    TERN_OK(binder.set(*symbol, s.value, "the caller"));
  }
  return binder.finish();
}

Status Session::Impl::upload(std::span<const IoBinding> io_bindings) {
  for (const IoBinding& b : io_bindings) {
    const IoDef& def = program().io.io[b.id];
    if (const auto* view = std::get_if<TensorView>(&b.data)) {
      if (view->data.empty()) continue;
      TERN_TRY(const hal::Ticket ticket, instance->queue().upload(view->data, instance->buffer(def.buffers[0]), 0));
      TERN_OK(instance->queue().wait(ticket, -1));
    }
  }
  return ok();
}

Status Session::Impl::prepare() {
  if (prepared_for == params->changes) return ok();
  TERN_OK(instance->prepare());
  prepared_for = params->changes;
  return ok();
}

Result<Ticket> Session::Impl::submit(std::span<const IoBinding> io_bindings, std::span<const SymbolValue> symbols,
                                     const CancelToken* cancel, bool blocking) {
  (void)wait_all();  // one run at a time: the buffers are this session's own
  TERN_TRY(const std::vector<int64_t> values, bind(io_bindings, symbols));
  TERN_OK(instance->bind(values));
  for (const IoBinding& b : io_bindings) {
    const IoDef& def = program().io.io[b.id];
    if (const auto* view = std::get_if<TensorView>(&b.data)) {
      TERN_OK(check_shape(program(), "input '" + def.name + "'", def.type, view->shape, values));
      continue;
    }
    const auto& out = std::get<MutableView>(b.data);
    if (out.dtype != def.type.dtype || out.shape.size() != def.type.shape.size()) {
      return make_error(Code::invalid, "output '" + def.name + "' is asked for as " +
                                           std::string(dtype_name(out.dtype)) + shape_text(out.shape) +
                                           ", the program gives " + std::string(dtype_name(def.type.dtype)) + " with " +
                                           std::to_string(def.type.shape.size()) + " axes");
    }
    TERN_OK(check_shape(program(), "output '" + def.name + "'", def.type, out.shape, values));
    TERN_TRY(const uint64_t bytes, dense_bytes(out.dtype, nullptr, out.shape));
    if (bytes != out.data.size()) {
      return Error{Code::invalid,
                   "output '" + def.name + "' needs " + std::to_string(bytes) + " bytes and the view has " +
                       std::to_string(out.data.size()),
                   {},
                   bytes,
                   out.data.size()};
    }
  }
  TERN_OK(prepare());
  TERN_OK(upload(io_bindings));
  if (cancel != nullptr) token = *cancel;
  hal::SubmitOptions options;
  options.cancel = cancel != nullptr ? token.flag() : nullptr;
  options.profile = profiling ? &timings : nullptr;
  options.blocking = blocking;
  profiled_list = instance->bound_list();
  TERN_TRY(const hal::Ticket run, instance->submit(options));
  runs.push_back({run, run});
  if (runs.size() > kRunsKept) runs.pop_front();
  ran = true;
  for (const IoBinding& b : io_bindings) {
    if (const auto* out = std::get_if<MutableView>(&b.data)) {
      const IoDef& def = program().io.io[b.id];
      TERN_OK(check_room(*instance, def, out->shape));
      const std::span<std::byte> to =
          out->data.first(std::min<size_t>(out->data.size(), instance->bytes(def.buffers[0])));
      if (to.empty()) continue;
      TERN_TRY(runs.back().last, instance->queue().download(instance->buffer(def.buffers[0]), 0, to));
    }
  }
  return runs.back().last;
}

Result<Ticket> Session::submit(std::span<const IoBinding> io, std::span<const SymbolValue> symbols,
                               const CancelToken* cancel) try {
  return impl_->submit(io, symbols, cancel, false);
} catch (const std::bad_alloc&) {
  return memory_ended();
}

Status Session::run(std::span<const IoBinding> io, std::span<const SymbolValue> symbols,
                    const CancelToken* cancel) try {
  TERN_OK(impl_->submit(io, symbols, cancel, true));
  return impl_->wait_all();
} catch (const std::bad_alloc&) {
  return memory_ended();
}

Status Session::wait(Ticket ticket) {
  if (ticket > impl_->latest().last) return no_such_ticket(ticket);
  return impl_->wait(ticket);
}

void Session::then(Ticket ticket, std::function<void(Status)> done) {
  if (ticket > impl_->latest().last) return done(no_such_ticket(ticket));
  hal::Queue& queue = impl_->instance->queue();
  const hal::Ticket run = impl_->run_of(ticket);
  // The run's own failure counts, not that of the transfers behind it.
  queue.then(ticket, [&queue, run, done = std::move(done)](Status last) {
    Status first = queue.wait(run, 0);
    done(first ? std::move(last) : std::move(first));
  });
}

Result<std::vector<int64_t>> Session::shape(IoId output) const {
  TERN_TRY(const IoDef* def, impl_->io(output, IoDef::Kind::output));
  if (!impl_->ran) return make_error(Code::invalid, "nothing has run yet");
  std::vector<int64_t> shape;
  for (const Dim d : def->type.shape) {
    TERN_TRY(const int64_t n, impl_->instance->value(d));
    shape.push_back(n);
  }
  return shape;
}

Status Session::read(std::string_view state, int64_t first_row, int64_t rows, std::span<std::byte> to) {
  (void)impl_->wait_all();
  TERN_TRY(const Impl::StateRows r, impl_->state_rows(state, first_row, rows));
  if (to.size() != r.bytes)
    return Error{Code::invalid, "these rows of '" + std::string(state) + "' have another size", {}, r.bytes, to.size()};
  TERN_TRY(const hal::Ticket ticket, impl_->instance->queue().download(*r.buffer, r.at, to));
  return impl_->instance->queue().wait(ticket, -1);
}

Status Session::write(std::string_view state, int64_t first_row, int64_t rows, std::span<const std::byte> from) {
  (void)impl_->wait_all();
  TERN_TRY(const Impl::StateRows r, impl_->state_rows(state, first_row, rows));
  if (from.size() != r.bytes)
    return Error{
        Code::invalid, "these rows of '" + std::string(state) + "' have another size", {}, r.bytes, from.size()};
  TERN_TRY(const hal::Ticket ticket, impl_->instance->queue().upload(from, *r.buffer, r.at));
  return impl_->instance->queue().wait(ticket, -1);
}

Status Session::copy_rows(std::string_view state, int64_t first_row, int64_t rows, Session& from,
                          std::string_view from_state, int64_t from_row) try {
  (void)impl_->wait_all();
  (void)from.impl_->wait_all();
  TERN_TRY(const Impl::StateRows to, impl_->state_rows(state, first_row, rows));
  TERN_TRY(const Impl::StateRows source, from.impl_->state_rows(from_state, from_row, rows));
  if (to.bytes != source.bytes) {
    return Error{Code::invalid,
                 "rows of '" + std::string(from_state) + "' and '" + std::string(state) + "' differ in size",
                 {},
                 to.bytes,
                 source.bytes};
  }
  if (impl_->exe->loaded->device != from.impl_->exe->loaded->device) {
    std::vector<std::byte> rows_data(source.bytes);
    TERN_OK(from.read(from_state, from_row, rows, rows_data));
    return write(state, first_row, rows, rows_data);
  }
  TERN_TRY(const hal::Ticket ticket,
           impl_->instance->queue().copy(*source.buffer, source.at, *to.buffer, to.at, to.bytes));
  return impl_->instance->queue().wait(ticket, -1);
} catch (const std::bad_alloc&) {
  return memory_ended();
}

Status Session::reset_states() {
  (void)impl_->wait_all();
  for (const IoDef& def : impl_->program().io.io) {
    if (def.kind == IoDef::Kind::state) TERN_OK(impl_->instance->zero(def.buffers[0]));
  }
  return ok();
}

Result<std::span<std::byte>> Session::map(std::string_view state) {
  (void)impl_->wait_all();
  TERN_TRY(const Impl::StateRows r, impl_->state_rows(state, 0, 0));
  const std::span<std::byte> host = r.buffer->host();
  if (host.empty() && r.buffer->size() != 0) {
    return make_error(Code::unsupported,
                      "this device's memory is not visible to the host; use read() and write() for state '" +
                          std::string(state) + "'");
  }
  return host;
}

Result<StateSnapshot> Session::snapshot() try {
  (void)impl_->wait_all();
  StateSnapshot out;
  for (const IoDef& def : impl_->program().io.io) {
    if (def.kind != IoDef::Kind::state) continue;
    hal::Buffer& buffer = impl_->instance->buffer(def.buffers[0]);
    std::vector<std::byte> data(buffer.size());
    TERN_TRY(const hal::Ticket ticket, impl_->instance->queue().download(buffer, 0, data));
    TERN_OK(impl_->instance->queue().wait(ticket, -1));
    out.emplace_back(def.name, std::move(data));
  }
  return out;
} catch (const std::bad_alloc&) {
  return memory_ended();
}

Status Session::restore(const StateSnapshot& snapshot) try {
  (void)impl_->wait_all();
  for (const IoDef& def : impl_->program().io.io) {
    if (def.kind != IoDef::Kind::state) continue;
    const auto it = std::find_if(snapshot.begin(), snapshot.end(), [&](const auto& s) { return s.first == def.name; });
    hal::Buffer& buffer = impl_->instance->buffer(def.buffers[0]);
    if (it == snapshot.end() || it->second.size() != buffer.size()) {
      return make_error(Code::invalid,
                        "the snapshot does not hold state '" + def.name + "' in this size; it is of another program");
    }
  }
  for (const IoDef& def : impl_->program().io.io) {
    if (def.kind != IoDef::Kind::state) continue;
    const auto it = std::find_if(snapshot.begin(), snapshot.end(), [&](const auto& s) { return s.first == def.name; });
    TERN_TRY(const hal::Ticket ticket,
             impl_->instance->queue().upload(it->second, impl_->instance->buffer(def.buffers[0]), 0));
    TERN_OK(impl_->instance->queue().wait(ticket, -1));
  }
  return ok();
} catch (const std::bad_alloc&) {
  return memory_ended();
}

Result<Session> Session::clone() try {
  (void)impl_->wait_all();
  TERN_TRY(Session other, Executable(impl_->exe).open(Params(impl_->params)));
  for (const IoDef& def : impl_->program().io.io) {
    if (def.kind != IoDef::Kind::state) continue;
    hal::Buffer& from = impl_->instance->buffer(def.buffers[0]);
    TERN_TRY(const hal::Ticket ticket, other.impl_->instance->queue().copy(
                                           from, 0, other.impl_->instance->buffer(def.buffers[0]), 0, from.size()));
    TERN_OK(other.impl_->instance->queue().wait(ticket, -1));
  }
  return other;
} catch (const std::bad_alloc&) {
  return memory_ended();
}

void Session::set_profiling(bool on) { impl_->profiling = on; }

std::vector<StepProfile> Session::profile() const {
  std::vector<StepProfile> out;
  if (impl_->profiled_list == kNone) return out;
  const Program& p = impl_->program();
  const std::vector<Step>& steps = p.lists[impl_->profiled_list];
  for (const hal::StepTiming& t : impl_->timings) {
    const Step& step = steps[t.step];
    StepProfile s{step.label, {}, t.seconds, 0, 0, {}, {}, {}};
    if (const auto* launch = std::get_if<Launch>(&step.what)) s.kernel = p.kernels[launch->kernel].name;
    for (const Choice& c : p.choices) {
      if (c.problem != step.problem || step.problem == kNone) continue;
      s.bytes = c.bytes, s.flop = c.flop, s.candidate = c.candidate, s.variant = c.variant;
      s.problem = problem_text(p.problems[step.problem], *p.dims);
    }
    out.push_back(std::move(s));
  }
  return out;
}

MemoryNeed Session::memory() const {
  const runtime::Sizes held = impl_->instance->held();
  return {Params(impl_->params).bytes(), held.state, held.scratch, held.io};
}

Result<Session> Executable::open(const Params& params) const try {
  const std::vector<std::string> missing = params.missing();
  if (!missing.empty()) {
    return make_error(Code::invalid,
                      "parameter '" + missing[0] + "' has no value" +
                          (missing.size() > 1 ? " (and " + std::to_string(missing.size() - 1) + " more)" : "") +
                          "; set or load it before opening a session");
  }
  if (params.impl()->loaded != impl_->loaded)
    return make_error(Code::invalid, "these parameters were made by another executable");
  auto session = std::make_unique<Session::Impl>();
  session->exe = impl_;
  session->params = params.impl();
  TERN_TRY(session->instance, runtime::Instance::open(impl_->loaded, params.impl()->buffers));
  TERN_OK(session->instance->prepare());
  session->prepared_for = params.impl()->changes;
  return Session(std::move(session));
} catch (const std::bad_alloc&) {
  return memory_ended();
}

}  // namespace tern
