// What each part of a Program holds, once, for writing and for reading: A is Writer (const things) or Reader.
#pragma once

#include "program/serial/archive.h"

namespace tern::serial {

template <class A, class T>
using Of = std::conditional_t<A::kReads, T&, const T&>;

template <class A>
void put(A& a, Of<A, Hash> h) {
  a.integer(h.hi), a.integer(h.lo);
}
template <class A>
void put(A& a, Of<A, Layout> l) {
  if constexpr (A::kReads) {
    const std::string name = a.name();
    l.def = name.empty() ? nullptr : layout_by_name(name);
    if (!name.empty() && l.def == nullptr) a.fail("this build has no layout '" + name + "'", Code::unsupported);
  } else {
    a.name(l.def != nullptr ? l.def->name : std::string_view());
  }
  for (auto& t : l.tile) a.integer(t);
}
template <class A>
void put(A& a, Of<A, TensorType> t) {
  a.choice(t.dtype, kDTypeCount);
  a.list(t.shape, [&](auto& d) { a.dim(d); });
  if constexpr (A::kReads) {
    const std::string name = a.name();
    t.format = name.empty() ? nullptr : format_by_name(name);
    if (!name.empty() && t.format == nullptr) a.fail("this build has no format '" + name + "'", Code::unsupported);
  } else {
    a.name(t.format != nullptr ? t.format->name : std::string_view());
  }
}
template <class A>
void put(A& a, Of<A, IndexMap> m) {
  a.dim(m.offset);
  a.list(m.stride, [&](auto& d) { a.dim(d); });
}
template <class A>
void put(A& a, Of<A, Bounds> bounds) {
  a.list(bounds, [&](auto& b) { a.integer(b.symbol), a.integer(b.min), a.integer(b.max); });
}
template <class A>
void put(A& a, Of<A, ScalarExpr> e) {
  a.list(e.code, [&](auto& i) {
    a.choice(i.kind, 6), a.choice(i.op, static_cast<size_t>(ScalarOp::count_)), a.choice(i.type, kDTypeCount);
    a.integer(i.a), a.integer(i.b), a.integer(i.c);
  });
  a.list(e.loads, [&](auto& l) { a.integer(l.operand), put(a, l.map); });
  a.list(e.consts, [&](auto& n) { a.real(n.f), a.integer(n.i); });
  a.list(e.dims, [&](auto& d) { a.dim(d); });
}
template <class A>
void put(A& a, Of<A, Part> p) {
  a.dim(p.n);
  a.list(p.weights, [&](auto& w) { a.integer(w); });
  put(a, p.epilogue);
  a.list(p.outs, [&](auto& o) { a.integer(o.operand), a.integer(o.result), a.choice(o.kind, 3), put(a, o.map); });
}

template <class A>
void desc(A&, Of<A, RegionDesc>) {}
template <class A>
void desc(A& a, Of<A, ReduceDesc> d) {
  a.choice(d.kind, 6), a.integer(d.reduced_axes);
}
template <class A>
void desc(A& a, Of<A, ArgReduceDesc> d) {
  a.flag(d.largest);
}
template <class A>
void desc(A& a, Of<A, NormDesc> d) {
  a.choice(d.kind, 4), a.real(d.eps);
}
template <class A>
void desc(A& a, Of<A, MatmulDesc> d) {
  a.flag(d.batched_weight), a.flag(d.weight_is_kn), a.flag(d.high_precision);
}
template <class A>
void desc(A& a, Of<A, AttentionDesc> d) {
  a.integer(d.heads), a.integer(d.kv_heads), a.integer(d.head_size), a.integer(d.value_size), a.integer(d.page);
  a.real(d.scale), a.real(d.soft_cap), a.flag(d.causal), a.integer(d.window), a.choice(d.kv, 5);
}
template <class A>
void desc(A&, Of<A, ScanDesc>) {}
template <class A>
void desc(A&, Of<A, GatherDesc>) {}
template <class A>
void desc(A& a, Of<A, StoreDesc> d) {
  a.integer(d.page), a.integer(d.heads), a.integer(d.size), a.flag(d.keys), a.choice(d.kv, 5);
}
template <class A>
void desc(A&, Of<A, ConvertDesc>) {}
template <class A>
void desc(A&, Of<A, SampleDesc>) {}

template <class A>
void step(A& a, Of<A, Launch> l) {
  a.integer(l.kernel), a.dim(l.groups);
  a.list(l.scalars, [&](auto& d) { a.dim(d); });
}
template <class A>
void step(A& a, Of<A, Call> c) {
  a.integer(c.lib);
  a.list(c.scalars, [&](auto& d) { a.dim(d); });
}
template <class A>
void step(A&, Of<A, Copy>) {}
template <class A>
void step(A& a, Of<A, Fill> f) {
  a.integer(f.word);
}
template <class A>
void step(A& a, Of<A, Bind> b) {
  a.integer(b.late_symbol);
}
template <class A>
void step(A& a, Of<A, Branch> b) {
  a.integer(b.then_list), a.integer(b.else_list);
}
template <class A>
void step(A& a, Of<A, Loop> l) {
  a.integer(l.body_list), a.integer(l.max_trips);
}
template <class A>
void step(A& a, Of<A, Delegate> d) {
  a.integer(d.subgraph);
}
template <class A>
void step(A& a, Of<A, Collective> c) {
  a.integer(c.kind);
}

// The alternative's number, then its fields.
template <class A, class V, class F, size_t... I>
void alternative(A& a, V& v, F&& fields, std::index_sequence<I...>) {
  size_t index = v.index();
  a.choice(index, sizeof...(I));
  if constexpr (A::kReads) ((index == I ? void(v.template emplace<I>()) : void()), ...);
  std::visit(fields, v);
}

template <class A>
void put(A& a, Of<A, Problem> p) {
  a.choice(p.family, std::variant_size_v<FamilyDesc>);
  a.list(p.operands, [&](auto& o) {
    put(a, o.type), a.choice(o.role, static_cast<size_t>(Role::seeds) + 1), a.choice(o.origin, 4),
        a.choice(o.access, 3), put(a, o.layout), a.integer(o.alias);
  });
  a.list(p.extent, [&](auto& d) { a.dim(d); });
  put(a, p.prologue);
  a.list(p.parts, [&](auto& x) { put(a, x); });
  alternative(a, p.desc, [&](auto& d) { desc(a, d); }, std::make_index_sequence<std::variant_size_v<FamilyDesc>>());
  put(a, p.bounds);
  a.flag(p.policy.precise), a.flag(p.policy.deterministic);
}
template <class A>
void put(A& a, Of<A, Step> s) {
  alternative(
      a, s.what, [&](auto& w) { step(a, w); }, std::make_index_sequence<std::variant_size_v<decltype(s.what)>>());
  a.list(s.uses, [&](auto& u) { a.integer(u.ref.id), a.dim(u.ref.offset), a.dim(u.ref.bytes), a.choice(u.access, 3); });
  a.integer(s.problem), a.integer(s.on), a.integer(s.phase), a.text(s.label);
}
template <class A>
void put(A& a, Of<A, KernelDef> k) {
  a.text(k.name), put(a, k.hash), a.choice(k.kind, 4), a.blob(k.code);
  a.text(k.entry), a.integer(k.work_items);
  a.list(k.sig.bindings, [&](auto& x) { a.choice(x, 3); });
  a.integer(k.sig.scalars), a.integer(k.problem), a.integer(k.part);
}
template <class A>
void put(A& a, Of<A, Choice> c) {
  a.integer(c.problem), a.text(c.candidate), a.text(c.variant), put(a, c.numerics), a.real(c.bytes), a.real(c.flop),
      a.real(c.seconds);
  a.list(c.refusals, [&](auto& r) { a.text(r.first), a.text(r.second); });
}
template <class A>
void put(A& a, Of<A, ConstantDef> c) {
  a.integer(c.buffer), a.choice(c.value.dtype, kDTypeCount);
  a.list(c.value.shape, [&](auto& n) { a.integer(n); });
  if constexpr (A::kReads) {
    auto data = std::make_shared<std::vector<std::byte>>();
    a.blob(*data);
    c.value.data = std::move(data);
  } else {
    a.blob(*c.value.data);
  }
}
template <class A>
void put(A& a, Of<A, Program> p) {
  a.list(p.guards, [&](auto& g) { a.dim(g.a), a.dim(g.b), a.text(g.what), a.text(g.loc.text); });
  a.list(p.block, [&](auto& d) { a.dim(d); });
  a.list(p.buffers,
         [&](auto& b) { a.text(b.name), a.choice(b.origin, 4), put(a, b.type), put(a, b.layout), a.dim(b.bytes); });
  a.list(p.kernels, [&](auto& k) { put(a, k); });
  a.list(p.problems, [&](auto& x) { put(a, x); });
  a.list(p.choices, [&](auto& c) { put(a, c); });
  a.list(p.lists, [&](auto& l) { a.list(l, [&](auto& s) { put(a, s); }); });
  a.list(p.ranges, [&](auto& r) {
    put(a, r.when), a.integer(r.list);
    a.list(r.parts, [&](auto& x) { a.integer(x); });
  });
  a.integer(p.prepare_list);
  a.list(p.io.io, [&](auto& io) {
    a.text(io.name), a.choice(io.kind, 4), put(a, io.type);
    a.list(io.buffers, [&](auto& b) { a.integer(b); });
    a.flag(io.optional_read);
  });
  a.list(p.constants, [&](auto& c) { put(a, c); });
}

}  // namespace tern::serial
