// attention over a paged KV state. Core: keys lie where a page table says, which no other op can express.
#include "tern/ops/attention.h"

#include <algorithm>
#include <cmath>

#include "ops/attention/kv_state.h"
#include "ops/attention/rules.h"
#include "ops/op_list.h"

namespace tern {
namespace {

enum : size_t { kKv, kPage, kScale, kCausal, kWindow, kCap, kMask, kSinks };
constexpr AttrSpec kAttrs[] = {{.name = "kv", .kind = AttrKind::text},
                               {.name = "page", .kind = AttrKind::integer},
                               {.name = "scale", .kind = AttrKind::real},
                               {.name = "causal", .kind = AttrKind::boolean, .optional = true, .number = 1},
                               {.name = "window", .kind = AttrKind::integer, .optional = true},
                               {.name = "soft_cap", .kind = AttrKind::real, .optional = true},
                               {.name = "mask", .kind = AttrKind::boolean, .optional = true},    // operand 7
                               {.name = "sinks", .kind = AttrKind::boolean, .optional = true}};  // the last operand
enum : size_t { kQ, kK, kV, kRowStart, kKvLength, kPages, kPosition, kExtra };

Types infer(InferCtx& ctx) {
  TERN_OK(ctx.rank(kQ, 3));
  TERN_OK(floats(ctx, kQ));
  TERN_OK(check_attention(ctx, kScale));
  const Shape& q = ctx.in[kQ].shape;
  const int64_t page = ctx.attr<int64_t>(kPage);
  TERN_TRY(const KvKind kind, kv_kind_of(ctx, kKv));
  TERN_TRY(const KvShape k, kv_shape(ctx, kK, kind, true, page));
  TERN_TRY(const KvShape v, kv_shape(ctx, kV, kind, false, page));
  TERN_OK(ctx.same(ctx.in[kK].shape[0], ctx.in[kV].shape[0], "pages of keys and values"));
  TERN_OK(ctx.same(k.heads, v.heads, "heads of keys and values"));
  TERN_OK(ctx.same(q[2], k.size, "head size of queries and keys"));
  const int64_t heads = q[1].constant().value_or(0);
  if (heads < 1 || heads % k.heads != 0)
    return ctx.error(text_of(ctx, kQ) + ", wants heads that are a multiple of the " + std::to_string(k.heads) +
                     " of keys");
  for (size_t i : {kRowStart, kKvLength, kPages, kPosition}) TERN_OK(want_dtype(ctx, i, DType::i32));
  for (size_t i : {kRowStart, kKvLength, kPosition}) TERN_OK(ctx.rank(i, 1));
  TERN_OK(ctx.rank(kPages, 2));
  const Dim sequences = ctx.in[kKvLength].shape[0];
  TERN_OK(
      ctx.same(ctx.in[kRowStart].shape[0], ctx.dims.add(sequences, 1), "row_start and one more than the sequences"));
  TERN_OK(ctx.same(ctx.in[kPages].shape[0], sequences, "pages and kv_length"));
  TERN_OK(ctx.same(ctx.in[kPosition].shape[0], q[0], "positions and queries"));
  const bool mask = ctx.attr<bool>(kMask), sinks = ctx.attr<bool>(kSinks);
  if (ctx.in.size() != kExtra + mask + sinks)
    return ctx.error("takes " + std::to_string(kExtra + mask + sinks) + " operands with these flags, got " +
                     std::to_string(ctx.in.size()));
  if (mask) {
    TERN_OK(check_mask(ctx, kExtra));
    const Shape& m = ctx.in[kExtra].shape;
    if (m.size() != 2 && m.size() != 3) return ctx.error(text_of(ctx, kExtra) + ", a mask is [T, C] or [T, Hq, C]");
    TERN_OK(ctx.same(m[0], q[0], "mask and queries"));
    if (m.size() == 3) TERN_OK(ctx.same(m[1], q[1], "mask and query heads"));
  }
  if (sinks) TERN_OK(check_sinks(ctx, ctx.in.size() - 1, q[1]));
  return one(ctx.in[kQ].dtype, {q[0], q[1], v.size});
}

struct Query {
  int64_t token, head, sequence;
};

class Paged {
 public:
  Paged(const Node& node, RefTensors& r)
      : node_(node),
        r_(r),
        kind_(*kv_kind_by_name(attr<std::string>(node, kKv))),
        page_(attr<int64_t>(node, kPage)),
        hq_(r.in[kQ]->shape[1]),
        d_(r.in[kQ]->shape[2]),
        dv_(r.out[0].shape[2]),
        keys_(*r.in[kK], kind_, true, page_, d_),
        values_(*r.in[kV], kind_, false, page_, dv_) {}

