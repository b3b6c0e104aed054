// KV states of tests, by the words of tern/state/kv.h: what an element of a state's bytes means, written independently
// of the code under test.
#pragma once

#include <cstring>
#include <vector>

#include "tern/state/kv.h"

namespace tern::test {

struct KvState {
  KvKind kind = KvKind::f16;
  bool keys = true;
  int64_t pages = 0, heads = 1, size = 0, page = 1;
  std::vector<std::byte> bytes;

  KvState(KvKind kind_, bool keys_, int64_t pages_, int64_t heads_, int64_t size_, int64_t page_)
      : kind(kind_), keys(keys_), pages(pages_), heads(heads_), size(size_), page(page_) {
    bytes.resize(static_cast<size_t>(pages * page * kv_token_bytes(kind, heads, size)));
  }

  // Where a float component lies, in elements; of q8 and q4 the byte of its code and the half of its scale.
  size_t element(int64_t slot, int64_t h, int64_t c) const {
    const int64_t p = slot / page, t = slot % page;
    if (!keys) return static_cast<size_t>(((p * heads + h) * page + t) * size + c);
    const int64_t two = kind == KvKind::f32 ? 1 : 2;
    return static_cast<size_t>((((p * heads + h) * (size / two) + c / two) * page + t) * two + c % two);
  }
  size_t code_byte(int64_t slot, int64_t h, int64_t c) const {
    const int64_t p = slot / page, t = slot % page, row = kind == KvKind::q8 ? size : size / 2;
    const int64_t byte = kind == KvKind::q8 ? c : c / 32 * 16 + c % 16, head = (p * heads + h) * head_bytes();
    return static_cast<size_t>(head + (keys ? byte / 4 * page * 4 + t * 4 + byte % 4 : t * row + byte));
  }
  size_t scale_half(int64_t slot, int64_t h, int64_t c) const {
    const int64_t p = slot / page, t = slot % page, row = kind == KvKind::q8 ? size : size / 2, block = c / 32;
    return static_cast<size_t>(((p * heads + h) * head_bytes() + row * page + (block / 2 * page + t) * 4) / 2 +
                               block % 2);
  }
  int64_t head_bytes() const { return page * kv_token_bytes(kind, 1, size); }

  uint16_t half(size_t at) const {
    uint16_t bits;
    std::memcpy(&bits, bytes.data() + 2 * at, 2);
    return bits;
  }
  float scale(int64_t slot, int64_t h, int64_t c) const { return f16_to_f32(half(scale_half(slot, h, c))); }
  float get(int64_t slot, int64_t h, int64_t c) const {
    if (kind == KvKind::f16) return f16_to_f32(half(element(slot, h, c)));
    if (kind == KvKind::bf16) return bf16_to_f32(half(element(slot, h, c)));
    if (kind == KvKind::f32) {
      float x;
      std::memcpy(&x, bytes.data() + 4 * element(slot, h, c), 4);
      return x;
    }
    const auto byte = static_cast<uint8_t>(bytes[code_byte(slot, h, c)]);
    int code = c % 32 < 16 ? (byte & 15) - 8 : (byte >> 4) - 8;
    if (kind == KvKind::q8) code = keys ? byte - 128 : static_cast<int8_t>(byte);
    return static_cast<float>(code) * scale(slot, h, c);
  }

  // Any bytes that mean finite numbers of about 1.
  template <class Random>
  void fill(Random& r) {
    for (int64_t slot = 0; slot < pages * page; ++slot) {
      for (int64_t h = 0; h < heads; ++h) {
        for (int64_t c = 0; c < size; ++c) put(slot, h, c, r.real(), r);
      }
    }
  }

 private:
  template <class Random>
  void put(int64_t slot, int64_t h, int64_t c, float x, Random& r) {
    const auto store = [&](size_t at, auto bits) {
      std::memcpy(bytes.data() + at * sizeof(bits), &bits, sizeof(bits));
    };
    if (kind == KvKind::f32) return store(element(slot, h, c), x);
    if (kind == KvKind::f16) return store(element(slot, h, c), f32_to_f16(x));
    if (kind == KvKind::bf16) return store(element(slot, h, c), f32_to_bf16(x));
    std::byte& code = bytes[code_byte(slot, h, c)];
    if (kind == KvKind::q8) {
      code = static_cast<std::byte>(static_cast<uint8_t>(static_cast<int>(x * 127) + (keys ? 128 : 0)));
    } else {
      const uint8_t four = static_cast<uint8_t>(r.below(16)), old = static_cast<uint8_t>(code);
      code = static_cast<std::byte>(c % 32 < 16 ? (old & 0xf0) | four : (old & 0x0f) | four << 4);
    }
    const float by = (kind == KvKind::q8 ? 1.f / 127
                      : c / 32 % 2 == 0  ? 0.125f
                                         : -0.125f) *
                     (0.5f + 0.05f * static_cast<float>(slot % 9));
    if (c % 32 == 0) store(scale_half(slot, h, c), f32_to_f16(by));
  }
};

}  // namespace tern::test
