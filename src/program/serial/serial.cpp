// magic, version, symbols, dims as text (in order of first use), then the Program.
#include "program/serial/fields.h"

namespace tern {
namespace {

constexpr uint64_t kMagic = 0x474f52504e524554;  // "TERNPROG"
constexpr uint64_t kVersion = 6;

Status within(uint64_t id, size_t count, const char* what) {
  if (id == kNone || id < count) return ok();
  return make_error(Code::malformed,
                    "serial program: " + std::string(what) + " " + std::to_string(id) + " of " + std::to_string(count));
}

Status needed(uint64_t id, size_t count, const char* what) {
  if (id < count) return ok();
  return make_error(Code::malformed,
                    "serial program: " + std::string(what) + " " + std::to_string(id) + " of " + std::to_string(count));
}

Status check_step(const Program& p, const Step& step) {
  TERN_OK(within(step.problem, p.problems.size(), "problem"));
  for (const Use& use : step.uses) TERN_OK(needed(use.ref.id, p.buffers.size(), "buffer"));
  if (const auto* l = std::get_if<Launch>(&step.what)) {
    TERN_OK(needed(l->kernel, p.kernels.size(), "kernel"));
    const Signature& sig = p.kernels[l->kernel].sig;
    if (sig.bindings.size() != step.uses.size() || sig.scalars != l->scalars.size()) {
      return make_error(Code::malformed,
                        "serial program: a launch does not fit the signature of '" + p.kernels[l->kernel].name + "'");
    }
  }
  const bool copy = std::holds_alternative<Copy>(step.what);
  const bool one = std::holds_alternative<Fill>(step.what) || std::holds_alternative<Bind>(step.what) ||
                   std::holds_alternative<Branch>(step.what);
  if (step.uses.size() < (copy ? 2u : one ? 1u : 0u))
    return make_error(Code::malformed, "serial program: a step lacks its uses");
  if (const auto* b = std::get_if<Bind>(&step.what))
    TERN_OK(needed(b->late_symbol, p.dims->symbols().size(), "symbol"));
  if (const auto* b = std::get_if<Branch>(&step.what)) {
    TERN_OK(within(b->then_list, p.lists.size(), "list"));
    TERN_OK(within(b->else_list, p.lists.size(), "list"));
  }
  if (const auto* l = std::get_if<Loop>(&step.what)) TERN_OK(needed(l->body_list, p.lists.size(), "list"));
  return ok();
}

Status check_problem(const Program& p, const Problem& problem) {
  const auto expr = [&](const ScalarExpr& e) -> Status {
    for (const ScalarExpr::Load& l : e.loads) TERN_OK(needed(l.operand, problem.operands.size(), "operand"));
    return ok();
  };
  for (size_t i = 0; i < problem.operands.size(); ++i) {
    const uint16_t alias = problem.operands[i].alias;
    if (alias != kNoAlias && alias >= i)
      return make_error(Code::malformed, "serial program: an operand is the alias of a later one");
  }
  TERN_OK(expr(problem.prologue));
  for (const Part& part : problem.parts) {
    TERN_OK(expr(part.epilogue));
    for (const uint16_t w : part.weights) TERN_OK(needed(w, problem.operands.size(), "operand"));
    for (const Output& o : part.outs) TERN_OK(needed(o.operand, problem.operands.size(), "operand"));
  }
  for (const Bound& b : problem.bounds) TERN_OK(needed(b.symbol, p.dims->symbols().size(), "symbol"));
  if (problem.desc.index() != static_cast<size_t>(problem.family))
    return make_error(Code::malformed, "serial program: a problem of two families");
  return ok();
}

// Every id is within its table, so that whoever runs the Program need not ask again.
Status check_ids(const Program& p) {
  for (const Problem& problem : p.problems) TERN_OK(check_problem(p, problem));
  for (const KernelDef& k : p.kernels) TERN_OK(within(k.problem, p.problems.size(), "problem"));
  for (const Choice& c : p.choices) TERN_OK(needed(c.problem, p.problems.size(), "problem"));
  for (const auto& list : p.lists) {
    for (const Step& step : list) TERN_OK(check_step(p, step));
  }
  for (const RangeDef& r : p.ranges) {
    TERN_OK(needed(r.list, p.lists.size(), "list"));
    for (const uint32_t part : r.parts) TERN_OK(needed(part, p.lists.size(), "list"));
    for (const Bound& b : r.when) TERN_OK(needed(b.symbol, p.dims->symbols().size(), "symbol"));
  }
  TERN_OK(within(p.prepare_list, p.lists.size(), "list"));
  for (const IoDef& io : p.io.io) {
    if (io.kind != IoDef::Kind::param && io.buffers.size() != 1)
      return make_error(Code::malformed, "serial program: '" + io.name + "' wants one buffer");
    for (const BufferId b : io.buffers) TERN_OK(needed(b, p.buffers.size(), "buffer"));
  }
  for (const ConstantDef& c : p.constants) {
    TERN_OK(needed(c.buffer, p.buffers.size(), "buffer"));
    TERN_TRY(const uint64_t bytes, dense_bytes(c.value.dtype, nullptr, c.value.shape));
    if (bytes != c.value.data->size())
      return make_error(Code::malformed, "serial program: a constant has other bytes than its shape says");
  }
  return ok();
}

void symbols(serial::Reader& r, DimTable& dims) {
  const size_t n = r.count();
  for (size_t i = 0; i < n && !r.failed(); ++i) {
    Symbol s;
    r.text(s.name), r.integer(s.min), r.integer(s.max), r.integer(s.multiple), r.flag(s.late);
    if (r.failed()) return;
    if (auto d = dims.symbol(s); !d) return r.fail(d.error().text);
    if (dims.symbols().size() != i + 1) return r.fail("symbol '" + s.name + "' stands twice");
  }
}

}  // namespace

std::vector<std::byte> serialize(const Program& program) {
  serial::Writer body;
  serial::put(body, program);
  serial::Writer head;
  head.number(kMagic), head.number(kVersion);
  head.list(program.dims->symbols(), [&](const Symbol& s) {
    head.text(s.name), head.signed_number(s.min), head.signed_number(s.max), head.signed_number(s.multiple),
        head.flag(s.late);
  });
  head.list(body.dims(), [&](const Dim& d) { head.text(program.dims->text(d)); });
  head.out().insert(head.out().end(), body.out().begin(), body.out().end());
  return std::move(head.out());
}

Result<Program> deserialize_program(std::span<const std::byte> bytes) {
  serial::Reader r(bytes);
  if (r.number() != kMagic || r.failed()) return make_error(Code::malformed, "not a serial program");
  if (const uint64_t version = r.number(); version != kVersion) {
    return make_error(Code::unsupported, "serial program of version " + std::to_string(version) +
                                             ", this build reads " + std::to_string(kVersion));
  }
  Program p;
  p.dims = std::make_shared<DimTable>();
  symbols(r, *p.dims);
  for (size_t i = 0, n = r.count(); i < n && !r.failed(); ++i) {
    const std::string text = r.name();
    if (r.failed()) break;
    auto d = p.dims->parse(text);
    if (!d)
      r.fail("dim '" + text + "': " + d.error().text);
    else
      r.dims.push_back(*d);
  }
  if (!r.failed()) serial::put(r, p);
  if (!r.failed() && !r.at_end()) r.fail("bytes are left over");
  if (r.failed()) return r.error();
  TERN_OK(check_ids(p));
  return p;
}

}  // namespace tern
