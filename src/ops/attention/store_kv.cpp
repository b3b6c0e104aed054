// store_kv: a paged KV state with the tokens at slot[t] replaced by x[t, heads, size]; the result may overwrite the
// state.
#include "ops/attention/kv_state.h"
#include "ops/common/numbers.h"
#include "ops/common/rules.h"
#include "ops/op_list.h"
#include "tern/ops/attention.h"

namespace tern {
namespace {

enum : size_t { kKv, kKeys, kPage };
constexpr AttrSpec kAttrs[] = {{.name = "kv", .kind = AttrKind::text},
                               {.name = "keys", .kind = AttrKind::boolean},
                               {.name = "page", .kind = AttrKind::integer}};

Types infer(InferCtx& ctx) {
  TERN_TRY(const KvKind kind, kv_kind_of(ctx, kKv));
  TERN_TRY(const KvShape state, kv_shape(ctx, 0, kind, ctx.attr<bool>(kKeys), ctx.attr<int64_t>(kPage)));
  TERN_OK(integers(ctx, 1));
  TERN_OK(ctx.rank(1, 1));
  TERN_OK(floats(ctx, 2));
  TERN_OK(ctx.rank(2, 3));
  const Shape& x = ctx.in[2].shape;
  TERN_OK(ctx.same(ctx.in[1].shape[0], x[0], "rows and their slots"));
  TERN_OK(ctx.same(x[1], state.heads, "heads of rows and state"));
  TERN_OK(ctx.same(x[2], state.size, "head size of rows and state"));
  return std::vector<TensorType>{ctx.in[0]};
}

Status reference(const Node& node, RefTensors& r) {
  const RefTensor &state = *r.in[0], &slot = *r.in[1], &x = *r.in[2];
  RefTensor& out = r.out[0];
  out.f = state.f;
  out.i = state.i;
  const int64_t heads = x.shape[1], size = x.shape[2], page = attr<int64_t>(node, kPage);
  const KvView view(out, *kv_kind_by_name(attr<std::string>(node, kKv)), attr<bool>(node, kKeys), page, size);
  for (int64_t t = 0; t < x.shape[0]; ++t) {
    const int64_t at = slot.i[static_cast<size_t>(t)];
    if (at < 0 || at >= state.shape[0] * page) continue;
    for (int64_t h = 0; h < heads; ++h) store_kv_rows(out, view, at, h, x.f.data() + (t * heads + h) * size);
  }
  return ok();
}

}  // namespace

constinit const OpDef kStoreKvOp{.name = "store_kv",
                                 .min_in = 3,
                                 .max_in = 3,
                                 .attrs = kAttrs,
                                 .fx = {.rng = false, .alias_in = 0},
                                 .infer = infer,
                                 .reference = reference};

Value kv_state(Builder& b, std::string name, KvKind kind, bool keys, Dim pages, int64_t heads, int64_t size,
               int64_t page) {
  auto type = kv_state_type(kind, keys, pages, heads, size, page);
  if (type) return b.state(std::move(name), type->dtype, type->shape);
  b.fail(type.take_error());
  return {};
}

Value store_kv(Builder& b, Value state, Value slot, Value x, KvKind kind, bool keys, int64_t page) {
  return b.op("store_kv", {state, slot, x}, {std::string(kv_kind_name(kind)), keys, page});
}

}  // namespace tern