  void run(Query q) {
    std::vector<double> scores;
    std::vector<int64_t> slots;
    const int64_t keys = r_.in[kKvLength]->i[static_cast<size_t>(q.sequence)];
    const int64_t position = r_.in[kPosition]->i[static_cast<size_t>(q.token)];
    const int64_t window = attr<int64_t>(node_, kWindow);
    for (int64_t j = 0; j < keys; ++j) {
      if ((attr<bool>(node_, kCausal) && j > position) || (window && position - j >= window)) continue;
      const int64_t at = slot(q.sequence, j);
      const std::optional<double> bias = mask(q, j);
      if (at < 0 || !bias) continue;
      scores.push_back(capped(product(q, at) * attr<double>(node_, kScale), attr<double>(node_, kCap)) + *bias);
      slots.push_back(at);
    }
    std::optional<double> sink;
    if (attr<bool>(node_, kSinks)) sink = r_.in.back()->f[static_cast<size_t>(q.head)];
    attention_weights(scores, sink);
    double* y = r_.out[0].f.data() + (q.token * hq_ + q.head) * dv_;
    for (size_t j = 0; j < scores.size(); ++j) {
      for (int64_t c = 0; c < dv_; ++c) y[c] += scores[j] * values_.at(slots[j], kv_head(q), c);
    }
  }

 private:
  int64_t kv_head(Query q) const { return q.head / (hq_ / r_.in[kK]->shape[1]); }

  // Where key j lies; -1: the page table has no such place.
  int64_t slot(int64_t sequence, int64_t j) const {
    const RefTensor& pages = *r_.in[kPages];
    if (j / page_ >= pages.shape[1]) return -1;
    const int64_t page = pages.i[static_cast<size_t>(sequence * pages.shape[1] + j / page_)];
    const int64_t at = page * page_ + j % page_;
    return page < 0 || at >= r_.in[kK]->shape[0] * page_ ? -1 : at;
  }

  // What the mask adds; nothing: the key is not visible.
  std::optional<double> mask(Query q, int64_t j) const {
    if (!attr<bool>(node_, kMask)) return 0.0;
    const RefTensor& m = *r_.in[kExtra];
    const int64_t columns = m.shape.back();
    if (j >= columns) return std::nullopt;
    const int64_t row = m.shape.size() == 3 ? q.token * hq_ + q.head : q.token;
    const auto at = static_cast<size_t>(row * columns + j);
    if (m.dtype == DType::boolean) return m.i[at] ? std::optional<double>(0.0) : std::nullopt;
    return m.f[at];
  }

  double product(Query q, int64_t at) const {
    const double* x = r_.in[kQ]->f.data() + (q.token * hq_ + q.head) * d_;
    double sum = 0;
    for (int64_t c = 0; c < d_; ++c) sum += x[c] * keys_.at(at, kv_head(q), c);
    return sum;
  }

  const Node& node_;
  RefTensors& r_;
  KvKind kind_;
  int64_t page_, hq_, d_, dv_;
  KvView keys_, values_;
};

Status reference(const Node& node, RefTensors& r) {
  Paged paged(node, r);
  const auto& row_start = r.in[kRowStart]->i;
  const int64_t tokens = r.in[kQ]->shape[0];
  for (size_t s = 0; s + 1 < row_start.size(); ++s) {
    for (int64_t t = std::max<int64_t>(row_start[s], 0); t < std::min(row_start[s + 1], tokens); ++t) {
      for (int64_t h = 0; h < r.in[kQ]->shape[1]; ++h) paged.run({t, h, static_cast<int64_t>(s)});
    }
  }
  return ok();
}

}  // namespace

constinit const OpDef kAttentionOp{
    .name = "attention", .min_in = 7, .max_in = 9, .attrs = kAttrs, .infer = infer, .reference = reference};

Value attention(Builder& b, Value q, const PagedKv& kv, const AttentionOptions& o, Value mask, Value sinks) {
  std::vector<Value> in{q, kv.k_state, kv.v_state, kv.row_start, kv.kv_length, kv.pages, kv.position};
  if (mask.valid()) in.push_back(mask);
  if (sinks.valid()) in.push_back(sinks);
  return b.op("attention", std::move(in),
              {std::string(kv_kind_name(kv.kind)), kv.page, o.scale, o.causal, o.window, o.soft_cap, mask.valid(),
               sinks.valid()});
}

}  // namespace tern
