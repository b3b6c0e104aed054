// gather: whole slices of data along an axis, by integer index. Data may be quantised when the axis is not its last.
#include "ops/common/rules.h"
#include "ops/common/stored.h"
#include "ops/op_list.h"

namespace tern {
namespace {

constexpr AttrSpec kAttrs[] = {{.name = "axis", .kind = AttrKind::integer, .optional = true, .number = 0}};

Types infer(InferCtx& ctx) {
  const TensorType& data = ctx.in[0];
  TERN_OK(integers(ctx, 1));
  TERN_TRY(const size_t axis, front_axis(ctx, ctx.attr<int64_t>(0), data.shape.size()));
  if (data.format && (axis + 1 == data.shape.size() || data.format->block[0] != 1))
    return ctx.error(text_of(ctx, 0) + ", a gather along axis " + std::to_string(axis) + " would cut its blocks");
  Shape shape(data.shape.begin(), data.shape.begin() + static_cast<std::ptrdiff_t>(axis));
  shape.insert(shape.end(), ctx.in[1].shape.begin(), ctx.in[1].shape.end());
  shape.insert(shape.end(), data.shape.begin() + static_cast<std::ptrdiff_t>(axis) + 1, data.shape.end());
  return one(data.dtype, std::move(shape));
}

// An index outside the axis gives zeros, as on every device: ids come from outside and nobody can stop a launch for
// them.
Status reference(const Node& node, RefTensors& r) {
  const RefOperand data = operand(r, 0);
  const RefTensor& index = *r.in[1];
  RefTensor& out = r.out[0];
  const auto axis = static_cast<size_t>(attr<int64_t>(node, 0));
  const Extents& shape = data.shape();
  const int64_t outer = count(shape, 0, axis), extent = shape[axis], inner = count(shape, axis + 1, shape.size());
  const int64_t rows = index.size();
  if (inner == 0) return ok();
  for (int64_t o = 0; o < outer; ++o) {
    for (int64_t n = 0; n < rows; ++n) {
      const int64_t row = index.i[static_cast<size_t>(n)];
      if (row < 0 || row >= extent) continue;
      const int64_t from = (o * extent + row) * inner, to = (o * rows + n) * inner;
      if (data.stored) {
        TERN_OK(data.read(from, inner, out.f.data() + to));
      } else {
        for (int64_t k = 0; k < inner; ++k) move_element(*data.dense, from + k, out, to + k);
      }
    }
  }
  return ok();
}

}  // namespace

constinit const OpDef kGatherOp{.name = "gather",
                                .min_in = 2,
                                .max_in = 2,
                                .attrs = kAttrs,
                                .infer = infer,
                                .reference = reference,
                                .moves = OpDef::Moves::first,
                                .reads_stored = true};

}  // namespace tern
