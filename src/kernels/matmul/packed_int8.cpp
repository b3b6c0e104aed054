// Packed weights times int8 activation blocks: y[m, n] = sum over blocks of act scale * (scale * (dot(codes, act codes)
// - zero * act sum) [+ min * act sum]), over 16-bit activations in two codes where the product asks for
// high precision. One order of blocks for every row, whatever M, tile or range:
// rows are bit-equal.
//
// A workgroup of 32 lanes holds 32 * U rows of the weight and T rows of x. T = 1, U = 2 reads a whole tile as one
// stream (decode); T = 6, U = 1 reuses each decoded word for six rows of x (prefill).
#include <algorithm>

#include "kernels/common/packed.h"
#include "kernels/matmul/outputs.h"

namespace tern {

namespace kernels {
namespace {

using kir::V;
using kir::Var;

constexpr int kLanes = 32;

MatmulTile usual_tile(const Caps& caps, double most_rows, size_t weights) {
  const bool wide = caps.lanes >= 16, narrow = caps.lanes <= 4;  // registers: 32 of 16, 16 of 8, 16 of 4 lanes
  // Where a dot4 is many statements, two weights leave none for a second row or vector and its epilogue.
  if (caps.dot4 != Dot4::fast && weights > 1) return {1, 1};
  if (most_rows <= 1) return {1, narrow ? 1 : 2};
  if (caps.dot4 != Dot4::fast) return {2, 1};
  if (weights > 1) return {wide ? 3 : narrow ? 1 : 2, 1};
  return {most_rows <= 2 || narrow ? 2 : most_rows <= 4 || !wide ? 4 : 6, 1};
}

// Four codes of a weight times those of a value, summed over a block. What must join later has a sum of its own: first
// codes of fine blocks count 256 times a second one, and where dot4 takes seven bits, the eighth of a weight's code
// counts 128 times the rest.
class Dots {
 public:
  Dots(const V& begin, bool fine, bool split) : fine_(fine), split_(split) {
    const V zero = kir::constant(kir::i32, 0);
    sums_[0][0] = sums_[0][1] = sums_[1][0] = sums_[1][1] = zero;
    if (begin.valid()) sums_[fine ? 1 : 0][0] = begin;
  }
  void add(const V& codes, const V& x, const V& x_second) {
    const V low = split_ ? codes & 0x7f7f7f7f : codes, top = split_ ? codes >> 7 & 0x01010101 : V();
    for (int i = 0; i <= static_cast<int>(fine_); ++i) {
      const V& with = i == 0 ? x : x_second;
      sums_[i][0] = kir::dot4(sums_[i][0], low, with);
      if (split_) sums_[i][1] = kir::dot4(sums_[i][1], top, with);
    }
  }
  V joined() const { return fine_ ? (side(0) << 8) + side(1) : side(0); }

 private:
  V side(int i) const { return split_ ? sums_[i][0] + (sums_[i][1] << 7) : sums_[i][0]; }
  bool fine_, split_;
  V sums_[2][2];
};

struct Weight {
  Packed shape;
  kir::Buffer words;
};

class PartKernel {
 public:
  PartKernel(Launcher& l, const Part& part, MatmulTile s, std::vector<Weight> weights, const kir::Shared& staging)
      : l_(l), p_(l.problem()), part_(part), s_(s), weights_(std::move(weights)), staging_(staging) {}

  // Groups of this part over `tiles` tiles.
  Dim groups(Dim tiles) { return l_.dims().mul(tiles, l_.dims().mul(per_tile(), row_blocks())); }

  void emit(V g, V first_tile) {
    DimTable& dims = l_.dims();
    const Dim k = p_.extent[2];
    columns_k_ = l_.argument(k);
    V strip = g, block = kir::constant(kir::u32, 0);
    if (row_blocks() != Dim(1)) {
      block = g % l_.argument(row_blocks());
      strip = g / l_.argument(row_blocks());
    }
    tile_ = per_tile() == 1 ? strip : strip / per_tile();
    lane0_ = per_tile() == 1 ? kir::constant(kir::u32, 0) : strip % per_tile() * (kLanes * s_.vectors);
    const V m = l_.argument(p_.extent[1]);
    const auto x = static_cast<uint16_t>(find_role(p_, Role::x));
    acts_ = l_.operand(x).as(kir::u32);
    fine_ = fine_blocks(p_.operands[x].layout);
    const bool exact = dims.divisible(p_.extent[1], s_.tokens).value_or(false);
    for (int t = 0; t < s_.tokens; ++t) {
      rows_.push_back(block * s_.tokens + t);
      const V row =
          exact || t == 0 ? rows_.back() : kir::min(rows_.back(), m - 1);  // past the end: the last row once more
      base_.push_back(act_row(p_.operands[x].layout, row, columns_k_));
    }
    for (size_t i = 0; i < weights_.size() * static_cast<size_t>(s_.tokens * s_.vectors); ++i)
      acc_.push_back(kir::var(0.f));
    // Weights of one part may have spans of different length: all divide the longest, and that divides k.
    uint32_t longest = 1;
    for (const Weight& w : weights_) longest = std::max(longest, w.shape.span_blocks);
    kir::For(0, l_.argument(dims.floordiv(k, longest * kBlock)), [&](V i) {
      for (size_t w = 0; w < weights_.size(); ++w) {
        times(longest / weights_[w].shape.span_blocks, i, [&](V span) { span_of(w, span); });
      }
    });
    write((first_tile + tile_) * 64 + lane0_, exact, m);
  }

