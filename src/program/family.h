// Families of Problems and what each family's description says. Adding a family: one struct here, one line in the
// variant, one name in family_list.inc.
#pragma once

#include <cstdint>
#include <string_view>
#include <variant>
#include <vector>

#include "tern/shape.h"
#include "tern/state/kv.h"

namespace tern {

enum class Family : uint8_t {
#define TERN_FAMILY(name) name,
#include "program/family_list.inc"
#undef TERN_FAMILY
};
std::string_view family_name(Family family);

// region: for every index of extent: outputs = prologue(index). Chains of elementwise ops, views, broadcasts, iota,
// concat and pad (outputs may store through a map).
struct RegionDesc {
  bool operator==(const RegionDesc&) const = default;
};
// reduce: extent = kept axes then reduced axes; acc(0) = kind over the reduced axes of prologue; parts[0].epilogue
// finishes.
enum class ReduceKind : uint8_t { sum, prod, max, min, any, all };
struct ReduceDesc {
  ReduceKind kind = ReduceKind::sum;
  uint8_t reduced_axes = 1;  // the last ones of extent
  bool operator==(const ReduceDesc&) const = default;
};
// arg_reduce: index of the extremum over the last axis of extent; ties go to the lowest index; NaN wins like a maximum.
struct ArgReduceDesc {
  bool largest = true;
  bool operator==(const ArgReduceDesc&) const = default;
};
// scan: out[o, i] = sum of x[o, j] over j <= i; extent = {outer, n}.
struct ScanDesc {
  bool operator==(const ScanDesc&) const = default;
};
// norm: extent = {rows, columns}; acc(0) = the normalised element (times weight, plus bias where there), epilogue on
// top.
enum class NormKind : uint8_t { rms, layer, softmax, log_softmax };
struct NormDesc {
  NormKind kind = NormKind::rms;
  double eps = 0;
  bool operator==(const NormDesc&) const = default;
};
// matmul: extent = {batch, M, K}; N is each part's n. y[b, m, n] = sum_k x[b, m, k] * w[b or none, n, k].
struct MatmulDesc {
  bool batched_weight = false;  // the weight has the batch axis too
  bool weight_is_kn = false;    // the dense weight is stored [K, N] instead of [N, K]
  bool high_precision = false;  // x, where it is quantised, in 16 bits
  bool operator==(const MatmulDesc&) const = default;
};
// attention over a paged KV state; extent = {tokens T, sequences S}. Operands by role: q [T, Hq*D], k and v (states
// [pages, the rest], tern/state/kv.h says how they lie), row_start [S+1], kv_length [S], pages [S, P] (slot of key j of
// sequence s: pages[s, j / page] * page + j % page), position [T], optional mask/bias, sinks; out [T, Hq*Dv].
struct AttentionDesc {
  uint32_t heads = 1, kv_heads = 1, head_size = 0, value_size = 0, page = 1;
  double scale = 1, soft_cap = 0;
  bool causal = true;
  uint32_t window = 0;  // 0: none; else keys with q_position - k_position >= window are masked
  KvKind kv = KvKind::f16;
  bool operator==(const AttentionDesc&) const = default;
};
// gather: out[o, i, n] = data[o, index[i], n]; extent = {outer, indices, inner}. An index outside the axis is an error
// value: 0.
struct GatherDesc {
  bool operator==(const GatherDesc&) const = default;
};
// store: state[index[t], :] = cast(prologue(t, :)); extent = {tokens, columns}. An index outside is dropped. With a
// page the state is a KV state [pages, the rest] and index[t] a slot: tern/state/kv.h says what becomes of the columns.
struct StoreDesc {
  uint32_t page = 0, heads = 0, size = 0;  // 0: plain rows
  bool keys = false;
  KvKind kv = KvKind::f16;
  bool operator==(const StoreDesc&) const = default;
};
// convert: the same value in another layout (f32 rows -> int8 blocks); extent = {rows, columns}.
struct ConvertDesc {
  bool operator==(const ConvertDesc&) const = default;
};
// sample: extent = {rows L, vocabulary V, history length H}; operands as the op `sample` documents.
struct SampleDesc {
  bool operator==(const SampleDesc&) const = default;
};

// Alternatives in the order of family_list.inc.
using FamilyDesc = std::variant<RegionDesc, ReduceDesc, ArgReduceDesc, NormDesc, MatmulDesc, AttentionDesc, GatherDesc,
                                StoreDesc, ConvertDesc, SampleDesc, ScanDesc>;

}  // namespace tern
