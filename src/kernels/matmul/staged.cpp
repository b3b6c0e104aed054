// Matmul of dense operands with many rows: a block of the weight is brought into workgroup memory, [k][32 columns], and
// used for a panel of rows of x. That makes one contiguous stream of a weight whose rows are pages apart, and turns one
// that lies along k. Sums are the same chains as in lanes.cpp, k ascending, so rows are bit-equal to its.
#include <algorithm>
#include <cmath>

#include "kernels/matmul/outputs.h"

namespace tern {

namespace kernels {
namespace {

using kir::V;
using kir::Var;

constexpr int kLanes = 32;  // columns of a workgroup

struct Sizes {
  int tokens = 8;   // rows whose sums are in registers
  int panel = 128;  // rows of a workgroup
  int block = 128;  // k of a staged block
};

Sizes sizes_for(const Caps& caps) {
  Sizes s;
  s.tokens = caps.lanes >= 16 ? 8 : 2;
  // The block and the panel's sums share the workgroup's memory (and a CPU's first cache); some is left for int8
  // blocks.
  while (s.block > 32 && static_cast<uint32_t>((s.block + s.panel + 8) * kLanes * 4) > caps.workgroup_bytes) {
    s.block /= 2, s.panel /= 2;
  }
  return s;
}

class Staged {
 public:
  Staged(Launcher& l, const Part& part, Sizes s)
      : l_(l),
        p_(l.problem()),
        part_(part),
        s_(s),
        desc_(std::get<MatmulDesc>(p_.desc)),
        x_(static_cast<uint16_t>(find_role(p_, Role::x))) {
    tile_ = kir::shared("tile", kir::f32, static_cast<uint32_t>(s_.block * kLanes));
    sums_ = kir::shared("sums", kir::f32, static_cast<uint32_t>(s_.panel * kLanes));
    if (writes_blocks(part, p_)) staging_ = block_staging();
  }

  Dim groups() {
    DimTable& d = l_.dims();
    return d.mul(p_.extent[0], d.mul(d.ceildiv(p_.extent[1], s_.panel), d.ceildiv(part_.n, kLanes)));
  }

  void emit() {
    DimTable& d = l_.dims();
    m_ = l_.argument(p_.extent[1]), n_ = l_.argument(part_.n), k_ = l_.argument(p_.extent[2]);
    const Dim panels = d.ceildiv(p_.extent[1], s_.panel), strips = d.ceildiv(part_.n, kLanes);
    V g = kir::group();
    row0_ = panels == Dim(1) ? kir::constant(kir::u32, 0) : g % l_.argument(panels) * s_.panel;
    if (panels != Dim(1)) g = g / l_.argument(panels);
    batch_ = p_.extent[0] == Dim(1) ? kir::constant(kir::u32, 0) : g / l_.argument(strips);
    column0_ = (p_.extent[0] == Dim(1) ? g : g % l_.argument(strips)) * kLanes;
    rows_ = kir::min(m_ - row0_, kir::constant(kir::u32, s_.panel));
    kir::For(0, rows_, [&](V r) { sums_.store(r * kLanes + kir::lane(), V(0.f)); });
    const V turns = (rows_ + (s_.tokens - 1)) / s_.tokens;
    kir::For(0, l_.argument(d.ceildiv(p_.extent[2], s_.block)), [&](V kb) {
      const V k0 = kb * s_.block, here = kir::min(k_ - k0, kir::constant(kir::u32, s_.block));
      kir::barrier();
      desc_.weight_is_kn ? stage_rows(k0, here) : stage_turned(k0, here);
      kir::barrier();
      kir::For(0, turns, [&](V turn) { multiply(turn * s_.tokens, k0, here); });
    });
    kir::barrier();
    const bool whole = d.divisible(part_.n, kLanes).value_or(false);
    kir::For(0, rows_, [&](V r) {
      const V sum = sums_[r * kLanes + kir::lane()];
      write_outputs(l_, part_, {batch_, row0_ + r, column0_, n_, whole}, std::span(&sum, 1), staging_);
    });
  }

 private:
  kir::Buffer weight() { return l_.operand(part_.weights[0]); }
  V weight_base() { return desc_.batched_weight ? batch_ * (k_ * n_) : kir::constant(kir::u32, 0); }

  // [K, N]: lanes are columns on both sides.
  void stage_rows(const V& k0, const V& here) {
    const V column = column0_ + kir::lane(), base = weight_base();
    auto copy = [&] {
      kir::For(0, here, [&](V k) {
        tile_.store(k * kLanes + kir::lane(), convert(weight()[base + (k0 + k) * n_ + column], kir::f32));
      });
    };
    if (l_.dims().divisible(part_.n, kLanes).value_or(false)) return copy();
    kir::If(column < n_, copy);
    kir::If(column >= n_, [&] { kir::For(0, here, [&](V k) { tile_.store(k * kLanes + kir::lane(), V(0.f)); }); });
  }