 private:
  int per_tile() const { return 64 / (kLanes * s_.vectors); }
  Dim row_blocks() { return l_.dims().ceildiv(p_.extent[1], s_.tokens); }
  Var& acc(size_t w, int t, int u) {
    return acc_[(w * static_cast<size_t>(s_.tokens) + static_cast<size_t>(t)) * static_cast<size_t>(s_.vectors) +
                static_cast<size_t>(u)];
  }
  V act(int t, V index) { return acts_[base_[static_cast<size_t>(t)] + index]; }

  V second(int t, V index) { return act(t, act_second_at(columns_k_) + index); }

  // Runs f for outer * count + 0 .. count - 1.
  static void times(uint32_t count, const V& outer, const std::function<void(V)>& f) {
    if (count == 1) return f(outer);
    kir::For(0, count, [&](V j) { f(outer * count + kir::cast(kir::u32, j)); });
  }

  // The sum of activation codes over a group of a block.
  V code_sum(const Packed& f, int t, V b, int sub) {
    const kir::Buffer sums = acts_.as(kir::i32);
    const V base = base_[static_cast<size_t>(t)];
    if (f.groups == 1) return sums[base + act_sum_at(columns_k_, b)];
    const V half = sums[base + act_half_sum_at(columns_k_, b)];
    return sub == 0 ? half : sums[base + act_sum_at(columns_k_, b)] - half;
  }

  void span_of(size_t w, V span) {
    const Packed& f = weights_[w].shape;
    const V spans = l_.argument(l_.dims().floordiv(p_.extent[2], f.span_columns()));
    std::vector<PackedRow> rows;
    for (int u = 0; u < s_.vectors; ++u)
      rows.emplace_back(f, weights_[w].words, tile_ * spans + span, lane0_ + u * kLanes + kir::lane());
    if (f.span_blocks == 1) return block_of(w, rows, kir::constant(kir::u32, 0), span);
    kir::For(0, f.span_blocks, [&](V j) {
      const V block = kir::cast(kir::u32, j);
      block_of(w, rows, block, span * f.span_blocks + block);
    });
  }

  // Block `block` of the span, number b of the row.
  void block_of(size_t w, const std::vector<PackedRow>& rows, V block, V b) {
    const Packed& f = weights_[w].shape;
    const bool split = l_.caps().dot4 == Dot4::fast && f.code_bits > l_.caps().dot4_code_bits;
    const int quads = static_cast<int>(f.group / 4);
    std::vector<V> products(static_cast<size_t>(s_.tokens * s_.vectors));  // of the block, before the value's scale
    for (int sub = 0; sub < static_cast<int>(f.groups); ++sub) {
      std::vector<V> sums, scales, lows;
      std::vector<Dots> dots;
      const auto read_scales = [&] {
        const V group = kir::constant(kir::u32, sub);
        for (const PackedRow& row : rows) scales.push_back(row.scale(block, group));
        for (const PackedRow& row : rows) lows.push_back(f.has_min ? row.min(block, group) : V());
      };
      // One row of x waits for memory, and in the order that it lies in; more of them want the registers.
      if (s_.tokens == 1) read_scales();
      for (int t = 0; t < s_.tokens; ++t) {
        sums.push_back(code_sum(f, t, b, sub));
        const V begin = f.zero == 0 || f.step != 1 ? V() : sums.back() * -f.zero;
        for (int u = 0; u < s_.vectors; ++u) dots.emplace_back(begin, fine_, split);
      }
      for (int q = sub * quads; q < (sub + 1) * quads; ++q) {
        std::vector<V> codes;
        for (const PackedRow& row : rows) codes.push_back(row.codes4(block, kir::constant(kir::u32, q)));
        for (int t = 0; t < s_.tokens; ++t) {
          const V x = act(t, b * 8 + q), x2 = fine_ ? second(t, b * 8 + q) : V();
          for (int u = 0; u < s_.vectors; ++u)
            dots[static_cast<size_t>(t * s_.vectors + u)].add(codes[static_cast<size_t>(u)], x, x2);
        }
      }
      if (s_.tokens != 1) read_scales();
      for (int u = 0; u < s_.vectors; ++u) {
        const V &scale = scales[static_cast<size_t>(u)], &low = lows[static_cast<size_t>(u)];
        for (int t = 0; t < s_.tokens; ++t) {
          const V code_sum = sums[static_cast<size_t>(t)];
          V& product = products[static_cast<size_t>(t * s_.vectors + u)];
          V dot = dots[static_cast<size_t>(t * s_.vectors + u)].joined();
          if (f.step != 1) dot = dot * f.step - code_sum * f.zero;
          const V whole = kir::cast(kir::f32, dot);
          product = sub == 0 ? whole * scale : kir::fma(whole, scale, product);
          if (f.has_min) product = kir::fma(low, kir::cast(kir::f32, code_sum), product);
        }
      }
    }
    for (int t = 0; t < s_.tokens; ++t) {
      const V act_scale = acts_.as(kir::f32)[base_[static_cast<size_t>(t)] + act_scale_at(columns_k_, b)];
      for (int u = 0; u < s_.vectors; ++u)
        acc(w, t, u).set(kir::fma(products[static_cast<size_t>(t * s_.vectors + u)], act_scale, acc(w, t, u).get()));
    }
  }

