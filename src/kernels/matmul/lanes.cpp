// Matmul with lanes along the weight's rows: float tiles, dense [K, N] (batched too), and packed weights with float
// activations. acc = fma(w[n, k], x[m, k], acc) for k ascending: one order for every row, whatever M, tile, batch or
// range; rows are bit-equal.
//
// A workgroup of 32 lanes holds 32 * U rows of the weight and T rows of x: T = 1, U = 2 for decode, T = 8 (AVX-512) for
// prefill.
#include <algorithm>

#include "kernels/common/packed.h"
#include "kernels/matmul/outputs.h"

namespace tern {

namespace kernels {
namespace {

using kir::V;
using kir::Var;

constexpr int kLanes = 32, kTileRows = 64;

enum class Source { tiles, dense_kn, packed };

MatmulTile usual_tile(const Caps& caps, double most_rows, size_t weights) {
  const bool wide = caps.lanes >= 16;
  if (most_rows <= 1) return {1, wide && weights == 1 ? 2 : 1};
  const int tokens = most_rows <= 2 || caps.lanes <= 4 ? 2 : wide ? most_rows <= 4 ? 4 : 8 : 3;
  return {weights > 1 ? std::max(1, tokens / 2) : tokens, 1};
}

Source source_of(const Operand& w) {
  if (w.layout.def == &kPackedTiles) return Source::packed;
  return w.layout.def == &kFloatTiles ? Source::tiles : Source::dense_kn;
}

// The type sums are made in.
kir::Type sum_type(const Problem& p, const Part& part) {
  kir::Type t = kir::f32;
  const int x = find_role(p, Role::x);
  auto look = [&](const Operand& o) {
    const auto v = kir::value_type(o.type.dtype);
    if (!v || *v == kir::b1) return;
    if (*v == kir::f64 || (t != kir::f64 && !kir::is_float(*v))) t = *v;
  };
  if (x >= 0) look(p.operands[static_cast<size_t>(x)]);
  for (uint16_t w : part.weights) look(p.operands[w]);
  return t;
}

struct Weight {
  Source source = Source::tiles;
  Packed packed;
  kir::Buffer data, words;
};

class PartKernel {
 public:
  PartKernel(Launcher& l, const Part& part, MatmulTile s, std::vector<Weight> weights, const kir::Shared& staging)
      : l_(l),
        p_(l.problem()),
        part_(part),
        s_(s),
        weights_(std::move(weights)),
        staging_(staging),
        type_(sum_type(p_, part)) {}

  Dim groups(Dim tiles) {
    return l_.dims().mul(l_.dims().mul(tiles, per_tile()), l_.dims().mul(row_blocks(), p_.extent[0]));
  }

  void emit(V g, V first_tile, Dim tiles) {
    DimTable& dims = l_.dims();
    n_ = l_.argument(part_.n), k_ = l_.argument(p_.extent[2]);
    const V m = l_.argument(p_.extent[1]);
    V block = kir::constant(kir::u32, 0);
    batch_ = block;
    if (row_blocks() != Dim(1)) {
      block = g % l_.argument(row_blocks());
      g = g / l_.argument(row_blocks());
    }
    if (p_.extent[0] != Dim(1)) {
      const Dim strips = dims.mul(tiles, per_tile());
      batch_ = g / l_.argument(strips);
      g = g % l_.argument(strips);
    }
    tile_ = per_tile() == 1 ? g : g / per_tile();
    lane0_ = per_tile() == 1 ? kir::constant(kir::u32, 0) : g % per_tile() * (kLanes * s_.vectors);
    const bool exact = dims.divisible(p_.extent[1], s_.tokens).value_or(false);
    for (int t = 0; t < s_.tokens; ++t) {
      rows_.push_back(block * s_.tokens + t);
      read_rows_.push_back(exact || t == 0 ? rows_.back()
                                           : kir::min(rows_.back(), m - 1));  // past the end: the last row once more
    }
    for (size_t i = 0; i < weights_.size() * static_cast<size_t>(s_.tokens * s_.vectors); ++i)
      acc_.push_back(kir::var(type_, kir::constant(type_, 0)));
    const V column0 = (first_tile + tile_) * kTileRows + lane0_;
    for (size_t w = 0; w < weights_.size(); ++w) sum(w, column0);
    write(column0, exact, m);
  }

