// region: outputs = prologue(index), for every index of extent. Axes that every map walks as one are joined; the
// trailing axes become lanes (loads and stores along them are vectors where a map's stride allows), the others become
// workgroups.
#include <algorithm>

#include "kernels/common/expr.h"

namespace tern {

namespace kernels {
namespace {

using kir::V;

// The Problem with joined axes: maps rewritten, and for each old axis where its coordinate comes from.
struct Space {
  std::vector<Dim> extent;
  ScalarExpr expr;
  std::vector<Output> outs;
  std::vector<int> axis_of;  // old axis -> new axis; -1: always 0
};

std::vector<bool> indexed_axes(const ScalarExpr& expr, size_t rank) {
  std::vector<bool> used(rank, false);
  for (const auto& ins : expr.code) {
    if (ins.kind == ScalarExpr::Kind::index && ins.a < rank) used[ins.a] = true;
  }
  return used;
}

Space joined(const Problem& p, DimTable& dims) {
  Space s;
  s.expr = p.prologue;
  s.outs = p.parts[0].outs;
  for (Output& o : s.outs) o.map = map_or_dense(dims, o.map, p.extent);
  std::vector<IndexMap*> maps;
  for (auto& l : s.expr.loads) maps.push_back(&l.map);
  for (Output& o : s.outs) maps.push_back(&o.map);
  for (IndexMap* m : maps) m->stride.resize(p.extent.size(), Dim(0));
  const std::vector<bool> indexed = indexed_axes(s.expr, p.extent.size());
  std::vector<IndexMap> kept(maps.size());
  for (size_t i = 0; i < maps.size(); ++i) kept[i].offset = maps[i]->offset;
  s.axis_of.assign(p.extent.size(), -1);
  bool last_indexed = false;
  for (size_t a = 0; a < p.extent.size(); ++a) {
    if (p.extent[a] == Dim(1)) continue;
    bool join = !s.extent.empty() && !indexed[a] && !last_indexed;
    for (size_t i = 0; join && i < maps.size(); ++i) {
      join = kept[i].stride.back() == dims.mul(maps[i]->stride[a], p.extent[a]);
    }
    if (join) {
      s.extent.back() = dims.mul(s.extent.back(), p.extent[a]);
    } else {
      s.extent.push_back(p.extent[a]);
    }
    for (size_t i = 0; i < maps.size(); ++i) {
      if (join)
        kept[i].stride.back() = maps[i]->stride[a];
      else
        kept[i].stride.push_back(maps[i]->stride[a]);
    }
    s.axis_of[a] = static_cast<int>(s.extent.size()) - 1;
    last_indexed = indexed[a];
  }
  for (size_t i = 0; i < maps.size(); ++i) *maps[i] = kept[i];
  return s;
}

bool is_wide(DType t) { return t == DType::i64 || t == DType::u64; }

// Elements that go to memory together because the device stores nothing smaller than a word.
int store_width(DType type, const Caps& caps) {
  const uint32_t bytes = dtype_bytes(type);
  if (bytes == 2 && !caps.f16_storage) return 2;
  return bytes == 1 && !caps.byte_storage ? 4 : 1;
}
int elements_a_lane(const Problem& p, const Caps& caps) {
  int n = 1;
  for (const Output& o : p.parts[0].outs) n = std::max(n, store_width(p.operands[o.operand].type.dtype, caps));
  return n;
}

OrRefuse<Unit> check_word_stores(const Space& s, int per_lane, DimTable& dims) {
  if (per_lane == 1) return Unit{};
  if (s.extent.empty() || !dims.divisible(s.extent.back(), per_lane).value_or(false)) {
    return refuse("small elements need whole words, and the last axis is no multiple of " + std::to_string(per_lane));
  }
  for (const Output& o : s.outs) {
    bool good = o.map.stride.back() == Dim(1) && dims.divisible(o.map.offset, per_lane).value_or(false);
    for (size_t a = 0; a + 1 < o.map.stride.size(); ++a)
      good = good && dims.divisible(o.map.stride[a], per_lane).value_or(false);
    if (!good) return refuse("small elements need whole words, and an output is not stored in runs of them");
  }
  return Unit{};
}

struct Plan {
  size_t first_inner = 0;  // axes from here on are lanes
  int64_t inner = 1;       // their elements; -1: the last axis alone, symbolic
  Dim inner_dim = 1;
  uint32_t lanes = 1;
  int64_t chunks = 1;  // vectors that one workgroup does in turn
};

constexpr int64_t kEnough = 1024;  // elements of a workgroup beyond which its overhead no longer shows

Plan plan(const Space& s, const Caps& caps, int per_lane, DimTable& dims) {
  Plan p;
  p.first_inner = s.extent.size();
  while (p.first_inner > 0) {
    const auto c = s.extent[p.first_inner - 1].constant();
    const bool last = p.first_inner == s.extent.size();
    if (!c) {
      if (last) p.first_inner -= 1, p.inner = -1, p.inner_dim = s.extent.back();
      break;
    }
    if (!last && (p.inner >= 4 * caps.lanes || (p.inner > 0 && *c > (1 << 20) / p.inner))) break;
    p.inner *= *c;
    p.first_inner -= 1;
  }
  if (p.inner >= 0) p.inner_dim = p.inner;
  const auto most_parts = [&](int64_t size) { return dims.range(dims.ceildiv(p.inner_dim, size)).second; };
  p.lanes = stream_lanes(caps, p.inner < 0 ? -1 : most_parts(per_lane));
  const int64_t vector = static_cast<int64_t>(p.lanes) * per_lane;
  p.chunks = std::clamp<int64_t>(most_parts(vector), 1, std::max<int64_t>(1, kEnough / vector));
  return p;
}

// An output whose lines would only push others out of the caches: larger than any last level, so nobody finds it there
// later.
constexpr int64_t kStreamBytes = 64 << 20;

class Region {
 public:
  Region(Launcher& l, const Space& s, const Plan& p, int per_lane)
      : l_(l),
        s_(s),
        p_(p),
        per_lane_(per_lane),
        vector_(static_cast<int64_t>(p.lanes) * per_lane),
        axes_(s.extent.size()) {}

