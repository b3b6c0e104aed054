#include "machine.h"

#include <algorithm>
#include <cstring>

#include "graph/reference.h"
#include "interpret.h"

namespace tern::test {
namespace {

int asked_ = 0;

bool dense(const Layout& l) { return !l || l.def == &kDense; }

OrRefuse<std::vector<Bid>> bid(const Problem& p, const Asked& asked, bool int8, std::string_view name) {
  ++asked_;
  if (p.operands.size() > asked.caps.max_bindings) return refuse("too many operands");
  Bid b;
  for (const Operand& o : p.operands) {
    const bool blocks =
        int8 ? (o.role == Role::x && o.access == Access::read) : o.access == Access::write && o.layout.def == &kActInt8;
    if (blocks) {
      if (auto bytes = kActInt8.bytes(asked.dims, o.type, {}); !bytes) return refuse(bytes.why());
      if (o.layout && o.layout.def != &kActInt8) return refuse("reads int8 blocks");
      b.layouts.push_back({&kActInt8, {}});
    } else if (o.access == Access::write && o.layout.def == &kActInt8) {
      b.layouts.push_back(o.layout);
    } else {
      if (!dense(o.layout)) return refuse("wants dense");
      b.layouts.push_back({&kDense, {}});
    }
  }
  b.numerics = Hasher().text(name).done();
  b.seconds = int8 ? 1e-6 : 2e-6;
  return std::vector<Bid>{b};
}

template <Family F>
OrRefuse<std::vector<Bid>> plain_bid(const Problem& p, const Asked& a) {
  return bid(p, a, false, family_name(F));
}
OrRefuse<std::vector<Bid>> int8_bid(const Problem& p, const Asked& a) {
  if (p.policy.precise) return refuse("the policy is precise");
  return bid(p, a, true, "int8");
}
OrRefuse<std::vector<Bid>> convert_bid(const Problem& p, const Asked& a) {
  if (p.operands[1].layout && p.operands[1].layout.def != &kActInt8) return refuse("writes int8 blocks");
  return bid(p, a, false, "convert");
}

// One launch of a kernel that the Problem says all about.
Status build(const Problem& p, const Bid& b, BuildCtx& ctx) {
  KernelDef def;
  def.name = "paper";
  def.kind = KernelDef::Kind::native;
  def.hash = problem_hash(p, ctx.asked.dims, true);
  Step step;
  for (uint16_t i = 0; i < p.operands.size(); ++i) {
    if (p.operands[i].layout != b.layouts[i]) return make_error(Code::internal, "layouts differ from the bid's");
    step.uses.push_back(ctx.whole(i));
    def.sig.bindings.push_back(p.operands[i].access);
  }
  step.what = Launch{ctx.kernel(std::move(def)), 1, {}};
  ctx.step(std::move(step));
  return ok();
}

constexpr Candidate kPlain[] = {
    {"paper", Family::region, plain_bid<Family::region>, build},
    {"paper", Family::reduce, plain_bid<Family::reduce>, build},
    {"paper", Family::arg_reduce, plain_bid<Family::arg_reduce>, build},
    {"paper", Family::norm, plain_bid<Family::norm>, build},
    {"paper", Family::matmul, plain_bid<Family::matmul>, build},
    {"paper", Family::gather, plain_bid<Family::gather>, build},
    {"paper", Family::store, plain_bid<Family::store>, build},
    {"paper", Family::attention, plain_bid<Family::attention>, build},
    {"paper", Family::sample, plain_bid<Family::sample>, build},
};

}  // namespace

std::span<const Candidate> plain_candidates() { return kPlain; }
std::span<const Candidate> int8_candidates() {
  static const std::vector<Candidate> kAll = [] {
    std::vector<Candidate> all(std::begin(kPlain), std::end(kPlain));
    all.push_back({"paper.int8", Family::matmul, int8_bid, build});
    all.push_back({"paper.blocks", Family::convert, convert_bid, build});
    return all;
  }();
  return kAll;
}
int asked() { return std::exchange(asked_, 0); }

Status Machine::set(std::string_view name, const RefTensor& value) {
  for (const IoDef& io : program.io.io) {
    if (io.name != name || io.kind == IoDef::Kind::output) continue;
    for (const BufferId id : io.buffers) {
      auto& bytes = own[id];
      bytes.assign((static_cast<size_t>(value.size()) * dtype_bytes(value.dtype) + 3) / 4 * 4, std::byte{0});
      TERN_OK(ref_store(value, {value.dtype, value.shape,
                                std::span(bytes).first(static_cast<size_t>(value.size()) * dtype_bytes(value.dtype))}));
    }
    return ok();
  }
  return make_error(Code::not_found, "no '" + std::string(name) + "'");
}

Result<RefTensor> Machine::get(std::string_view name, std::span<const int64_t> symbols) const {
  for (const IoDef& io : program.io.io) {
    if (io.name != name || (io.kind != IoDef::Kind::output && io.kind != IoDef::Kind::state)) continue;
    TensorView view{io.type.dtype, {}, {}, nullptr};
    int64_t n = dtype_bytes(io.type.dtype);
    for (const Dim d : io.type.shape) {
      TERN_TRY(const int64_t e, program.dims->eval(d, symbols));
      view.shape.push_back(e), n *= e;
    }
    view.data = std::span(own.at(io.buffers[0])).first(static_cast<size_t>(n));
    return ref_from(view);
  }
  return make_error(Code::not_found, "no '" + std::string(name) + "'");
}

size_t Machine::range_of(std::span<const int64_t> symbols) const {
  for (size_t r = 0; r < program.ranges.size(); ++r) {
    const Bounds& when = program.ranges[r].when;
    if (std::all_of(when.begin(), when.end(),
                    [&](const Bound& b) { return symbols[b.symbol] >= b.min && symbols[b.symbol] <= b.max; }))
      return r;
  }
  return program.ranges.size();
}

Status Machine::run(std::span<const int64_t> symbols) {
  for (const ConstantDef& c : program.constants) {
    own[c.buffer] = *c.value.data;
    own[c.buffer].resize((own[c.buffer].size() + 3) / 4 * 4);
  }
  TERN_OK(prepare());
  return run_list(program.ranges[range_of(symbols)].list, symbols);
}

Status Machine::prepare() {
  if (program.prepare_list == kNone) return ok();
  std::vector<int64_t> top;
  for (const Symbol& s : program.dims->symbols()) top.push_back(s.max);
  return run_list(program.prepare_list, top);
}

Status Machine::run_list(uint32_t list, std::span<const int64_t> symbols) {
  std::vector<uint64_t> sizes;  // exact, so that what reaches further is found out
  for (const BufferDef& def : program.buffers) {
    TERN_TRY(const int64_t size, program.dims->eval(def.bytes, symbols));
    sizes.push_back(static_cast<uint64_t>(size));
  }
  TERN_TRY(const MemoryPlan plan, plan_memory(program, list, std::move(sizes)));
  TERN_OK(check_memory(program, list, plan, symbols));
  std::vector<std::byte> arena(plan.arena, std::byte{0xff});  // NaN in every float
  std::vector<const Step*> order;
  for (const Step& s : program.lists[list]) order.push_back(&s);
  std::shuffle(order.begin(), order.end(), rng);
  std::stable_sort(order.begin(), order.end(), [](const Step* a, const Step* b) { return a->phase < b->phase; });
  const auto memory = [&](BufferId id) {
    if (program.buffers[id].origin == Origin::temp) return arena.data() + plan.offset[id];
    own[id].resize(std::max<size_t>(own[id].size(), plan.bytes[id]));
    return own[id].data();
  };
  for (const Step* s : order) {
    std::vector<std::byte*> at;
    for (const Use& u : s->uses) {
      TERN_TRY(const int64_t offset, program.dims->eval(u.ref.offset, symbols));
      at.push_back(memory(u.ref.id) + offset);
    }
    if (const auto* launch = std::get_if<Launch>(&s->what)) {
      TERN_OK(interpret(program.problems[program.kernels[launch->kernel].problem], *program.dims, symbols, at));
    } else {
      TERN_TRY(const int64_t bytes, program.dims->eval(s->uses[1].ref.bytes, symbols));
      std::memcpy(at[1], at[0], static_cast<size_t>(bytes));
    }
  }
  return ok();
}

}  // namespace tern::test
