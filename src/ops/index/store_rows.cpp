// store_rows: the state with state[index[t], ...] = cast(src[t, ...]); the result may overwrite the state.
#include "ops/common/numbers.h"
#include "ops/common/rules.h"
#include "ops/op_list.h"

namespace tern {
namespace {

Types infer(InferCtx& ctx) {
  TERN_OK(all_dense(ctx));
  TERN_OK(integers(ctx, 1));
  TERN_OK(ctx.rank(1, 1));
  const TensorType &state = ctx.in[0], &src = ctx.in[2];
  if (state.shape.empty()) return ctx.error(text_of(ctx, 0) + ", wants an axis of rows");
  TERN_OK(ctx.rank(2, static_cast<int>(state.shape.size())));
  if (state.dtype != src.dtype && !(is_float(state.dtype) && is_float(src.dtype)))
    return ctx.error(text_of(ctx, 2) + ", rows of a state of " + std::string(dtype_name(state.dtype)) +
                     " want the same type, or both floats");
  TERN_OK(ctx.same(ctx.in[1].shape[0], src.shape[0], "rows and their indices"));
  for (size_t a = 1; a < state.shape.size(); ++a)
    TERN_OK(ctx.same(state.shape[a], src.shape[a], "state and rows, axis " + std::to_string(a)));
  return std::vector<TensorType>{state};
}

Status reference(const Node&, RefTensors& r) {
  const RefTensor &state = *r.in[0], &index = *r.in[1], &src = *r.in[2];
  RefTensor& out = r.out[0];
  out.f = state.f;
  out.i = state.i;
  const int64_t inner = count(state.shape, 1, state.shape.size());
  for (int64_t t = 0; t < src.shape[0]; ++t) {
    const int64_t row = index.i[static_cast<size_t>(t)];
    if (row < 0 || row >= state.shape[0]) continue;
    for (int64_t k = 0; k < inner; ++k) cast_element(src, t * inner + k, out, row * inner + k);
  }
  return ok();
}

}  // namespace

constinit const OpDef kStoreRowsOp{.name = "store_rows",
                                   .min_in = 3,
                                   .max_in = 3,
                                   .fx = {.rng = false, .alias_in = 0},
                                   .infer = infer,
                                   .reference = reference};

}  // namespace tern