  Status build() {
    DimTable& dims = l_.dims();
    const int64_t tile = vector_ * p_.chunks;
    const Dim tiles = dims.ceildiv(p_.inner_dim, tile);
    Dim groups = tiles;
    for (size_t a = 0; a < p_.first_inner; ++a) groups = dims.mul(groups, s_.extent[a]);
    V rest = kir::group(), block = kir::constant(kir::u32, 0);
    if (tiles != Dim(1)) {
      block = p_.first_inner == 0 ? rest : rest % l_.argument(tiles);
      if (p_.first_inner > 0) rest = rest / l_.argument(tiles);
    }
    for (size_t a = p_.first_inner; a-- > 0;) {
      axes_[a] = a == 0 ? rest : rest % l_.argument(s_.extent[a]);
      if (a > 0) rest = rest / l_.argument(s_.extent[a]);
    }
    const bool exact = p_.inner >= 0 && p_.inner % tile == 0;
    auto chunk = [&](V c) {
      const V first = (block * static_cast<int>(p_.chunks) + c) * static_cast<int>(vector_) + kir::lane() * per_lane_;
      auto body = [&] { per_lane_ == 1 ? element(first) : words(first); };
      if (exact) return body();
      kir::If(first < l_.size(p_.inner_dim), body);
    };
    if (p_.chunks == 1)
      chunk(kir::constant(kir::u32, 0));
    else
      kir::For(0, static_cast<uint32_t>(p_.chunks), chunk);
    return l_.launch(groups);
  }

 private:
  // Coordinates of an element, counted along the inner axes.
  void place(V e) {
    for (size_t a = s_.extent.size(); a-- > p_.first_inner;) {
      const bool outermost = a == p_.first_inner;
      axes_[a] = outermost ? e : e % l_.size(s_.extent[a]);
      if (!outermost) e = e / l_.size(s_.extent[a]);
    }
  }

  std::vector<V> values() {
    ExprInputs in;
    in.axes = axes_;
    in.lane_axes = p_.first_inner;
    in.index = [&](uint16_t old) {
      return s_.axis_of[old] < 0 ? kir::constant(kir::u32, 0) : axes_[static_cast<size_t>(s_.axis_of[old])];
    };
    return emit_expr(l_, s_.expr, in);
  }

  void element(const V& e) {
    place(e);
    const std::vector<V> all = values();
    for (const Output& o : s_.outs) {
      store_one(o, map_index(l_, o.map, axes_, p_.first_inner), all[o.result]);
    }
  }

  void store_one(const Output& o, const V& at, const V& v) {
    const kir::Buffer y = l_.operand(o.operand);
    if (!is_wide(l_.problem().operands[o.operand].type.dtype) || l_.caps().i64)
      return y.store(at, convert(v, kir::type_info(y.type()).loaded));
    const bool positive = v.type() == kir::u32;
    const V low = convert(v, positive ? kir::u32 : kir::i32);
    y.as(kir::u32, 2)
        .store(at, {kir::bitcast(kir::u32, low),
                    positive ? kir::constant(kir::u32, 0) : kir::bitcast(kir::u32, low >> 31)});
  }

