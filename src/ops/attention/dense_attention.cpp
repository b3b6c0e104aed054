// dense_attention: batches of equal lengths; decomposes into products, a softmax and a mask made of index comparisons.
#include <cmath>
#include <limits>

#include "graph/text/text.h"
#include "ops/attention/rules.h"
#include "ops/common/decompose.h"
#include "ops/op_list.h"
#include "tern/ops/attention.h"
#include "tern/ops/elementwise.h"
#include "tern/ops/linear.h"
#include "tern/ops/norm.h"
#include "tern/ops/reduce.h"
#include "tern/ops/shape.h"

namespace tern {
namespace {

enum : size_t { kScale, kCausal, kWindow, kCap, kOffset, kMask, kSinks };
constexpr AttrSpec kAttrs[] = {{.name = "scale", .kind = AttrKind::real},
                               {.name = "causal", .kind = AttrKind::boolean, .optional = true, .number = 1},
                               {.name = "window", .kind = AttrKind::integer, .optional = true},
                               {.name = "soft_cap", .kind = AttrKind::real, .optional = true},
                               {.name = "q_offset", .kind = AttrKind::dim, .optional = true},
                               {.name = "mask", .kind = AttrKind::boolean, .optional = true},    // operand 3
                               {.name = "sinks", .kind = AttrKind::boolean, .optional = true}};  // the last operand
constexpr double kInf = std::numeric_limits<double>::infinity();

Types infer(InferCtx& ctx) {
  for (size_t i = 0; i < 3; ++i) TERN_OK(ctx.rank(i, 4));
  TERN_OK(check_heads(ctx));
  TERN_OK(check_attention(ctx, kScale));
  const Shape &q = ctx.in[0].shape, &k = ctx.in[1].shape, &v = ctx.in[2].shape;
  TERN_OK(ctx.same(q[0], k[0], "batch of queries and keys"));
  TERN_OK(ctx.same(k[0], v[0], "batch of keys and values"));
  TERN_OK(ctx.same(k[1], v[1], "length of keys and values"));
  if (ctx.in[0].dtype != ctx.in[1].dtype)
    return ctx.error(text_of(ctx, 0) + " and " + text_of(ctx, 1) + " want one type");
  const bool mask = ctx.attr<bool>(kMask), sinks = ctx.attr<bool>(kSinks);
  if (ctx.in.size() != size_t{3} + mask + sinks)
    return ctx.error("takes " + std::to_string(3 + mask + sinks) + " operands with these flags, got " +
                     std::to_string(ctx.in.size()));
  if (mask) {
    TERN_OK(check_mask(ctx, 3));
    TERN_OK(ctx.rank(3, 4));
    const Dim want[] = {q[0], q[2], q[1], k[1]};
    for (size_t a = 0; a < 4; ++a) {
      if (a < 3 && is_one(ctx.in[3].shape[a])) continue;
      TERN_OK(ctx.same(ctx.in[3].shape[a], want[a], "mask, axis " + std::to_string(a)));
    }
  }
  if (sinks) TERN_OK(check_sinks(ctx, ctx.in.size() - 1, q[2]));
  return one(ctx.in[0].dtype, {q[0], q[1], q[2], v[3]});
}

Status reference(const Node& node, RefTensors& r) {
  const RefTensor &q = *r.in[0], &k = *r.in[1], &v = *r.in[2];
  const int64_t batch = q.shape[0], sq = q.shape[1], hq = q.shape[2], d = q.shape[3], sk = k.shape[1], hk = k.shape[2],
                dv = v.shape[3], window = attr<int64_t>(node, kWindow);
  TERN_TRY(const int64_t offset, number(r, attr<Dim>(node, kOffset)));
  Extents mask_stride(4, 0);
  if (attr<bool>(node, kMask)) {
    const Extents all = strides_of(r.in[3]->shape);
    for (size_t a = 0; a < 4; ++a) mask_stride[a] = r.in[3]->shape[a] == 1 ? 0 : all[a];
  }
  std::vector<double> scores(static_cast<size_t>(sk));
  walk({batch, sq, hq}, 0, {0, 0, 0}, [&](int64_t n, int64_t) {
    const int64_t h = n % hq, i = n / hq % sq, b = n / hq / sq, position = i + offset, kv = h / (hq / hk);
    for (int64_t j = 0; j < sk; ++j) {
      double& s = scores[static_cast<size_t>(j)];
      s = 0;
      for (int64_t c = 0; c < d; ++c)
        s += q.f[static_cast<size_t>(n * d + c)] * k.f[static_cast<size_t>(((b * sk + j) * hk + kv) * d + c)];
      s = capped(s * attr<double>(node, kScale), attr<double>(node, kCap));
      if ((attr<bool>(node, kCausal) && j > position) || (window && position - j >= window)) s = -kInf;
      if (!attr<bool>(node, kMask)) continue;
      const auto at =
          static_cast<size_t>(b * mask_stride[0] + h * mask_stride[1] + i * mask_stride[2] + j * mask_stride[3]);
      if (r.in[3]->dtype != DType::boolean)
        s += r.in[3]->f[at];
      else if (!r.in[3]->i[at])
        s = -kInf;
    }
    std::optional<double> sink;
    if (attr<bool>(node, kSinks)) sink = r.in.back()->f[static_cast<size_t>(h)];
    attention_weights(scores, sink);
    for (int64_t j = 0; j < sk; ++j) {
      if (scores[static_cast<size_t>(j)] == 0) continue;  // a masked key may hold anything
      for (int64_t c = 0; c < dv; ++c)
        r.out[0].f[static_cast<size_t>(n * dv + c)] +=
            scores[static_cast<size_t>(j)] * v.f[static_cast<size_t>(((b * sk + j) * hk + kv) * dv + c)];
    }
  });
  return ok();
}

// Where the mask of the attributes hides a key, over [Sq, Sk]; invalid: nowhere.
Value hidden(Builder& b, const Node& node, Dim sq, Dim sk) {
  const bool causal = attr<bool>(node, kCausal);
  const int64_t window = attr<int64_t>(node, kWindow);
  if (!causal && window == 0) return {};
  const Value row = iota(b, {sq, sk}, 0), i = add(b, row, dim_value(b, attr<Dim>(node, kOffset), DType::i32));
  const Value j = iota(b, {sq, sk}, 1);
  Value out;
  if (causal) out = greater(b, j, i);
  if (window) {
    const Value far = greater_equal(b, sub(b, i, j), b.constant(DType::i32, static_cast<double>(window)));
    out = out.valid() ? bit_or(b, out, far) : far;
  }
  return out;
}

// Every query is known to see a key: its own or the first, for want of a mask.
bool sees_something(DimTable& dims, const Node& node, Dim sq, Dim sk) {
  if (attr<bool>(node, kSinks)) return true;
  if (attr<bool>(node, kMask) || dims.range(sk).first < 1) return false;
  const Dim offset = attr<Dim>(node, kOffset);
  if (attr<bool>(node, kCausal) && dims.range(offset).first < 0) return false;
  return attr<int64_t>(node, kWindow) == 0 || dims.range(dims.sub(sk, dims.add(offset, sq))).first >= 0;
}

// Scores lie as [B, Hk, Sq, G, Sk], G query heads a key head.
Result<std::vector<Value>> decompose(Builder& b, const Node& node, std::span<const Value> in) {
  const TensorType type = b.type(in[0]);
  const Shape q = type.shape, k = b.type(in[1]).shape;
  DimTable& dims = b.dims();
  const Dim hk = k[2], group = dims.floordiv(q[2], hk), sq = q[1], sk = k[1];
  const Shape lie{q[0], hk, sq, group, sk};
  const Value qs = reshape(b, compute_cast(b, in[0]), {q[0], sq, hk, group, q[3]}), ks = compute_cast(b, in[1]),
              vs = compute_cast(b, in[2]);
  Value s = dot_general(b, qs, ks, {{4}, {3}, {0, 2}, {0, 2}});
  s = mul(b, s, attr<double>(node, kScale));
  if (const double cap = attr<double>(node, kCap); cap > 0) s = mul(b, tanh(b, div(b, s, cap)), cap);
  const DType wide = b.failed() ? type.dtype : b.type(s).dtype;
  const Value low = b.constant(wide, -kInf);
  if (const Value h = hidden(b, node, sq, sk); h.valid()) s = select(b, broadcast(b, h, lie, {2, 4}), low, s);
  if (attr<bool>(node, kMask)) {  // [B, Hq, Sq, Sk] -> [B, Hk, Sq, G, Sk]
    const Shape m = b.type(in[3]).shape;
    const Dim mh = is_one(m[1]) ? Dim(1) : hk, mg = is_one(m[1]) ? Dim(1) : group;
    const Value apart = transpose(b, reshape(b, in[3], {m[0], mh, mg, m[2], m[3]}), {0, 1, 3, 2, 4});
    const Value mask = broadcast_to(b, apart, lie);
    if (b.failed()) return Error(*b.error());
    s = b.type(mask).dtype == DType::boolean ? select(b, mask, s, low) : add(b, s, cast(b, mask, wide));
  }
  const Value seen = sees_something(dims, node, sq, sk) ? Value{} : greater(b, reduce_max(b, s, {4}, true), low);
  if (attr<bool>(node, kSinks)) {  // one more column without a value
    Shape column = lie;
    column[4] = 1;
    const Value sinks = reshape(b, cast(b, in.back(), wide), {hk, group});
    s = concat(b, {s, broadcast(b, sinks, column, {1, 3})}, 4);
  }
  Value p = softmax(b, s, 4);
  if (attr<bool>(node, kSinks)) p = slice(b, p, 4, 0, sk);
  if (seen.valid()) p = select(b, broadcast_to(b, seen, lie), p, b.constant(wide, 0));
  const Value y = dot_general(b, p, vs, {{4}, {1}, {0, 1}, {0, 2}});  // [B, Hk, Sq, G, Dv]
  const Value back = reshape(b, transpose(b, y, {0, 2, 1, 3, 4}), node.out[0].shape);
  return take(b, {cast(b, back, type.dtype)});
}

}  // namespace

constinit const OpDef kDenseAttentionOp{.name = "dense_attention",
                                        .kind = OpKind::composite,
                                        .min_in = 3,
                                        .max_in = 5,
                                        .attrs = kAttrs,
                                        .infer = infer,
                                        .decompose = decompose,
                                        .reference = reference};

Value dense_attention(Builder& b, Value q, Value k, Value v, const AttentionOptions& o, Dim q_offset, Value mask,
                      Value sinks) {
  std::vector<Value> in{q, k, v};
  if (mask.valid()) in.push_back(mask);
  if (sinks.valid()) in.push_back(sinks);
  return b.op("dense_attention", std::move(in),
              {o.scale, o.causal, o.window, o.soft_cap, q_offset, mask.valid(), sinks.valid()});
}

}  // namespace tern
