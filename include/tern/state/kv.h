// How states hold the keys and values of attention.
//
// A state has whole pages of `page` tokens as its rows: token j of a page is one of its columns. Keys lie next to each
// other component by component, since a kernel looks at many keys at once; values lie as rows, since it sums them.
//   keys, floats     [pages, heads, size / c, page, c], c = 1 for f32 and 2 for 16 bits
//   values, floats   [pages, heads, page, size]
//   keys, q8 and q4  [pages, heads, words, page] u32, a column a token: its codes, then its scales
//   values           [pages, heads, words * page] u32: the codes of each token as a row, then the scale words,
//                    [scale words, page]
// q8 and q4 share an f16 scale between 32 components; word s of the scales has that of block 2s in its low half and
// that of block 2s + 1 in its high half. q8: byte i of word w of a block is the code of component 4w + i; keys have
// code + 128 (unsigned), values the signed code; value = code * scale. q4: byte i of a block's 16 has component i in
// its low half and 16 + i in its high half; value = (code - 8) * scale, and scales may be negative.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "tern/result.h"
#include "tern/tensor.h"

namespace tern {

enum class KvKind : uint8_t { f32, f16, bf16, q8, q4 };
inline constexpr KvKind kKvKinds[] = {KvKind::f32, KvKind::f16, KvKind::bf16, KvKind::q8, KvKind::q4};

std::string_view kv_kind_name(KvKind kind);
std::optional<KvKind> kv_kind_by_name(std::string_view name);
inline bool is_quantised(KvKind kind) { return kind == KvKind::q8 || kind == KvKind::q4; }
// Bits of a component, scales apart.
int kv_bits(KvKind kind);

// The state of `pages` pages, or Code::unsupported: q8 and q4 want sizes that are multiples of 32, f16 and bf16 even
// ones.
Result<TensorType> kv_state_type(KvKind kind, bool keys, Dim pages, int64_t heads, int64_t size, int64_t page);
// q8 and q4: words of one token's codes, and of its scales.
inline int64_t kv_code_words(KvKind kind, int64_t size) { return size * kv_bits(kind) / 32; }
inline int64_t kv_scale_words(int64_t size) { return (size + 63) / 64; }
inline int64_t kv_words(KvKind kind, int64_t size) { return kv_code_words(kind, size) + kv_scale_words(size); }
// Bytes that one token's keys (or values) of all heads take.
inline int64_t kv_token_bytes(KvKind kind, int64_t heads, int64_t size) {
  return heads * (is_quantised(kind) ? 4 * kv_words(kind, size) : size * kv_bits(kind) / 8);
}

}  // namespace tern
