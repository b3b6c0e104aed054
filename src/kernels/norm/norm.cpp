// norm: one row a workgroup of 32 lanes; rms, layer, softmax and log_softmax, with an epilogue, as dense rows and as
// int8 blocks. A row is read two or three times; it stays in the first cache. The order of a row's sums depends on its
// length alone.
#include <algorithm>
#include <limits>

#include "kernels/common/blocks.h"
#include "kernels/common/expr.h"

namespace tern {

namespace kernels {
namespace {

using kir::V;
using kir::Var;

constexpr int kSums = 4;         // accumulators of a lane
constexpr int64_t kShort = 256;  // columns

class Row {
 public:
  Row(Launcher& l, const Problem& p)
      : l_(l),
        p_(p),
        desc_(std::get<NormDesc>(p.desc)),
        row_(kir::group()),
        columns_(row_size(p.extent[1])),
        lanes_(static_cast<int>(l.b().lanes())) {
    const int x = find_role(p, Role::x);
    const auto type =
        x < 0 ? Result<kir::Type>(kir::f32) : kir::value_type(p.operands[static_cast<size_t>(x)].type.dtype);
    type_ = type && *type == kir::f64 ? kir::f64 : kir::f32;
  }

  // Calls f(accumulator, column) for every column of this lane.
  void each(const std::function<void(int, V)>& f) {
    const auto known = p_.extent[1].constant();
    const int sums = known && *known < int64_t{lanes_} * kSums ? 1 : kSums;
    const bool exact = known && *known % (int64_t{lanes_} * sums) == 0;
    kir::For(0, row_size(l_.dims().ceildiv(p_.extent[1], int64_t{lanes_} * sums)), [&](V i) {
      for (int u = 0; u < sums; ++u) {
        const V c = (i * sums + u) * lanes_ + kir::lane();
        if (exact)
          f(u, c);
        else
          kir::If(c < columns_, [&] { f(u, c); });
      }
    });
  }

  V x(V column) {
    if (!p_.prologue.empty()) {
      const V axes[2] = {row_, column};
      ExprInputs in;
      in.axes = axes;
      in.lane_axes = 1;
      return convert(emit_expr(l_, p_.prologue, in).back(), type_);
    }
    return convert(l_.operand(static_cast<uint16_t>(find_role(p_, Role::x)))[row_ * columns_ + column], type_);
  }

  V add(const std::function<V(V)>& term) {
    std::vector<Var> sums;
    for (int u = 0; u < kSums; ++u) sums.push_back(kir::var(type_, kir::constant(type_, 0)));
    each([&](int u, V c) { sums[static_cast<size_t>(u)].set(sums[static_cast<size_t>(u)].get() + term(c)); });
    return kir::wg_add(kir::sum(sums));
  }
  V largest_of() {
    const Var most = kir::var(type_, kir::constant(type_, -std::numeric_limits<double>::infinity()));
    each([&](int, V c) { most.set(kir::max(x(c), most.get())); });
    return kir::wg_max(most.get());
  }

  // What the row is normalised with; element() applies it.
  void statistics() {
    const V n = kir::cast(type_, columns_);
    switch (desc_.kind) {
      case NormKind::rms:
        scale_ = number(1) / kir::sqrt(add([&](V c) { return x(c) * x(c); }) / n + number(desc_.eps));
        break;
      case NormKind::layer: {
        shift_ = add([&](V c) { return x(c); }) / n;
        const V variance = add([&](V c) { return (x(c) - shift_) * (x(c) - shift_); }) / n;
        scale_ = number(1) / kir::sqrt(variance + number(desc_.eps));
        break;
      }
      case NormKind::softmax:
      case NormKind::log_softmax: {
        shift_ = largest_of();
        const V total = add([&](V c) { return kir::exp(x(c) - shift_); });
        if (desc_.kind == NormKind::softmax)
          scale_ = number(1) / total;
        else
          scale_ = kir::log(total);
        break;
      }
    }
  }

  V element(V column) {
    const V v = x(column);
    switch (desc_.kind) {
      case NormKind::softmax: return kir::exp(v - shift_) * scale_;
      case NormKind::log_softmax: return v - shift_ - scale_;
      default: break;
    }
    V out = (desc_.kind == NormKind::layer ? v - shift_ : v) * scale_;
    if (const int w = find_role(p_, Role::weight); w >= 0)
      out = out * convert(l_.operand(static_cast<uint16_t>(w))[column], type_);
    if (const int b = find_role(p_, Role::bias); b >= 0)
      out = out + convert(l_.operand(static_cast<uint16_t>(b))[column], type_);
    return out;
  }

