// rope: pairs of a head's leading elements are turned by angles that grow with the position.
#include "ops/attention/rope.h"

#include <cmath>
#include <numbers>

#include "ops/common/decompose.h"
#include "ops/common/numbers.h"
#include "ops/common/rules.h"
#include "ops/op_list.h"
#include "tern/ops/elementwise.h"
#include "tern/ops/shape.h"

namespace tern {
namespace {

enum : size_t { kPairing, kRotary, kBase, kScale, kFactor, kContext, kFast, kSlow, kTruncate, kLow, kHigh, kAttention };
constexpr AttrSpec kAttrs[] = {
    {.name = "pairing", .kind = AttrKind::text},  // neighbour, halves
    {.name = "rotary", .kind = AttrKind::integer, .optional = true},
    {.name = "base", .kind = AttrKind::real, .optional = true, .number = 10000},
    {.name = "scale", .kind = AttrKind::text, .optional = true, .text = "none"},  // none, linear, yarn, llama3
    {.name = "factor", .kind = AttrKind::real, .optional = true, .number = 1},
    {.name = "original_context", .kind = AttrKind::real, .optional = true},
    {.name = "beta_fast", .kind = AttrKind::real, .optional = true, .number = 32},
    {.name = "beta_slow", .kind = AttrKind::real, .optional = true, .number = 1},
    {.name = "truncate", .kind = AttrKind::boolean, .optional = true, .number = 1},
    {.name = "low_freq_factor", .kind = AttrKind::real, .optional = true, .number = 1},
    {.name = "high_freq_factor", .kind = AttrKind::real, .optional = true, .number = 4},
    {.name = "attention_factor", .kind = AttrKind::real, .optional = true, .number = 1},
};
constexpr std::string_view kPairings[] = {"neighbour", "halves"};
constexpr std::string_view kScales[] = {"none", "linear", "yarn", "llama3"};

int find(std::span<const std::string_view> names, std::string_view name) {
  for (size_t i = 0; i < names.size(); ++i) {
    if (names[i] == name) return static_cast<int>(i);
  }
  return -1;
}

Status check_options(const InferCtx& ctx, int64_t head) {
  const int64_t rotary = ctx.attr<int64_t>(kRotary) ? ctx.attr<int64_t>(kRotary) : head;
  if (rotary < 2 || rotary % 2 || rotary > head)
    return ctx.error("rotary is " + std::to_string(rotary) + ", wants an even number up to the head's " +
                     std::to_string(head));
  if (find(kPairings, ctx.attr<std::string>(kPairing)) < 0)
    return ctx.error("no pairing '" + ctx.attr<std::string>(kPairing) + "', there are neighbour and halves");
  const int scale = find(kScales, ctx.attr<std::string>(kScale));
  if (scale < 0)
    return ctx.error("no scale '" + ctx.attr<std::string>(kScale) + "', there are none linear yarn llama3");
  const auto positive = [&](size_t i) { return ctx.attr<double>(i) > 0 && std::isfinite(ctx.attr<double>(i)); };
  for (size_t i : {size_t{kBase}, size_t{kFactor}, size_t{kAttention}}) {
    if (!positive(i))
      return ctx.error(std::string(kAttrs[i].name) + " is " + std::to_string(ctx.attr<double>(i)) +
                       ", wants more than 0");
  }
  if (scale >= 2 && !positive(kContext))
    return ctx.error("scale " + std::string(kScales[scale]) + " wants original_context");
  if (scale == 2 && !(positive(kFast) && positive(kSlow) && ctx.attr<double>(kBase) != 1))
    return ctx.error("scale yarn wants beta_fast and beta_slow above 0");
  if (scale == 3 && !(positive(kLow) && ctx.attr<double>(kHigh) > ctx.attr<double>(kLow)))
    return ctx.error("scale llama3 wants 0 < low_freq_factor < high_freq_factor");
  return ok();
}

Types infer(InferCtx& ctx) {
  TERN_OK(floats(ctx, 0));
  TERN_OK(integers(ctx, 1));
  TERN_OK(ctx.rank(1, 1));
  const Shape& shape = ctx.in[0].shape;
  if (shape.size() < 3) return ctx.error(text_of(ctx, 0) + ", wants [.., T, H, D]");
  TERN_OK(ctx.same(ctx.in[1].shape[0], shape[shape.size() - 3], "positions and tokens"));
  const auto head = shape.back().constant();
  if (!head) return ctx.error(text_of(ctx, 0) + ", the head's size must be a number");
  TERN_OK(check_options(ctx, *head));
  if (ctx.in.size() > 2) {
    TERN_OK(floats(ctx, 2));
    TERN_OK(ctx.rank(2, 1));
    const int64_t rotary = ctx.attr<int64_t>(kRotary) ? ctx.attr<int64_t>(kRotary) : *head;
    TERN_OK(ctx.same(ctx.in[2].shape[0], rotary / 2, "frequency factors"));
  }
  return one(ctx.in[0].dtype, shape);
}

// Integers wrap to whole turns: a u32 angle counts 2^-32 turns, so position * step is exact modulo a turn, whatever the
// position, and the frequency's own rounding costs at most position * 2^-33 turns.
Value angles(Builder& b, const RopeOptions& o, Value position, Value factors, Dim tokens, DType wide) {
  const std::vector<double> f = rope_frequencies(o);
  const auto half = static_cast<int64_t>(f.size());
  const Shape shape{tokens, half};
  if (factors.valid() || wide == DType::f64) {  // factors are known on the device only
    Value freq =
        wide == DType::f64 ? constant_of(b, f, {half}) : constant_of(b, std::vector<float>(f.begin(), f.end()), {half});
    if (factors.valid()) freq = div(b, freq, cast(b, factors, wide));
    const Value at = broadcast(b, cast(b, position, wide), shape, {0}), turns = broadcast(b, freq, shape, {1});
    return mul(b, at, turns);
  }
  std::vector<uint32_t> steps;
  for (double v : f) {
    const double turns = v / (2 * std::numbers::pi);
    steps.push_back(
        static_cast<uint32_t>(static_cast<uint64_t>(std::llround(std::ldexp(turns - std::floor(turns), 32)))));
  }
  const Value step = broadcast(b, constant_of(b, steps, {half}), shape, {1});
  const Value turned = mul(b, broadcast(b, cast(b, position, DType::u32), shape, {0}), step);
  return mul(b, cast(b, cast(b, turned, DType::i32), DType::f32), std::ldexp(2 * std::numbers::pi, -32));
}

// x * cos + swapped(x) * (-sin, sin) over the pair axis; the tables [T, rotary / 2] depend on position and options
// alone, so all layers share them.
Result<std::vector<Value>> decompose(Builder& b, const Node& node, std::span<const Value> in) {
  const TensorType type = b.type(in[0]);
  const size_t rank = type.shape.size();
  const int64_t head = type.shape.back().constant().value_or(0);
  const RopeOptions o = rope_options(node, head);
  const Dim tokens = type.shape[rank - 3];
  const DType wide = compute_type(type.dtype);
  const Value angle = angles(b, o, in[1], in.size() > 2 ? in[2] : Value{}, tokens, wide);
  Value c = cos(b, angle), s = sin(b, angle);
  if (o.attention_factor != 1) c = mul(b, c, o.attention_factor), s = mul(b, s, o.attention_factor);

  const bool halves = o.pairing == RopeOptions::Pairing::halves;
  const Value x = compute_cast(b, in[0]);
  const Value turning = slice(b, x, -1, 0, o.rotary);
  const Shape leading(type.shape.begin(), type.shape.end() - 1);
  Shape paired = leading;
  paired.push_back(halves ? Dim(2) : Dim(o.rotary / 2));
  paired.push_back(halves ? Dim(o.rotary / 2) : Dim(2));
  const auto token_axis = static_cast<int64_t>(rank) - 3, angle_axis = static_cast<int64_t>(halves ? rank : rank - 1),
             pair_axis = static_cast<int64_t>(halves ? rank - 1 : rank);
  const Value p = reshape(b, turning, paired);
  const Value sign = cast(b, constant_of(b, std::vector<float>{-1, 1}, {2}), wide);
  const Value cs = broadcast(b, c, paired, {token_axis, angle_axis});
  const Value all_s = broadcast(b, s, paired, {token_axis, angle_axis}),
              signs = broadcast(b, sign, paired, {pair_axis});
  const Value sn = mul(b, all_s, signs), stays = mul(b, p, cs), crosses = mul(b, reverse(b, p, {pair_axis}), sn);
  const Value turned = add(b, stays, crosses);
  Shape flat = leading;
  flat.push_back(o.rotary);
  Value y = reshape(b, turned, flat);
  if (o.rotary < head) y = concat(b, {y, slice(b, x, -1, o.rotary, head)}, -1);
  return take(b, {cast(b, y, type.dtype)});
}

Status reference(const Node& node, RefTensors& r) {
  const RefTensor& in = *r.in[0];
  const size_t rank = in.shape.size();
  const int64_t head = in.shape.back(), heads = in.shape[rank - 2], tokens = in.shape[rank - 3];
  const RopeOptions o = rope_options(node, head);
  std::vector<double> f = rope_frequencies(o);
  for (size_t i = 0; r.in.size() > 2 && i < f.size(); ++i) f[i] /= r.in[2]->f[i];
  const bool halves = o.pairing == RopeOptions::Pairing::halves;
  r.out[0].f = in.f;
  for (int64_t row = 0; head && row < in.size() / head; ++row) {
    const auto position = static_cast<double>(r.in[1]->i[static_cast<size_t>(row / heads % tokens)]);
    const double* x = in.f.data() + row * head;
    double* y = r.out[0].f.data() + row * head;
    for (int64_t i = 0; i < o.rotary / 2; ++i) {
      const int64_t a = halves ? i : 2 * i, c = halves ? i + o.rotary / 2 : 2 * i + 1;
      const double angle = position * f[static_cast<size_t>(i)];
      const double cs = std::cos(angle) * o.attention_factor, sn = std::sin(angle) * o.attention_factor;
      y[a] = x[a] * cs - x[c] * sn;
      y[c] = x[c] * cs + x[a] * sn;
    }
  }
  return ok();
}

}  // namespace

RopeOptions rope_options(const Node& node, int64_t head) {
  RopeOptions o;
  o.pairing = static_cast<RopeOptions::Pairing>(find(kPairings, attr<std::string>(node, kPairing)));
  o.rotary = attr<int64_t>(node, kRotary) ? attr<int64_t>(node, kRotary) : head;
  o.base = attr<double>(node, kBase);
  o.scale = static_cast<RopeOptions::Scale>(find(kScales, attr<std::string>(node, kScale)));
  o.factor = attr<double>(node, kFactor);
  o.original_context = attr<double>(node, kContext);
  o.beta_fast = attr<double>(node, kFast);
  o.beta_slow = attr<double>(node, kSlow);
  o.truncate = attr<bool>(node, kTruncate);
  o.low_freq_factor = attr<double>(node, kLow);
  o.high_freq_factor = attr<double>(node, kHigh);
  o.attention_factor = attr<double>(node, kAttention);
  return o;
}

constinit const OpDef kRopeOp{.name = "rope",
                              .kind = OpKind::composite,
                              .min_in = 2,
                              .max_in = 3,
                              .attrs = kAttrs,
                              .infer = infer,
                              .decompose = decompose,
                              .reference = reference};

Value rope(Builder& b, Value x, Value position, const RopeOptions& o, Value freq_factors) {
  std::vector<Value> in{x, position};
  if (freq_factors.valid()) in.push_back(freq_factors);
  return b.op("rope", std::move(in),
              {std::string(kPairings[static_cast<size_t>(o.pairing)]), o.rotary, o.base,
               std::string(kScales[static_cast<size_t>(o.scale)]), o.factor, o.original_context, o.beta_fast,
               o.beta_slow, o.truncate, o.low_freq_factor, o.high_freq_factor, o.attention_factor});
}

}  // namespace tern
