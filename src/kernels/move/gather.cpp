// gather: out[o, i, n] = data[o, index[i], n]; an index outside the axis gives zeros. Data dense, or decoded out of
// packed or float tiles: the embedding shares its buffer with the output matmul.
#include <algorithm>

#include "kernels/common/expr.h"
#include "kernels/common/packed.h"
#include "kernels/common/rows.h"

namespace tern {

namespace kernels {
namespace {

using kir::V;

struct Roles {
  uint16_t data, index, out;
};

OrRefuse<Roles> roles(const Problem& p) {
  const int data = find_role(p, Role::weight) >= 0 ? find_role(p, Role::weight) : find_role(p, Role::x);
  const int index = find_role(p, Role::index), out = find_role(p, Role::out);
  if (data < 0 || index < 0 || out < 0 || p.extent.size() != 3)
    return refuse("wants data, index, out and three extents");
  return Roles{static_cast<uint16_t>(data), static_cast<uint16_t>(index), static_cast<uint16_t>(out)};
}

// Rows are copied as words where they are whole ones: no element type matters then.
bool copies_words(const Problem& p, const Roles& r, DimTable& dims) {
  const Operand &data = p.operands[r.data], &out = p.operands[r.out];
  return !data.type.format && is_dense(data.layout) && data.type.dtype == out.type.dtype &&
         dims.divisible(dims.mul(p.extent[2], dtype_bytes(data.type.dtype)), 4).value_or(false);
}

// Writes one row's values: value(n) for n below columns, `lanes` at a time; group holds one row.
struct Source {
  kir::Buffer data;
  V row;  // within the window
};

void copy_words(Launcher& l, const Roles& r, const Source& s, V out_row, bool zero) {
  const int64_t size = dtype_bytes(l.problem().operands[r.out].type.dtype);
  const Dim words = l.dims().floordiv(l.dims().mul(l.problem().extent[2], size), 4);
  const V n = l.argument(words);
  const kir::Buffer y = l.operand(r.out).as(kir::u32), x = s.data.as(kir::u32);
  const int lanes = static_cast<int>(l.b().lanes());
  kir::For(0, l.argument(l.dims().ceildiv(words, lanes)), [&](V c) {
    const V at = c * lanes + kir::lane();
    kir::If(at < n, [&] { y.store(out_row * n + at, zero ? kir::constant(kir::u32, 0) : x[s.row * n + at]); });
  });
}

void copy_elements(Launcher& l, const Roles& r, const Source& s, V out_row, bool zero) {
  const Problem& p = l.problem();
  const V n = l.argument(p.extent[2]);
  const kir::Buffer y = l.operand(r.out);
  const int lanes = static_cast<int>(l.b().lanes());
  const Layout& layout = p.operands[r.data].layout;
  const bool tiled = layout && layout.def == &kFloatTiles;
  const kir::Type loaded = kir::type_info(y.type()).loaded;
  kir::For(0, l.argument(l.dims().ceildiv(p.extent[2], lanes)), [&](V c) {
    const V at = c * lanes + kir::lane();
    kir::If(at < n, [&] {
      V v = kir::constant(loaded == kir::b1 ? kir::u32 : loaded, 0);
      if (!zero && tiled) {
        const int rows = layout.tile[0];
        const auto type = kir::storage_type(p.operands[r.data].type.dtype);
        v = s.data.as(*type)[((s.row / rows) * n + at) * rows + s.row % rows];
      } else if (!zero) {
        v = s.data[s.row * n + at];
      }
      y.store(out_row * n + at, convert(v, loaded));
    });
  });
}

// 32 lanes, one a column of a block.
void decode_packed(Launcher& l, const Roles& r, const Packed& f, const Source& s, V out_row, bool zero) {
  const Problem& p = l.problem();
  const V n = l.argument(p.extent[2]), column = kir::lane();
  const kir::Buffer y = l.operand(r.out);
  const V spans = l.argument(l.dims().floordiv(p.extent[2], f.span_columns())), tile = s.row / f.rows,
          row = s.row % f.rows;
  kir::For(0, spans, [&](V span) {
    const PackedRow packed(f, s.data.as(kir::u32), tile * spans + span, row);
    kir::For(0, f.span_blocks, [&](V j) {
      const V block = kir::cast(kir::u32, j);
      V value = kir::constant(kir::f32, 0);
      if (!zero) {
        const V codes = packed.codes4(block, column / 4), group = column / f.group;
        const V code = kir::bitcast(kir::i32, codes >> (column % 4 * 8) & 0xff) * f.step - f.zero;
        value = kir::cast(kir::f32, code) * packed.scale(block, group);
        if (f.has_min) value = value + packed.min(block, group);
      }
      y.store(out_row * n + (span * f.span_blocks + block) * 32 + column, value);
    });
  });
}

Status build_window(const Problem& problem, BuildCtx& ctx, const Roles& r, int64_t first, int64_t rows,
                    const Use& use) {
  DimTable& dims = ctx.asked.dims;
  const Operand& data = problem.operands[r.data];
  const bool packed = data.layout && data.layout.def == &kPackedTiles;
  const bool words = copies_words(problem, r, dims);
  const int64_t inner = dims.range(problem.extent[2], problem.bounds).second;
  Launcher l(ctx, problem, "gather", packed ? 32 : stream_lanes(ctx.asked.caps, inner));
  const auto type = kir::storage_type(data.type.dtype);
  Source s;
  s.data = l.bind(use, "data",
                  data.type.format || words || (data.layout && data.layout.def != &kDense) || !type ? kir::u32 : *type);
  const V i = problem.extent[0] == Dim(1) ? kir::group() : kir::group() % l.argument(problem.extent[1]);
  const V o = problem.extent[0] == Dim(1) ? kir::constant(kir::u32, 0) : kir::group() / l.argument(problem.extent[1]);
  const Shape& shape = data.type.shape;
  const V axis = l.argument(shape[shape.size() - 2]), id = load_index(l, r.index, i);
  auto write = [&](bool zero) {
    if (packed) {
      const auto f = packed_shape(data.type, data.layout.tile);
      decode_packed(l, r, *f, s, kir::group(), zero);
    } else {
      words ? copy_words(l, r, s, kir::group(), zero) : copy_elements(l, r, s, kir::group(), zero);
    }
  };
  const V row = o * axis + id, start = l.scalar(first), count = l.scalar(rows);
  kir::If(id < axis, [&] {
    kir::If(start <= row && row < start + count, [&] {
      s.row = row - start;
      write(false);
    });
  });
  kir::If(id >= axis && start == 0, [&] { write(true); });
  return l.launch(dims.mul(problem.extent[0], problem.extent[1]));
}

Status build_gather(const Problem& problem, const Bid&, BuildCtx& ctx) {
  const auto r = roles(problem);
  if (!r) return make_error(Code::internal, r.why());
  const Operand& data = problem.operands[r->data];
  const int64_t unit = data.layout.def->window_axis < 0 ? 1 : data.layout.def->window_unit(data.layout.tile);
  const int64_t rows =
      ctx.asked.dims
          .range(data.type.shape.size() > 2 ? ctx.asked.dims.mul(data.type.shape[0], data.type.shape[1])
                                            : data.type.shape[0])
          .second;
  return for_windows(problem, r->data, data.layout, ctx, [&](int64_t first, int64_t units, Use use) {
    const bool all = first == 0 && (units + 1) * unit > rows;
    return build_window(problem, ctx, *r, first * unit, all ? std::max<int64_t>(rows, 1) : units * unit, use);
  });
}

OrRefuse<std::vector<Bid>> bid_gather(const Problem& problem, const Asked& asked) {
  TERN_ACCEPT(const Roles r, roles(problem));
  TERN_ACCEPT([[maybe_unused]] const Unit fit, check_index(problem.operands[r.index]));
  const Operand &data = problem.operands[r.data], &out = problem.operands[r.out];
  if (!is_dense(out.layout) || !is_dense(problem.operands[r.index].layout)) return refuse("writes dense rows only");
  if (!problem.prologue.empty() || (!problem.parts.empty() && !problem.parts[0].epilogue.empty()))
    return refuse("takes no expression");
  std::vector<Layout> choices;
  if (data.layout)
    choices = {data.layout};
  else if (data.type.format) {
    TERN_ACCEPT(choices, packed_layouts(data.type));
  } else {
    choices = float_layouts(data.type);
    choices.insert(choices.begin(), {&kDense, {}});
  }
  std::vector<Bid> bids;
  std::string why;
  for (const Layout& layout : choices) {
    std::vector<Layout> layouts(problem.operands.size(), Layout{&kDense, {}});
    layouts[r.data] = layout;
    Problem laid = problem;
    laid.operands[r.data].layout = layout;
    if (data.type.format && layout.def != &kPackedTiles) {
      why = "blocks of " + std::string(data.type.format->name) + " in " + std::string(layout.def->name);
      continue;
    }
    if (layout.def == &kPackedTiles && asked.caps.max_lanes < 32) {
      why = "decodes 32 columns at once";
      continue;
    }
    if (layout.def == &kActInt8) {
      why = "does not read int8 blocks";
      continue;
    }
    const bool words = copies_words(laid, r, asked.dims);
    const uint32_t size = dtype_bytes(out.type.dtype);
    if (!words && ((size == 2 && !asked.caps.f16_storage) || (size == 1 && !asked.caps.byte_storage))) {
      why = "rows are no whole words, and the device stores nothing smaller";
      continue;
    }
    if (!words) {
      if (const auto t = storage_of(out.type, asked.caps); !t) {
        why = t.why();
        continue;
      }
    }
    const auto pieces = window_count(data, layout, problem.bounds, asked);
    if (!pieces) {
      why = pieces.why();
      continue;
    }
    Bid bid;
    bid.layouts = std::move(layouts);
    bid.numerics = numerics_tag("gather 1", {}, asked.caps);
    bid.launches = *pieces;
    bid.bytes = 2 * bytes_of(out, bid.layouts[r.out], problem, asked);
    bid.seconds = asked.caps.launch_s * *pieces + bid.bytes / asked.caps.read_bytes_per_s;
    bid.variant = words ? "words" : std::string(layout.def->name);
    bids.push_back(std::move(bid));
  }
  if (bids.empty()) return refuse(why);
  return bids;
}

}  // namespace
}  // namespace kernels

extern const Candidate kGatherKernel;
const Candidate kGatherKernel = {"gather", Family::gather, kernels::bid_gather, kernels::build_gather};

}  // namespace tern