  void write(V column0, bool exact, V m) {
    const bool whole = l_.dims().divisible(part_.n, 64).value_or(false);
    for (int t = 0; t < s_.tokens; ++t) {
      auto row = [&] {
        for (int u = 0; u < s_.vectors; ++u) {
          std::vector<V> values;
          for (size_t w = 0; w < weights_.size(); ++w) values.push_back(acc(w, t, u).get());
          OutputRow at{kir::constant(kir::u32, 0), rows_[static_cast<size_t>(t)], column0 + u * kLanes,
                       l_.argument(part_.n), whole};
          write_outputs(l_, part_, at, values, staging_);
        }
      };
      if (exact || t == 0)
        row();
      else
        kir::If(rows_[static_cast<size_t>(t)] < m, row);
    }
  }

  Launcher& l_;
  const Problem& p_;
  const Part& part_;
  MatmulTile s_;
  std::vector<Weight> weights_;
  const kir::Shared& staging_;
  kir::Buffer acts_;
  bool fine_ = false;
  V columns_k_, tile_, lane0_;
  std::vector<V> rows_, base_;
  std::vector<Var> acc_;
};

OrRefuse<std::vector<Packed>> packed_of(const Problem& p, const Part& part) {
  std::vector<Packed> out;
  for (uint16_t w : part.weights) {
    TERN_ACCEPT(const Packed shape, packed_shape(p.operands[w].type, p.operands[w].layout.tile));
    out.push_back(shape);
  }
  return out;
}

std::vector<Weight> bind_weights(Launcher& l, const std::vector<Packed>& shapes, const std::vector<Use>& uses,
                                 size_t part) {
  std::vector<Weight> out;
  for (size_t i = 0; i < shapes.size(); ++i) {
    const kir::Buffer words = l.bind(uses[i], "w" + std::to_string(part) + "_" + std::to_string(i), kir::u32);
    out.push_back({shapes[i], words});
  }
  return out;
}

// All parts in one launch: group ranges one after the other.
Status build_together(const Problem& p, BuildCtx& ctx, MatmulTile s) {
  Launcher l(ctx, p, "matvec_int8", kLanes);
  bool blocks = false;
  for (const Part& part : p.parts) blocks = blocks || writes_blocks(part, p);
  const kir::Shared staging = blocks ? block_staging() : kir::Shared();
  Dim total = 0;
  for (size_t i = 0; i < p.parts.size(); ++i) {
    const Part& part = p.parts[i];
    const auto shapes = packed_of(p, part);
    std::vector<Use> uses;
    for (uint16_t w : part.weights) uses.push_back(ctx.whole(w));
    PartKernel kernel(l, part, s, bind_weights(l, *shapes, uses, i), staging);
    const Dim mine = kernel.groups(ctx.asked.dims.ceildiv(part.n, 64)), first = total;
    total = ctx.asked.dims.add(total, mine);
    const V zero = kir::constant(kir::u32, 0);
    if (p.parts.size() == 1)
      kernel.emit(kir::group(), zero);
    else
      kir::If(l.argument(first) <= kir::group() && kir::group() < l.argument(total),
              [&] { kernel.emit(kir::group() - l.argument(first), zero); });
  }
  return l.launch(total);
}

Status build_part(const Problem& p, BuildCtx& ctx, const Part& part, MatmulTile s) {
  return for_weight_windows(p, part, ctx, [&](int64_t first, int64_t tiles, std::vector<Use> uses) {
    Launcher l(ctx, p, "matmul_int8", kLanes);
    const kir::Shared staging = writes_blocks(part, p) ? block_staging() : kir::Shared();
    const auto shapes = packed_of(p, part);
    PartKernel kernel(l, part, s, bind_weights(l, *shapes, uses, 0), staging);
    kernel.emit(kir::group(), l.scalar(first));
    return l.launch(kernel.groups(tiles));
  });
}

bool needs_windows(const Problem& p, const Asked& asked) {
  for (const Part& part : p.parts) {
    for (uint16_t w : part.weights) {
      if (bytes_of(p.operands[w], p.operands[w].layout, p, asked) > static_cast<double>(asked.caps.max_binding_bytes))
        return true;
    }
  }
  return false;
}

Status build_packed_int8(const Problem& p, const Bid& bid, BuildCtx& ctx) {
  const auto rows = ctx.asked.dims.range(p.extent[1], p.bounds).second;
  const MatmulTile tile = tile_of(bid);
  if (rows <= 2 && p.parts.size() <= 4 && ctx.asked.caps.dot4 == Dot4::fast && !needs_windows(p, ctx.asked))
    return build_together(p, ctx, tile);
  for (const Part& part : p.parts) TERN_OK(build_part(p, ctx, part, tile));
  return ok();
}

OrRefuse<std::vector<Bid>> bid_packed_int8(const Problem& p, const Asked& asked) {
  TERN_ACCEPT(const MatmulRoles r, matmul_roles(p));
  if (p.policy.precise) return refuse("quantises activations; the policy is precise");
  if (!p.prologue.empty()) return refuse("takes no prologue");
  const auto& desc = std::get<MatmulDesc>(p.desc);
  if (desc.batched_weight || desc.weight_is_kn || r.batch != Dim(1))
    return refuse("takes one [N, K] weight without batch");
  const Layout blocks{&kActInt8, {desc.high_precision}};
  if (p.operands[r.x].layout && p.operands[r.x].layout != blocks) return refuse("reads x as int8 blocks");
  if (!is_float(p.operands[r.x].type.dtype) || p.operands[r.x].type.format) return refuse("x is no float");
  if (asked.caps.max_lanes < kLanes) return refuse("wants 32 lanes");
  if (!asked.dims.divisible(r.k, kBlock).value_or(false) || !r.k.constant())
    return refuse("k is no constant multiple of 32");
  Bid bid;
  TERN_ACCEPT(Unit fit, matmul_outputs(p, asked, bid.layouts));
  bid.layouts[r.x] = blocks;
  std::string format;
  const double rows = largest(asked, p, r.m);
  for (const Part& part : p.parts) {
    if (!part.n.constant()) return refuse("a weight has a symbolic number of rows");
    for (uint16_t w : part.weights) {
      const Operand& o = p.operands[w];
      if (o.origin != Origin::param && !o.layout) return refuse("packed weights are parameters");
      TERN_ACCEPT(const std::vector<Layout> choices, packed_layouts(o.type));
      if (o.layout && std::find(choices.begin(), choices.end(), o.layout) == choices.end())
        return refuse("a weight lies as " + std::string(o.layout.def->name));
      bid.layouts[w] = o.layout ? o.layout : choices[0];
      format = o.type.format->name;
      const double bytes = bytes_of(o, bid.layouts[w], p, asked);
      bid.bytes += bytes;
      bid.flop += (desc.high_precision ? 4 : 2) * rows * largest(asked, p, part.n) * largest(asked, p, r.k);
      bid.launches = std::max(bid.launches, launches_for(bytes, asked.caps));
    }
  }
  std::vector<int> cut;
  for (const Part& part : p.parts) cut.insert(cut.end(), part.weights.begin(), part.weights.end());
  for (size_t i = 0; i < p.operands.size(); ++i) {
    if (std::find(cut.begin(), cut.end(), static_cast<int>(i)) != cut.end()) continue;
    TERN_ACCEPT([[maybe_unused]] const Unit bound,
                fits_binding(static_cast<uint16_t>(i), p.operands[i], bid.layouts[i], p.bounds, asked));
  }
  (void)fit;
  bid.numerics = numerics_tag("matmul packed int8 2", {*r.k.constant(), desc.high_precision}, asked.caps, format);
  bid.bytes += bytes_of(p.operands[r.x], bid.layouts[r.x], p, asked);
  bid.seconds = asked.caps.launch_s * bid.launches +
                std::max(bid.bytes / asked.caps.read_bytes_per_s, bid.flop / asked.caps.int8_op_per_s);
  const size_t weights = most_weights(p);
  return tiled_bids(bid, usual_tile(asked.caps, rows, weights), rows <= 1, weights);
}

}  // namespace
}  // namespace kernels

extern const Candidate kPackedInt8Kernel;
const Candidate kPackedInt8Kernel = {"matmul.packed.int8", Family::matmul, kernels::bid_packed_int8,
                                     kernels::build_packed_int8};

}  // namespace tern
