// What the ops over a paged KV state share: its shape, and its elements in the reference evaluation.
#pragma once

#include "graph/op.h"
#include "tern/state/kv.h"

namespace tern {

// The kind that a text attribute names.
Result<KvKind> kv_kind_of(const InferCtx& ctx, size_t attr);

struct KvShape {
  int64_t heads = 0, size = 0;
};
// The state's heads and their size, or why its type is none of kv_state_type().
Result<KvShape> kv_shape(InferCtx& ctx, size_t input, KvKind kind, bool keys, int64_t page);

// Components of a state by slot (page * the page's tokens + token), head and number.
class KvView {
 public:
  KvView(const RefTensor& state, KvKind kind, bool keys, int64_t page, int64_t size);
  double at(int64_t slot, int64_t head, int64_t component) const;

 private:
  friend void store_kv_rows(RefTensor& state, const KvView& view, int64_t slot, int64_t head, const double* values);
  int64_t element(int64_t slot, int64_t head, int64_t component) const;  // floats
  struct Code {
    int64_t word, scale_word;
    int shift, scale_shift;
  };
  Code code(int64_t slot, int64_t head, int64_t component) const;

  const RefTensor& state_;
  KvKind kind_;
  bool keys_;
  int64_t page_, size_, heads_;
};
// Replaces one token's components of one head.
void store_kv_rows(RefTensor& state, const KvView& view, int64_t slot, int64_t head, const double* values);

}  // namespace tern
