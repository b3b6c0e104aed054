// What the lanes of a workgroup do together.
#include <algorithm>
#include <string>

#include "kir/make/state.h"

namespace tern::kir {

namespace {

B& cur() { return B::current(); }

V combine(Op op, const V& a, const V& b) {
  switch (op) {
    case Op::subgroup_min: return min(a, b);
    case Op::subgroup_max: return max(a, b);
    default: return a + b;
  }
}

bool in_subgroups(Type t) { return t == f32 || t == i32 || t == u32; }

V subgroup_op(Op op, const V& v) {
  B& b = cur();
  V a = v, same = v;
  const Type t = b.unify(a, same, "and");
  if (!in_subgroups(t)) b.fail(std::string(op_info(op).name) + " of " + std::string(type_name(t)));
  return b.emit(op, t, a);
}

}  // namespace

// Scratch of the reductions: one array a type, reused; each use ends with a barrier.
Shared B::scratch(Type type, uint32_t count) {
  for (const auto& [t, array] : s_->scratch) {
    if (t != type) continue;
    Array& a = s_->k.arrays[array];
    a.count = std::max(a.count, count);
    Shared out;
    out.array_ = array;
    out.count_ = a.count;
    out.type_ = type;
    return out;
  }
  const Shared out = shared("wg_" + std::string(type_name(type)), type, count);
  s_->scratch.emplace_back(type, out.array_);
  return out;
}

// One subgroup size that is sure, 0 if there is none; pins one where the device allows it.
uint32_t B::subgroup_size() {
  const SubgroupCaps& s = s_->caps.subgroup;
  if (s_->caps.lockstep) return s_->k.lanes;
  if (s.min == s.max) return s.max;
  if (!s.can_pin) return 0;
  const uint32_t natural = s_->caps.lanes;
  const uint32_t size = natural >= s.min && natural <= s.max ? natural : s.max;
  if (s_->k.lanes % size != 0) return 0;
  s_->k.subgroup = size;
  return size;
}

V B::reduce(Op op, const V& value) {
  V v = value, same = value;
  const Type type = unify(v, same, "and");
  const uint32_t count = s_->k.lanes;
  if (!is_int(type) && !is_float(type)) fail("a workgroup reduction of " + std::string(type_name(type)));
  if (count == 1 || failed()) return v;
  const uint32_t size = in_subgroups(type) ? subgroup_size() : 1;
  const uint32_t smallest = std::max<uint32_t>(1, s_->caps.subgroup.min);
  if (size == count) return emit(op, type, v);
  if (size == 1 || (size != 0 && count % size != 0)) {  // a tree in workgroup memory, in the order of subgroup_add
    const Shared slots = scratch(type, count);
    const V i = kir::lane();
    slots.store(i, v);
    barrier();
    for (uint32_t n = count; n > 1; n = (n + 1) / 2) {
      const uint32_t half = (n + 1) / 2;
      If(i < n - half, [&] { slots.store(i, combine(op, slots[i], slots[i + half])); });
      barrier();
    }
    const V all = slots[0];
    barrier();
    return all;
  }
  const V part = emit(op, type, v);
  const Shared slots = scratch(type, size ? count / size : (count + smallest - 1) / smallest);
  If(kir::subgroup_lane() == 0, [&] { slots.store(kir::subgroup_id(), part); });
  barrier();
  V all;
  if (size != 0 && count / size <= 8) {
    all = slots[0];
    for (uint32_t s = 1; s < count / size; ++s) all = combine(op, all, slots[s]);
  } else {
    const Var total = var(type, slots[0]);
    For(1, size ? V(count / size) : kir::subgroup_count(), [&](V s) { total.set(combine(op, total.get(), slots[s])); });
    all = total.get();
  }
  barrier();
  return all;
}

V wg_add(const V& a) { return cur().reduce(Op::subgroup_add, a); }
V wg_max(const V& a) { return cur().reduce(Op::subgroup_max, a); }
V wg_min(const V& a) { return cur().reduce(Op::subgroup_min, a); }
V subgroup_add(const V& a) { return subgroup_op(Op::subgroup_add, a); }
V subgroup_max(const V& a) { return subgroup_op(Op::subgroup_max, a); }
V subgroup_min(const V& a) { return subgroup_op(Op::subgroup_min, a); }

V wg_broadcast(const V& a, const V& from_lane) {
  B& b = cur();
  V v = a, same = a;
  const Type type = b.unify(v, same, "and");
  if (b.lanes() == 1 || b.failed()) return v;
  if (type == b1) return wg_broadcast(cast(u32, v), from_lane) != 0;
  const Shared slot = b.scratch(type, 1);
  If(lane() == from_lane, [&] { slot.store(0, v); });
  barrier();
  const V out = slot[0];
  barrier();
  return out;
}

V wg_exclusive_add(const V& a) {
  B& b = cur();
  V v = a, same = a;
  const Type type = b.unify(v, same, "and");
  if (!is_int(type) && !is_float(type)) b.fail("wg_exclusive_add of " + std::string(type_name(type)));
  if (b.failed()) return v;
  const Var before = b.var(type, 0);
  if (b.lanes() == 1) return before.get();
  const Shared slots = b.scratch(type, b.lanes());
  const V i = lane();
  const Var total = b.var(type, v);  // of the lanes (i - step, i]
  for (uint32_t step = 1; step < b.lanes(); step *= 2) {
    slots.store(i, total.get());
    barrier();
    If(i >= step, [&] { total.set(slots[i - step] + total.get()); });
    barrier();
  }
  slots.store(i, total.get());
  barrier();
  If(i >= 1, [&] { before.set(slots[i - 1]); });
  barrier();
  return before.get();
}

}  // namespace tern::kir
