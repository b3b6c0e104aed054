// Rotary positions and attention.
#pragma once

#include <string>

#include "tern/graph.h"
#include "tern/state/kv.h"

namespace tern {

// Rotary position embedding (Su et al. 2021). Angle i of a head at position p is p * f[i], f[i] = base^(-2i / rotary)
// before scaling.
struct RopeOptions {
  enum class Pairing : uint8_t {
    neighbour,  // element pairs (2i, 2i + 1)
    halves,     // (i, i + rotary / 2)
  };
  enum class Scale : uint8_t {
    none,
    linear,  // f / factor
    yarn,    // Peng et al. 2023: f / factor for slow angles, f for fast ones, a ramp between
    llama3,  // f / factor for wave lengths above original_context / low_freq_factor, f below original_context /
             // high_freq_factor
  };
  Pairing pairing = Pairing::neighbour;
  int64_t rotary = 0;  // leading elements of a head that are turned; even; 0: the whole head
  double base = 10000;
  Scale scale = Scale::none;
  double factor = 1;
  double original_context = 0;           // yarn, llama3: the context length before stretching, in tokens
  double beta_fast = 32, beta_slow = 1;  // yarn: turns within original_context where the ramp ends and begins
  bool truncate = true;                  // yarn: the ramp's ends are rounded outward to whole dimensions
  double low_freq_factor = 1, high_freq_factor = 4;  // llama3
  double attention_factor = 1;                       // times cosine and sine (yarn: usually 0.1 ln(factor) + 1)
};
// x [T, H, D] or [.., T, H, D], position [T] (any integer type, negative too); freq_factors: none, or [rotary / 2] by
// which f is divided. The result has x's shape and type; sums are taken in f32 for narrower types.
Value rope(Builder& b, Value x, Value position, const RopeOptions& options, Value freq_factors = {});

struct AttentionOptions {
  double scale = 1;     // times q . k
  bool causal = true;   // key position <= query position
  int64_t window = 0;   // 0: all; else keys with query position - key position >= window are masked
  double soft_cap = 0;  // 0: none; else c * tanh(score / c), before the mask
};

// Attention over a paged KV state (the step contract of docs/architecture.md).
struct PagedKv {
  Value k_state;    // kv_state_type(kind, true, pages, Hk, D, page)
  Value v_state;    // kv_state_type(kind, false, pages, Hk, Dv, page)
  Value row_start;  // [S + 1] i32: the tokens of sequence s are row_start[s] .. row_start[s + 1] - 1
  Value kv_length;  // [S] i32: keys of sequence s, those of this step included
  Value pages;      // [S, P] i32: key j of sequence s lies in slot pages[s, j / page] * page + j % page
  Value position;   // [T] i32: of each query; key j has position j
  int64_t page = 1;
  KvKind kind = KvKind::f16;
};
// A state of kv_state_type(), whose error sticks.
Value kv_state(Builder& b, std::string name, KvKind kind, bool keys, Dim pages, int64_t heads, int64_t size,
               int64_t page);
// The state with slot[t] (token slot % page of page slot / page) replaced by x[t] (x [T, Hk, D], any float type); q8
// and q4 round to the nearest code: within half a scale of the value, a whole one where q4's largest magnitude has the
// other sign, scales being max / 127 and max / 8 as f16. A slot outside is dropped; slots inside must differ. The
// result overwrites the state where nobody reads the old one afterwards.
Value store_kv(Builder& b, Value state, Value slot, Value x, KvKind kind, bool keys, int64_t page);
// q [T, Hq, D] gives [T, Hq, Dv]; Hq is a multiple of Hk, query head h reads key head h / (Hq / Hk). mask: none, or [T,
// C] or [T, Hq, C] over key positions: bool (true: visible) or floats added to the score; keys from C on are masked.
// sinks: none, or [Hq] floats: one more score a head, whose value is 0. A query that sees no key, and a token of no
// sequence, gives zeros.
Value attention(Builder& b, Value q, const PagedKv& kv, const AttentionOptions& options, Value mask = {},
                Value sinks = {});

// q [B, Sq, Hq, D], k [B, Sk, Hk, D], v [B, Sk, Hk, Dv] give [B, Sq, Hq, Dv]; query i has position q_offset + i. mask:
// none, or [B or 1, Hq or 1, Sq or 1, Sk], bool or floats; sinks and empty rows as above.
Value dense_attention(Builder& b, Value q, Value k, Value v, const AttentionOptions& options, Dim q_offset = 0,
                      Value mask = {}, Value sinks = {});

}  // namespace tern
