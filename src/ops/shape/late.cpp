// late: an integer that becomes a size in mid-run. The result is the operand; the symbol that the attribute names has
// its value from here on.
#include "graph/sizes/late.h"

#include "graph/text/text.h"
#include "ops/common/numbers.h"
#include "ops/common/rules.h"
#include "ops/op_list.h"

namespace tern {
namespace {

constexpr AttrSpec kAttrs[] = {{.name = "size", .kind = AttrKind::dim}};

Types infer(InferCtx& ctx) {
  TERN_OK(ctx.rank(0, 0));
  const DType dtype = ctx.in[0].dtype;
  if (dtype != DType::i32 && dtype != DType::i64) return ctx.error(text_of(ctx, 0) + ", a size is i32 or i64");
  const auto symbol = ctx.dims.as_symbol(ctx.attr<Dim>(0));
  if (!symbol || !ctx.dims.symbols()[*symbol].late)
    return ctx.error("the size " + ctx.dims.text(ctx.attr<Dim>(0)) + " is no late symbol");
  return one(dtype, {});
}

OrRefuse<IndexMap> view(DimTable&, const Node&, const TensorType&, const IndexMap& in) { return in; }

Status reference(const Node&, RefTensors& r) {
  move_element(*r.in[0], 0, r.out[0], 0);
  return ok();
}

OrRefuse<Contents> contents(ContentsCtx& ctx) { return Contents{attr<Dim>(ctx.node, 0)}; }

}  // namespace

constinit const OpDef kLateOp{.name = "late",
                              .min_in = 1,
                              .max_in = 1,
                              .attrs = kAttrs,
                              .fx = {.rng = false, .alias_in = -1, .gives = 0},
                              .view = view,
                              .infer = infer,
                              .reference = reference,
                              .contents = contents};

}  // namespace tern