 private:
  int per_tile() const { return kTileRows / (kLanes * s_.vectors); }
  Dim row_blocks() { return l_.dims().ceildiv(p_.extent[1], s_.tokens); }
  Var& acc(size_t w, int t, int u) {
    return acc_[(w * static_cast<size_t>(s_.tokens) + static_cast<size_t>(t)) * static_cast<size_t>(s_.vectors) +
                static_cast<size_t>(u)];
  }

  V x(int t, V k) {
    const V row = read_rows_[static_cast<size_t>(t)];
    if (!p_.prologue.empty()) {
      const V axes[3] = {batch_, row, k};
      ExprInputs in;
      in.axes = axes;
      in.lane_axes = 2;
      return convert(emit_expr(l_, p_.prologue, in).back(), type_);
    }
    const V base = p_.extent[0] == Dim(1) ? row * k_ : (batch_ * l_.argument(p_.extent[1]) + row) * k_;
    return convert(l_.operand(static_cast<uint16_t>(find_role(p_, Role::x)))[base + k], type_);
  }

  void column(size_t w, V k, const std::vector<V>& values) {
    for (int t = 0; t < s_.tokens; ++t) {
      const V a = x(t, k);
      for (int u = 0; u < s_.vectors; ++u) {
        Var& sum = acc(w, t, u);
        const V value = values[static_cast<size_t>(u)];
        sum.set(kir::is_float(type_) ? kir::fma(value, a, sum.get()) : value * a + sum.get());
      }
    }
  }

  void sum(size_t w, V column0) {
    switch (weights_[w].source) {
      case Source::packed: return sum_packed(w);
      case Source::tiles:
        return each_k([&](V k) {
          std::vector<V> values;
          for (int u = 0; u < s_.vectors; ++u) {
            values.push_back(
                convert(weights_[w].data[(tile_ * k_ + k) * kTileRows + (lane0_ + u * kLanes) + kir::lane()], type_));
          }
          column(w, k, values);
        });
      case Source::dense_kn: break;
    }
    const V base = std::get<MatmulDesc>(p_.desc).batched_weight ? batch_ * (k_ * n_) : kir::constant(kir::u32, 0);
    auto body = [&] {
      each_k([&](V k) {
        std::vector<V> values;
        for (int u = 0; u < s_.vectors; ++u)
          values.push_back(convert(weights_[w].data[base + k * n_ + (column0 + u * kLanes) + kir::lane()], type_));
        column(w, k, values);
      });
    };
    if (l_.dims().divisible(part_.n, kTileRows).value_or(false)) return body();
    kir::If(column0 + (s_.vectors - 1) * kLanes + kir::lane() < n_, body);
    if (s_.vectors == 1) return;
    // A lane whose last column is missing may have earlier ones; those lanes run alone.
    for (int u = 0; u + 1 < s_.vectors; ++u) {
      const V here = column0 + u * kLanes + kir::lane();
      kir::If(here < n_ && column0 + (s_.vectors - 1) * kLanes + kir::lane() >= n_, [&] {
        each_k([&](V k) {
          Var& sum = acc(w, 0, u);
          const V value = convert(weights_[w].data[base + k * n_ + here], type_), a = x(0, k);
          sum.set(kir::is_float(type_) ? kir::fma(value, a, sum.get()) : value * a + sum.get());
        });
      });
    }
  }

  void each_k(const std::function<void(V)>& f) {
    const int unroll = l_.dims().divisible(p_.extent[2], 4).value_or(false) ? 4 : 1;
    kir::For(0, unroll == 1 ? k_ : l_.argument(l_.dims().floordiv(p_.extent[2], unroll)), [&](V i) {
      for (int j = 0; j < unroll; ++j) f(i * unroll + j);
    });
  }

  void sum_packed(size_t w) {
    const Packed& f = weights_[w].packed;
    const V spans = l_.argument(l_.dims().floordiv(p_.extent[2], f.span_columns()));
    kir::For(0, spans, [&](V span) {
      std::vector<PackedRow> rows;
      for (int u = 0; u < s_.vectors; ++u)
        rows.emplace_back(f, weights_[w].words, tile_ * spans + span, lane0_ + u * kLanes + kir::lane());
      if (f.span_blocks == 1) return sum_block(w, rows, kir::constant(kir::u32, 0), span);
      kir::For(0, f.span_blocks, [&](V j) {
        const V block = kir::cast(kir::u32, j);
        sum_block(w, rows, block, span * f.span_blocks + block);
      });
    });
  }

