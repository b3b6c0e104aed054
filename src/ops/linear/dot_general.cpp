// dot_general: sums of products over the contracted axes, for every batch index; the result's axes are batch, free axes
// of lhs, free axes of rhs (as StableHLO's dot_general). The right side may be a quantised weight, contracted along its
// blocks.
#include <algorithm>

#include "ops/common/rules.h"
#include "ops/common/stored.h"
#include "ops/op_list.h"

namespace tern {
namespace {

constexpr AttrSpec kAttrs[] = {{.name = "lhs_contract", .kind = AttrKind::ints},
                               {.name = "rhs_contract", .kind = AttrKind::ints},
                               {.name = "lhs_batch", .kind = AttrKind::ints, .optional = true},
                               {.name = "rhs_batch", .kind = AttrKind::ints, .optional = true},
                               {.name = "precision", .kind = AttrKind::text, .optional = true, .text = "normal"}};
using Axes = std::vector<size_t>;

// Floats: what the left side is, accumulated in f32 or better. Integers up to 32 bits: exact in i32; wider ones in
// themselves.
Result<DType> result_type(InferCtx& ctx) {
  const DType a = ctx.in[0].dtype, b = ctx.in[1].dtype;
  if (is_float(a) && is_float(b) && (a == DType::f64) == (b == DType::f64)) return a;
  if (is_int(a) && is_int(b)) {
    const auto small = [](DType d) { return d == DType::i32 || dtype_bytes(d) < 4; };
    if (small(a) && small(b)) return DType::i32;
    if (a == b) return a;
  }
  return ctx.error(text_of(ctx, 0) + " and " + text_of(ctx, 1) +
                   ", wants two floats (f64 with f64), integers of at most i32, or equal integers");
}

Axes free_axes(size_t rank, const Axes& batch, const Axes& contract) {
  Axes out;
  for (size_t i = 0; i < rank; ++i) {
    if (std::find(batch.begin(), batch.end(), i) == batch.end() &&
        std::find(contract.begin(), contract.end(), i) == contract.end())
      out.push_back(i);
  }
  return out;
}

Status check_blocks(InferCtx& ctx, const Axes& contract) {
  TERN_OK(dense(ctx, 0));
  const TensorType& w = ctx.in[1];
  if (!w.format) return ok();
  if (contract.size() != 1 || contract[0] + 1 != w.shape.size())
    return ctx.error(text_of(ctx, 1) + ", a quantised weight is contracted along its last axis");
  return ok();
}

Types infer(InferCtx& ctx) {
  const Shape &l = ctx.in[0].shape, &r = ctx.in[1].shape;
  using Ints = std::vector<int64_t>;
  TERN_TRY(const Axes lc, front_axes(ctx, ctx.attr<Ints>(0), l.size()));
  TERN_TRY(const Axes rc, front_axes(ctx, ctx.attr<Ints>(1), r.size()));
  TERN_TRY(const Axes lb, front_axes(ctx, ctx.attr<Ints>(2), l.size()));
  TERN_TRY(const Axes rb, front_axes(ctx, ctx.attr<Ints>(3), r.size()));
  if (lc.size() != rc.size() || lb.size() != rb.size())
    return ctx.error("both sides want equally many contracted and batch axes");
  if (const auto& precision = ctx.attr<std::string>(4); precision != "normal" && precision != "high")
    return ctx.error("precision '" + precision + "', wants normal or high");
  const Axes lf = free_axes(l.size(), lb, lc), rf = free_axes(r.size(), rb, rc);
  if (lf.size() + lb.size() + lc.size() != l.size() || rf.size() + rb.size() + rc.size() != r.size())
    return ctx.error("an axis is both contracted and batch");
  TERN_TRY(const DType dtype, result_type(ctx));
  TERN_OK(check_blocks(ctx, rc));
  Shape shape;
  for (size_t i = 0; i < lb.size(); ++i) {
    TERN_OK(ctx.same(l[lb[i]], r[rb[i]], "batch axis " + std::to_string(i)));
    shape.push_back(l[lb[i]]);
  }
  for (size_t i = 0; i < lc.size(); ++i) TERN_OK(ctx.same(l[lc[i]], r[rc[i]], "contracted axis"));
  for (size_t a : lf) shape.push_back(l[a]);
  for (size_t a : rf) shape.push_back(r[a]);
  return one(dtype, std::move(shape));
}

// Offsets of all index combinations of some axes, in row-major order.
Extents offsets(const Extents& shape, const Axes& axes) {
  const Extents all = strides_of(shape);
  Extents extent, stride, out;
  for (size_t a : axes) extent.push_back(shape[a]), stride.push_back(all[a]);
  walk(extent, 0, stride, [&](int64_t, int64_t index) { out.push_back(index); });
  return out;
}

struct Sides {
  Extents lb, lf, lc, rb, rf, rc;
};

double dot(const double* a, const double* b, int64_t k) {
  double s[4] = {0, 0, 0, 0};
  int64_t i = 0;
  for (; i + 4 <= k; i += 4) {
    for (int64_t j = 0; j < 4; ++j) s[j] += a[i + j] * b[i + j];
  }
  for (; i < k; ++i) s[0] += a[i] * b[i];
  return (s[0] + s[1]) + (s[2] + s[3]);
}

// Rows of the right side are decoded a few at a time and meet every row of the left.
Status float_dot(const Sides& s, const RefTensor& lhs, const RefOperand& rhs, RefTensor& out) {
  const auto m = static_cast<int64_t>(s.lf.size()), n = static_cast<int64_t>(s.rf.size()),
             k = static_cast<int64_t>(s.lc.size());
  constexpr int64_t kRows = 16;
  std::vector<double> a(static_cast<size_t>(m * k)), b(static_cast<size_t>(kRows * k)), whole;
  bool run = !rhs.dense;  // contracted elements lie side by side
  for (size_t i = 0; run && i < s.rc.size(); ++i) run = s.rc[i] == static_cast<int64_t>(i);
  RefOperand from = rhs;
  RefTensor decoded;
  if (!rhs.dense && !run) {
    TERN_TRY(decoded, ref_from(*rhs.stored));
    from = {&decoded, nullptr};
  }
  for (size_t batch = 0; batch < s.lb.size(); ++batch) {
    for (int64_t i = 0; i < m * k; ++i)
      a[static_cast<size_t>(i)] =
          lhs.f[static_cast<size_t>(s.lb[batch] + s.lf[static_cast<size_t>(i / k)] + s.lc[static_cast<size_t>(i % k)])];
    for (int64_t first = 0; first < n; first += kRows) {
      const int64_t rows = std::min(kRows, n - first);
      for (int64_t r = 0; r < rows; ++r) {
        const int64_t base = s.rb[batch] + s.rf[static_cast<size_t>(first + r)];
        double* row = b.data() + r * k;
        if (from.stored)
          TERN_OK(from.read(base, k, row));
        else
          for (int64_t i = 0; i < k; ++i)
            row[i] = from.dense->f[static_cast<size_t>(base + s.rc[static_cast<size_t>(i)])];
      }
      for (int64_t i = 0; i < m; ++i) {
        double* y = out.f.data() + (static_cast<int64_t>(batch) * m + i) * n + first;
        for (int64_t r = 0; r < rows; ++r) y[r] = dot(a.data() + i * k, b.data() + r * k, k);
      }
    }
  }
  return ok();
}

void integer_dot(const Sides& s, const RefTensor& lhs, const RefTensor& rhs, RefTensor& out) {
  size_t at = 0;
  for (size_t batch = 0; batch < s.lb.size(); ++batch) {
    for (int64_t l : s.lf) {
      for (int64_t r : s.rf) {
        uint64_t sum = 0;  // wraps like the accumulator
        for (size_t i = 0; i < s.lc.size(); ++i)
          sum += static_cast<uint64_t>(lhs.i[static_cast<size_t>(s.lb[batch] + l + s.lc[i])]) *
                 static_cast<uint64_t>(rhs.i[static_cast<size_t>(s.rb[batch] + r + s.rc[i])]);
        out.i[at++] = wrap_to(out.dtype, static_cast<int64_t>(sum));
      }
    }
  }
}

Axes to_axes(const std::vector<int64_t>& list) { return Axes(list.begin(), list.end()); }

Status reference(const Node& node, RefTensors& r) {
  using Ints = std::vector<int64_t>;
  const Axes lc = to_axes(attr<Ints>(node, 0)), rc = to_axes(attr<Ints>(node, 1)), lb = to_axes(attr<Ints>(node, 2)),
             rb = to_axes(attr<Ints>(node, 3));
  RefOperand lhs = operand(r, 0), rhs = operand(r, 1);
  RefTensor decoded;
  if (!lhs.dense) {
    TERN_TRY(decoded, ref_from(*lhs.stored));
    lhs = {&decoded, nullptr};
  }
  const Extents &l = lhs.shape(), &w = rhs.shape();
  const Sides s{offsets(l, lb), offsets(l, free_axes(l.size(), lb, lc)), offsets(l, lc),
                offsets(w, rb), offsets(w, free_axes(w.size(), rb, rc)), offsets(w, rc)};
  if (is_float(lhs.dtype())) return float_dot(s, *lhs.dense, rhs, r.out[0]);
  integer_dot(s, *lhs.dense, *rhs.dense, r.out[0]);
  return ok();
}

}  // namespace

constinit const OpDef kDotGeneralOp{.name = "dot_general",
                                    .min_in = 2,
                                    .max_in = 2,
                                    .attrs = kAttrs,
                                    .infer = infer,
                                    .reference = reference,
                                    .reads_stored = true};

}  // namespace tern
