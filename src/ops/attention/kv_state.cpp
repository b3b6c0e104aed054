#include "ops/attention/kv_state.h"

#include <algorithm>
#include <cmath>

#include "graph/reference.h"
#include "ops/common/numbers.h"
#include "ops/common/rules.h"

namespace tern {
namespace {

uint32_t half_bits(double value) {
  return f32_to_f16(static_cast<float>(std::clamp(round_to(DType::f16, value), -65504.0, 65504.0)));
}
double half_value(uint32_t bits) { return static_cast<double>(f16_to_f32(static_cast<uint16_t>(bits))); }

void set_bits(int64_t& word, int shift, int bits, uint32_t value) {
  const uint32_t mask = ((1u << bits) - 1) << shift;
  word = (static_cast<uint32_t>(word) & ~mask) | (value << shift & mask);
}
uint32_t get_bits(int64_t word, int shift, int bits) {
  return static_cast<uint32_t>(word) >> shift & ((1u << bits) - 1);
}

}  // namespace

Result<KvKind> kv_kind_of(const InferCtx& ctx, size_t attr) {
  const auto& name = ctx.attr<std::string>(attr);
  if (const auto kind = kv_kind_by_name(name)) return *kind;
  return ctx.error("kv is '" + name + "', wants f32, f16, bf16, q8 or q4");
}

Result<KvShape> kv_shape(InferCtx& ctx, size_t input, KvKind kind, bool keys, int64_t page) {
  TERN_OK(dense(ctx, input));
  const TensorType& type = ctx.in[input];
  const size_t rank = is_quantised(kind) ? (keys ? 4 : 3) : keys ? 5 : 4;
  TERN_OK(ctx.rank(input, static_cast<int>(rank)));
  std::vector<int64_t> axes(1);
  for (size_t a = 1; a < rank; ++a) {
    axes.push_back(type.shape[a].constant().value_or(0));
    if (axes.back() < 1) return ctx.error(text_of(ctx, input) + ", heads, sizes and pages must be numbers above 0");
  }
  if (page < 1) return ctx.error("page is " + std::to_string(page));
  KvShape out{axes[1], 0};
  if (is_quantised(kind)) {
    const int64_t words = keys ? axes[2] : axes[2] / page;
    for (int64_t size = 32; kv_words(kind, size) <= words; size += 32) out.size = size;
  } else {
    out.size = keys ? axes[2] * axes[4] : axes[3];
  }
  const auto want = kv_state_type(kind, keys, type.shape[0], out.heads, std::max<int64_t>(out.size, 1), page);
  if (want && want->dtype == type.dtype && want->shape == type.shape) return out;
  return ctx.error(text_of(ctx, input) + ", no state of " + (keys ? "keys" : "values") + " in pages of " +
                   std::to_string(page) + " as " + std::string(kv_kind_name(kind)) +
                   (want ? "" : ": " + want.error().text));
}

KvView::KvView(const RefTensor& state, KvKind kind, bool keys, int64_t page, int64_t size)
    : state_(state), kind_(kind), keys_(keys), page_(page), size_(size), heads_(state.shape[1]) {}

int64_t KvView::element(int64_t slot, int64_t head, int64_t c) const {
  const int64_t first = (slot / page_ * heads_ + head) * size_ * page_, token = slot % page_;
  if (!keys_) return first + token * size_ + c;
  const int64_t together = 32 / kv_bits(kind_);
  return first + (c / together * page_ + token) * together + c % together;
}

KvView::Code KvView::code(int64_t slot, int64_t head, int64_t c) const {
  const int64_t words = kv_code_words(kind_, size_), token = slot % page_, block = c / 32, at = c % 32;
  const int64_t first = (slot / page_ * heads_ + head) * kv_words(kind_, size_) * page_;
  const bool eight = kind_ == KvKind::q8;
  const int64_t byte = eight ? at : at % 16, word = block * (eight ? 8 : 4) + byte / 4;
  Code out;
  out.word = first + (keys_ ? word * page_ + token : token * words + word);
  out.shift = static_cast<int>(byte % 4 * 8 + (eight || at < 16 ? 0 : 4));
  out.scale_word = first + (words + block / 2) * page_ + token;
  out.scale_shift = static_cast<int>(block % 2 * 16);
  return out;
}

double KvView::at(int64_t slot, int64_t head, int64_t component) const {
  if (!is_quantised(kind_)) return state_.f[static_cast<size_t>(element(slot, head, component))];
  const Code c = code(slot, head, component);
  const int bits = kv_bits(kind_);
  const uint32_t raw = get_bits(state_.i[static_cast<size_t>(c.word)], c.shift, bits);
  const int number = bits == 4 ? static_cast<int>(raw) - 8
                     : keys_   ? static_cast<int>(raw) - 128
                               : static_cast<int8_t>(raw);
  return number * half_value(get_bits(state_.i[static_cast<size_t>(c.scale_word)], c.scale_shift, 16));
}

void store_kv_rows(RefTensor& state, const KvView& view, int64_t slot, int64_t head, const double* values) {
  for (int64_t c = 0; c < view.size_ && !is_quantised(view.kind_); ++c)
    state.f[static_cast<size_t>(view.element(slot, head, c))] = round_to(state.dtype, values[c]);
  for (int64_t first = 0; first < view.size_ && is_quantised(view.kind_); first += 32) {
    const double* x = values + first;
    const double most = *std::max_element(x, x + 32), least = *std::min_element(x, x + 32);
    const bool eight = view.kind_ == KvKind::q8;
    const uint32_t bits = half_bits(eight ? std::max(most, -least) / 127 : (most >= -least ? most : least) / -8);
    const double scale = half_value(bits);
    for (int64_t c = 0; c < 32; ++c) {
      const KvView::Code at = view.code(slot, head, first + c);
      const double code = scale == 0 ? 0 : std::nearbyint(x[c] / scale);
      const int number = static_cast<int>(eight ? std::clamp(code, -127.0, 127.0) : std::clamp(code, -8.0, 7.0));
      const int zero = !eight ? 8 : view.keys_ ? 128 : 0;
      set_bits(state.i[static_cast<size_t>(at.word)], at.shift, kv_bits(view.kind_),
               static_cast<uint32_t>(number + zero));
      set_bits(state.i[static_cast<size_t>(at.scale_word)], at.scale_shift, 16, bits);
    }
  }
}

}  // namespace tern