  // Every weight is made exactly: code, scale and minimum have few bits, so one fma rounds nothing that a float could
  // hold.
  void sum_block(size_t w, const std::vector<PackedRow>& rows, V block, V b) {
    const Packed& f = weights_[w].packed;
    const int quads = static_cast<int>(f.group / 4);
    for (int sub = 0; sub < static_cast<int>(f.groups); ++sub) {
      std::vector<V> scale, low;
      for (const PackedRow& row : rows) {
        const V group = kir::constant(kir::u32, sub), step = row.scale(block, group);
        scale.push_back(f.step == 1 ? step : step * static_cast<float>(f.step));
        low.push_back(f.has_min ? row.min(block, group) : step * -static_cast<float>(f.zero));
      }
      kir::For(sub * quads, (sub + 1) * quads, [&](V quad) {
        const V q = kir::cast(kir::u32, quad);
        std::vector<V> codes;
        for (const PackedRow& row : rows) codes.push_back(row.codes4(block, q));
        for (int i = 0; i < 4; ++i) {
          std::vector<V> values;
          for (size_t u = 0; u < rows.size(); ++u) {
            const V code = kir::cast(kir::f32, kir::bitcast(kir::i32, codes[u] >> (8 * i) & 0xff));
            values.push_back(kir::fma(code, scale[u], low[u]));
          }
          column(w, b * static_cast<int>(kBlock) + q * 4 + i, values);
        }
      });
    }
  }