  void write(const kir::Shared& staging) {
    const Part& part = p_.parts[0];
    const int lanes = lanes_;
    const bool whole = l_.dims().divisible(p_.extent[1], lanes).value_or(false);
    kir::For(0, row_size(l_.dims().ceildiv(p_.extent[1], lanes)), [&](V block) {
      const V column = block * lanes + kir::lane();
      auto body = [&] {
        const V axes[2] = {row_, column};
        std::vector<V> values = {element(column)};
        if (!part.epilogue.empty()) {
          ExprInputs in;
          in.axes = axes;
          in.lane_axes = 1;
          const V acc = values[0];
          in.accumulator = [acc](uint16_t) { return acc; };
          values = emit_expr(l_, part.epilogue, in);
        }
        for (const Output& o : part.outs) {
          const V v = values[part.epilogue.empty() ? 0 : o.result];
          if (p_.operands[o.operand].layout.def == &kActInt8) {
            store_block(l_, o.operand, row_, columns_, block, convert(v, kir::f32), staging);
          } else {
            const kir::Buffer y = l_.operand(o.operand);
            const IndexMap map = map_or_dense(l_.dims(), o.map, p_.extent);
            y.store(map_index(l_, map, axes, 1), convert(v, kir::type_info(y.type()).loaded));
          }
        }
      };
      if (whole)
        body();
      else
        kir::If(column < columns_, body);
    });
  }

 private:
  // Rows as short as a head are part of the kernel, longer ones arguments.
  V row_size(Dim d, Launcher::Place place = Launcher::Place::current()) {
    const auto known = p_.extent[1].constant();
    return known && *known <= kShort ? l_.size(d, place) : l_.argument(d, place);
  }
  V number(double v) { return kir::constant(type_, v); }

  Launcher& l_;
  const Problem& p_;
  const NormDesc& desc_;
  V row_, columns_, shift_, scale_;
  int lanes_;
  kir::Type type_ = kir::f32;
};

bool writes_blocks(const Problem& p) {
  return std::any_of(p.operands.begin(), p.operands.end(), [](const Operand& o) { return o.layout.def == &kActInt8; });
}

Status build_norm(const Problem& problem, const Bid&, BuildCtx& ctx) {
  Launcher l(ctx, problem, "norm", floor_power_of_two(std::min<uint32_t>(kBlock, ctx.asked.caps.max_lanes)));
  const kir::Shared staging = writes_blocks(problem) ? block_staging() : kir::Shared();
  Row row(l, problem);
  row.statistics();
  row.write(staging);
  return l.launch(problem.extent[0]);
}

OrRefuse<std::vector<Bid>> bid_norm(const Problem& problem, const Asked& asked) {
  if (problem.extent.size() != 2 || problem.parts.size() != 1 || problem.parts[0].outs.empty())
    return refuse("wants rows, columns and outputs");
  if (find_role(problem, Role::x) < 0 && problem.prologue.empty()) return refuse("has nothing to read");
  Bid bid;
  for (size_t i = 0; i < problem.operands.size(); ++i) {
    const Operand& o = problem.operands[i];
    const bool blocks = o.access != Access::read && o.layout.def == &kActInt8;
    if (blocks && !asked.dims.divisible(problem.extent[1], kBlock).value_or(false))
      return refuse("rows are no whole blocks of 32");
    if (blocks && asked.caps.max_lanes < kBlock) return refuse("blocks want 32 lanes");
    if (!blocks && !is_dense(o.layout))
      return refuse("operand " + std::to_string(i) + " lies as " + std::string(o.layout.def->name));
    if (o.type.format) return refuse("reads no blocks of " + std::string(o.type.format->name));
    if (o.access != Access::read && !blocks && dtype_bytes(o.type.dtype) < 4 && !asked.caps.f16_storage)
      return refuse("the device stores no halves");
    bid.layouts.push_back(blocks ? o.layout : Layout{&kDense, {}});
  }
  for (const Output& o : problem.parts[0].outs) {
    if (o.kind != Output::Kind::map) return refuse("writes no row statistics");
  }
  TERN_ACCEPT(Unit fit, check_bindings(problem, bid.layouts, asked));
  TERN_ACCEPT(fit, check_expr(problem.parts[0].epilogue, asked.caps));
  TERN_ACCEPT(fit, check_expr(problem.prologue, asked.caps));
  const auto& desc = std::get<NormDesc>(problem.desc);
  bid.numerics = numerics_tag("norm 1", {static_cast<int64_t>(desc.kind)}, asked.caps);
  for (size_t i = 0; i < bid.layouts.size(); ++i)
    bid.bytes += bytes_of(problem.operands[i], bid.layouts[i], problem, asked);
  bid.flop = largest(asked, problem, problem.extent[0]) * largest(asked, problem, problem.extent[1]) * 6;
  bid.seconds =
      asked.caps.launch_s + std::max(bid.bytes / asked.caps.read_bytes_per_s, bid.flop / asked.caps.flop_per_s);
  return std::vector<Bid>{bid};
}

}  // namespace
}  // namespace kernels

extern const Candidate kNormKernel;
const Candidate kNormKernel = {"norm", Family::norm, kernels::bid_norm, kernels::build_norm};

}  // namespace tern