  // Several neighbours a lane, stored as words where the device stores nothing smaller.
  void words(const V& first) {
    std::vector<std::vector<V>> all;
    for (int k = 0; k < per_lane_; ++k) {
      place(first + k);
      all.push_back(values());
    }
    for (const Output& o : s_.outs) {
      const int width = store_width(l_.problem().operands[o.operand].type.dtype, l_.caps());
      for (int k = 0; k < per_lane_; k += width) {
        place(first + k);
        const V at = map_index(l_, o.map, axes_, p_.first_inner);
        if (width == 1) {
          store_one(o, at, all[static_cast<size_t>(k)][o.result]);
          continue;
        }
        const kir::Buffer y = l_.operand(o.operand);
        const kir::Type loaded = kir::type_info(y.type()).loaded;
        std::vector<V> v;
        for (int w = 0; w < width; ++w) v.push_back(convert(all[static_cast<size_t>(k + w)][o.result], loaded));
        y.as(y.type(), width).store(at / width, v);
      }
    }
  }

  Launcher& l_;
  const Space& s_;
  const Plan& p_;
  int per_lane_;
  int64_t vector_;
  std::vector<V> axes_;
};

// A device without 64-bit integers stores those that were widened at the end, as two words: sizes are i64 in graphs.
// The Problem with such widenings left out; the operands keep their type.
Problem narrowed(const Problem& problem, const Caps& caps) {
  Problem p = problem;
  if (caps.i64 || p.parts.size() != 1) return p;
  std::vector<ScalarExpr::Ins>& code = p.prologue.code;
  std::vector<bool> read(code.size());
  for (const ScalarExpr::Ins& i : code) {
    const uint16_t from[] = {i.a, i.b, i.c};
    for (int a = 0; i.kind == ScalarExpr::Kind::op && a < scalar_row(i.op).arity; ++a) read[from[a]] = true;
  }
  for (const Output& o : p.parts[0].outs) {
    if (o.result >= code.size() || read[o.result]) continue;
    ScalarExpr::Ins& i = code[o.result];
    if (!is_wide(i.type)) continue;
    if (i.kind == ScalarExpr::Kind::op && i.op == ScalarOp::cast && !is_wide(code[i.a].type) &&
        !is_float(code[i.a].type))
      i.type = code[i.a].type == DType::u32 ? DType::u32 : DType::i32;
  }
  return p;
}

// The same with those outputs as the words that they are.
Problem stored_as(Problem p) {
  for (const Output& o : p.parts[0].outs) {
    TensorType& type = p.operands[o.operand].type;
    if (!is_wide(type.dtype) || is_wide(p.prologue.code[o.result].type)) continue;
    type.dtype = DType::u32;
    type.shape.push_back(2);
  }
  return p;
}

Status build_region(const Problem& whole, const Bid&, BuildCtx& ctx) {
  DimTable& dims = ctx.asked.dims;
  const Problem problem = narrowed(whole, ctx.asked.caps);
  const Space s = joined(problem, dims);
  const int per_lane = elements_a_lane(problem, ctx.asked.caps);
  const Plan p = plan(s, ctx.asked.caps, per_lane, dims);
  Launcher l(ctx, problem, "region", p.lanes);
  for (const Output& o : s.outs) {
    const auto bytes = kDense.bytes(dims, problem.operands[o.operand].type, {});
    if (bytes && dims.range(*bytes, problem.bounds).first >= kStreamBytes) l.stream(o.operand);
  }
  return Region(l, s, p, per_lane).build();
}

OrRefuse<std::vector<Bid>> bid_region(const Problem& whole, const Asked& asked) {
  const Problem problem = narrowed(whole, asked.caps);
  if (problem.parts.size() != 1 || problem.parts[0].outs.empty()) return refuse("a region has one part with outputs");
  for (const Output& o : problem.parts[0].outs) {
    if (o.kind != Output::Kind::map) return refuse("a region does not write row statistics");
    if (o.result >= problem.prologue.code.size()) return refuse("an output names no instruction");
  }
  TERN_ACCEPT(std::vector<Layout> layouts, dense_layouts(problem));
  TERN_ACCEPT(Unit fit, check_bindings(asked.caps.i64 ? problem : stored_as(problem), layouts, asked));
  TERN_ACCEPT(fit, check_expr(problem.prologue, asked.caps));
  TERN_ACCEPT(fit, check_word_stores(joined(problem, asked.dims), elements_a_lane(problem, asked.caps), asked.dims));
  Bid bid;
  bid.layouts = layouts;
  bid.numerics = numerics_tag("region 1", {}, asked.caps);
  double elements = 1;
  for (Dim d : problem.extent) elements *= largest(asked, problem, d);
  for (size_t i = 0; i < layouts.size(); ++i) bid.bytes += bytes_of(problem.operands[i], layouts[i], problem, asked);
  bid.flop = elements * expr_flop(problem.prologue);
  bid.seconds =
      asked.caps.launch_s + std::max(bid.bytes / asked.caps.read_bytes_per_s, bid.flop / asked.caps.flop_per_s);
  bid.variant = "lanes";
  return std::vector<Bid>{bid};
}

}  // namespace
}  // namespace kernels

extern const Candidate kRegionKernel;
const Candidate kRegionKernel = {"region", Family::region, kernels::bid_region, kernels::build_region};

}  // namespace tern