  void write(V column0, bool exact, V m) {
    const bool whole = l_.dims().divisible(part_.n, kTileRows).value_or(false);
    for (int t = 0; t < s_.tokens; ++t) {
      auto row = [&] {
        for (int u = 0; u < s_.vectors; ++u) {
          std::vector<V> values;
          for (size_t w = 0; w < weights_.size(); ++w) values.push_back(acc(w, t, u).get());
          write_outputs(l_, part_, {batch_, rows_[static_cast<size_t>(t)], column0 + u * kLanes, n_, whole}, values,
                        staging_);
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
  kir::Type type_;
  V n_, k_, batch_, tile_, lane0_;
  std::vector<V> rows_, read_rows_;
  std::vector<Var> acc_;
};

std::vector<Weight> bind_weights(Launcher& l, const Part& part, const std::vector<Use>& uses) {
  std::vector<Weight> out;
  for (size_t i = 0; i < uses.size(); ++i) {
    const Operand& o = l.problem().operands[part.weights[i]];
    Weight w;
    w.source = source_of(o);
    const auto type = kir::storage_type(o.type.dtype);
    const std::string name = "w" + std::to_string(i);
    if (w.source == Source::packed) {
      const auto shape = packed_shape(o.type, o.layout.tile);
      w.packed = *shape;
      w.words = l.bind(uses[i], name, kir::u32);
    } else {
      w.data = l.bind(uses[i], name, *type);
    }
    out.push_back(w);
  }
  return out;
}

Status build_part(const Problem& p, BuildCtx& ctx, const Part& part, MatmulTile s) {
  const bool dense = source_of(p.operands[part.weights[0]]) == Source::dense_kn;
  auto launch = [&](int64_t first, Dim tiles, const std::vector<Use>& uses) {
    Launcher l(ctx, p, "matmul_lanes", kLanes);
    const kir::Shared staging = writes_blocks(part, p) ? block_staging() : kir::Shared();
    PartKernel kernel(l, part, s, bind_weights(l, part, uses), staging);
    kernel.emit(kir::group(), dense ? kir::constant(kir::u32, 0) : l.scalar(first), tiles);
    return l.launch(kernel.groups(tiles));
  };
  if (!dense)
    return for_weight_windows(
        p, part, ctx, [&](int64_t first, int64_t tiles, std::vector<Use> uses) { return launch(first, tiles, uses); });
  std::vector<Use> uses;
  for (uint16_t w : part.weights) uses.push_back(ctx.whole(w));
  return launch(0, ctx.asked.dims.ceildiv(part.n, kTileRows), uses);
}

Status build_lanes(const Problem& p, const Bid& bid, BuildCtx& ctx) {
  for (const Part& part : p.parts) TERN_OK(build_part(p, ctx, part, tile_of(bid)));
  return ok();
}

// Layouts of a weight that this kernel reads.
OrRefuse<std::vector<Layout>> weight_layouts(const Problem& p, const Part& part, const Operand& o) {
  const auto& desc = std::get<MatmulDesc>(p.desc);
  std::vector<Layout> out;
  if (o.type.format) {
    if (desc.batched_weight || desc.weight_is_kn) return refuse("packed weights are [N, K] without batch");
    TERN_ACCEPT(out, packed_layouts(o.type));
  } else if (desc.weight_is_kn) {
    out = {{&kDense, {}}};
  } else {
    if (desc.batched_weight || o.origin == Origin::temp || o.origin == Origin::io || o.origin == Origin::state) {
      return refuse("the weight is made at run time; its rows lie along k");
    }
    out = float_layouts(o.type);
    if (out.empty()) return refuse("no tiles of " + std::string(dtype_name(o.type.dtype)));
  }
  if (out[0].def != &kDense && !part.n.constant()) return refuse("a weight has a symbolic number of rows");
  if (!o.layout) return out;
  for (const Layout& l : out) {
    if (l == o.layout) return std::vector<Layout>{l};
  }
  return refuse("a weight lies as " + std::string(o.layout.def->name));
}

OrRefuse<std::vector<Bid>> bid_lanes(const Problem& p, const Asked& asked) {
  TERN_ACCEPT(const MatmulRoles r, matmul_roles(p));
  const Operand& x = p.operands[r.x];
  if (!is_dense(x.layout) || x.type.format) return refuse("reads x as dense elements");
  if (asked.caps.max_lanes < kLanes) return refuse("wants 32 lanes");
  Bid bid;
  TERN_ACCEPT(Unit fit, matmul_outputs(p, asked, bid.layouts));
  TERN_ACCEPT(fit, check_expr(p.prologue, asked.caps));
  std::string format;
  std::vector<int> cut;
  const double rows = largest(asked, p, r.m) * largest(asked, p, r.batch);
  double decode = 0;
  for (const Part& part : p.parts) {
    const Source first = [&] {
      const Operand& o = p.operands[part.weights[0]];
      return o.type.format                               ? Source::packed
             : std::get<MatmulDesc>(p.desc).weight_is_kn ? Source::dense_kn
                                                         : Source::tiles;
    }();
    for (uint16_t w : part.weights) {
      const Operand& o = p.operands[w];
      TERN_ACCEPT(const std::vector<Layout> layouts, weight_layouts(p, part, o));
      bid.layouts[w] = layouts[0];
      if (o.type.format && !asked.dims.divisible(r.k, kBlock).value_or(false)) return refuse("k is no multiple of 32");
      if (first == Source::dense_kn && part.weights.size() > 1) return refuse("takes one dense weight a part");
      format = o.type.format ? o.type.format->name : dtype_name(o.type.dtype);
      const double bytes = bytes_of(o, layouts[0], p, asked);
      bid.bytes += bytes;
      bid.flop += 2 * rows * largest(asked, p, part.n) * largest(asked, p, r.k);
      if (o.type.format) decode += 3 * largest(asked, p, part.n) * largest(asked, p, r.k);
      if (layouts[0].def != &kDense)
        cut.push_back(w), bid.launches = std::max(bid.launches, launches_for(bytes, asked.caps));
      if (layouts[0].def == &kDense) {
        TERN_ACCEPT([[maybe_unused]] const kir::Type stored, storage_of(o.type, asked.caps));
      }
    }
  }
  TERN_ACCEPT(const kir::Type t, storage_of(x.type, asked.caps));
  (void)t, (void)fit;
  for (size_t i = 0; i < p.operands.size(); ++i) {
    if (std::find(cut.begin(), cut.end(), static_cast<int>(i)) != cut.end()) continue;
    TERN_ACCEPT([[maybe_unused]] const Unit bound,
                fits_binding(static_cast<uint16_t>(i), p.operands[i], bid.layouts[i], p.bounds, asked));
  }
  bid.numerics = numerics_tag("matmul lanes 2", {}, asked.caps, format);
  bid.bytes += bytes_of(x, bid.layouts[r.x], p, asked);
  bid.seconds = asked.caps.launch_s * bid.launches +
                std::max(bid.bytes / asked.caps.read_bytes_per_s, (bid.flop + decode) / asked.caps.flop_per_s);
  const size_t weights = most_weights(p);
  return tiled_bids(bid, usual_tile(asked.caps, rows, weights), rows <= 1, weights);
}

}  // namespace
}  // namespace kernels

extern const Candidate kLanesMatmulKernel;
const Candidate kLanesMatmulKernel = {"matmul.lanes", Family::matmul, kernels::bid_lanes, kernels::build_lanes};

}  // namespace tern