  // [N, K]: lanes walk along k of one column after the other.
  void stage_turned(const V& k0, const V& here) {
    const V base = weight_base();
    kir::For(0, static_cast<uint32_t>(kLanes), [&](V c) {
      const V row = base + kir::min(column0_ + c, n_ - 1) * k_ + k0;  // past the end: the last column once more
      kir::For(0, (here + (kLanes - 1)) / kLanes, [&](V i) {
        const V k = i * kLanes + kir::lane();
        kir::If(k < here, [&] { tile_.store(k * kLanes + c, convert(weight()[row + k], kir::f32)); });
      });
    });
  }

  void multiply(const V& first, const V& k0, const V& here) {
    std::vector<Var> acc;
    std::vector<V> base;
    for (int t = 0; t < s_.tokens; ++t) {
      // Past the panel's end: its last row once more, whose sum is not kept.
      const V r = t == 0 ? first : kir::min(first + t, rows_ - 1);
      acc.push_back(kir::var(kir::f32, sums_[r * kLanes + kir::lane()]));
      base.push_back((batch_ * m_ + row0_ + r) * k_ + k0);
    }
    kir::For(0, here, [&](V k) {
      const V w = tile_[k * kLanes + kir::lane()];
      for (int t = 0; t < s_.tokens; ++t) {
        const V a = convert(l_.operand(x_)[base[static_cast<size_t>(t)] + k], kir::f32);
        acc[static_cast<size_t>(t)].set(kir::fma(w, a, acc[static_cast<size_t>(t)].get()));
      }
    });
    for (int t = 0; t < s_.tokens; ++t) {
      auto keep = [&] { sums_.store((first + t) * kLanes + kir::lane(), acc[static_cast<size_t>(t)].get()); };
      if (t == 0)
        keep();
      else
        kir::If(first + t < rows_, keep);
    }
  }

  Launcher& l_;
  const Problem& p_;
  const Part& part_;
  Sizes s_;
  const MatmulDesc& desc_;
  uint16_t x_;
  kir::Shared tile_, sums_, staging_;
  V m_, n_, k_, row0_, column0_, batch_, rows_;
};

Status build_staged(const Problem& p, const Bid&, BuildCtx& ctx) {
  for (const Part& part : p.parts) {
    Launcher l(ctx, p, "matmul_staged", kLanes);
    Staged staged(l, part, sizes_for(ctx.asked.caps));
    staged.emit();
    TERN_OK(l.launch(staged.groups()));
  }
  return ok();
}

OrRefuse<std::vector<Bid>> bid_staged(const Problem& p, const Asked& asked) {
  TERN_ACCEPT(const MatmulRoles r, matmul_roles(p));
  if (!p.prologue.empty()) return refuse("takes no prologue");
  if (asked.caps.max_lanes < kLanes) return refuse("wants 32 lanes");
  const double rows = largest(asked, p, r.m);
  if (rows < 16) return refuse("wants 16 rows or more to share a staged block");
  Bid bid;
  TERN_ACCEPT(Unit fit, matmul_outputs(p, asked, bid.layouts));
  const bool kn = std::get<MatmulDesc>(p.desc).weight_is_kn;
  std::string format;
  double turned = 0;
  auto f32_like = [](DType d) { return d == DType::f32 || d == DType::f16 || d == DType::bf16; };
  if (!f32_like(p.operands[r.x].type.dtype) || p.operands[r.x].type.format) return refuse("sums in f32 only");
  for (const Part& part : p.parts) {
    if (part.weights.size() != 1) return refuse("takes one weight a part");
    const Operand& w = p.operands[part.weights[0]];
    if (w.type.format || !is_dense(w.layout) || !f32_like(w.type.dtype)) return refuse("reads dense float weights");
    format = dtype_name(w.type.dtype);
    const double work = largest(asked, p, r.batch) * largest(asked, p, part.n) * largest(asked, p, r.k);
    bid.flop += 2 * rows * work;
    if (!kn) turned += work * std::ceil(rows / sizes_for(asked.caps).panel);
  }
  if (!is_dense(p.operands[r.x].layout)) return refuse("reads x as dense elements");
  TERN_ACCEPT(fit, check_bindings(p, bid.layouts, asked));
  bid.numerics = numerics_tag("matmul lanes 2", {}, asked.caps, format);
  for (size_t i = 0; i < bid.layouts.size(); ++i) bid.bytes += bytes_of(p.operands[i], bid.layouts[i], p, asked);
  bid.launches = static_cast<int>(p.parts.size());
  // Turning a weight costs about a cycle an element.
  bid.seconds = asked.caps.launch_s * bid.launches +
                std::max(bid.bytes / asked.caps.read_bytes_per_s,
                         (bid.flop + turned * 2 * asked.caps.lanes) / asked.caps.flop_per_s * 0.9);
  bid.variant = kn ? "rows" : "turned";
  return std::vector<Bid>{bid};
}

}  // namespace
}  // namespace kernels

extern const Candidate kStagedMatmulKernel;
const Candidate kStagedMatmulKernel = {"matmul.staged", Family::matmul, kernels::bid_staged, kernels::build_staged};

}  // namespace tern
