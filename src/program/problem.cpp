#include "program/problem.h"

#include <string>

namespace tern {

std::string_view family_name(Family family) {
  static constexpr std::string_view kNames[] = {
#define TERN_FAMILY(name) #name,
#include "program/family_list.inc"
#undef TERN_FAMILY
  };
  return kNames[static_cast<size_t>(family)];
}

namespace {

// Feeds a Problem into a hash; dims enter as text, so that equal Problems over different tables agree.
class ProblemHasher {
 public:
  // ids: numbers that stand for dims instead of their text.
  ProblemHasher(const DimTable& dims, bool with_layouts, std::map<Dim, uint64_t>* ids = nullptr)
      : dims_(dims), with_layouts_(with_layouts), ids_(ids) {}

  void dim(Dim d) {
    if (const auto c = d.constant()) {
      h_.u64(0).i64(*c);
    } else if (ids_ != nullptr) {
      h_.u64(1).u64(ids_->try_emplace(d, ids_->size()).first->second);
    } else {
      h_.u64(1).text(dims_.text(d));
    }
  }
  void type(const TensorType& t) {
    h_.u64(static_cast<uint64_t>(t.dtype)).text(t.format != nullptr ? t.format->name : "").u64(t.shape.size());
    for (const Dim d : t.shape) dim(d);
  }
  void map(const IndexMap& m) {
    dim(m.offset);
    h_.u64(m.stride.size());
    for (const Dim d : m.stride) dim(d);
  }
  void expr(const ScalarExpr& e) {
    h_.u64(e.code.size());
    for (const ScalarExpr::Ins& i : e.code) {
      h_.u64(static_cast<uint64_t>(i.kind))
          .u64(static_cast<uint64_t>(i.op))
          .u64(static_cast<uint64_t>(i.type))
          .u64(i.a)
          .u64(i.b)
          .u64(i.c);
    }
    h_.u64(e.loads.size());
    for (const ScalarExpr::Load& l : e.loads) {
      h_.u64(l.operand);
      map(l.map);
    }
    h_.u64(e.consts.size());
    for (const ScalarExpr::Number& n : e.consts) h_.f64(n.f).i64(n.i);
    h_.u64(e.dims.size());
    for (const Dim d : e.dims) dim(d);
  }
  void operand(const Operand& o) {
    type(o.type);
    h_.u64(static_cast<uint64_t>(o.role)).u64(static_cast<uint64_t>(o.origin)).u64(static_cast<uint64_t>(o.access));
    h_.u64(o.alias);
    if (!with_layouts_) return;
    h_.text(o.layout.def != nullptr ? o.layout.def->name : "");
    for (const uint16_t t : o.layout.tile) h_.u64(t);
  }
  void part(const Part& p) {
    dim(p.n);
    h_.u64(p.weights.size());
    for (const uint16_t w : p.weights) h_.u64(w);
    expr(p.epilogue);
    h_.u64(p.outs.size());
    for (const Output& o : p.outs) {
      h_.u64(o.operand).u64(o.result).u64(static_cast<uint64_t>(o.kind));
      map(o.map);
    }
  }
  void desc(const FamilyDesc& d) {
    std::visit([this](const auto& x) { fields(x); }, d);
  }
  Hasher& raw() { return h_; }

 private:
  void fields(const RegionDesc&) {}
  void fields(const ReduceDesc& d) { h_.u64(static_cast<uint64_t>(d.kind)).u64(d.reduced_axes); }
  void fields(const ArgReduceDesc& d) { h_.u64(d.largest); }
  void fields(const NormDesc& d) { h_.u64(static_cast<uint64_t>(d.kind)).f64(d.eps); }
  void fields(const MatmulDesc& d) { h_.u64(d.batched_weight).u64(d.weight_is_kn).u64(d.high_precision); }
  void fields(const AttentionDesc& d) {
    h_.u64(d.heads)
        .u64(d.kv_heads)
        .u64(d.head_size)
        .u64(d.value_size)
        .u64(d.page)
        .f64(d.scale)
        .f64(d.soft_cap)
        .u64(d.causal)
        .u64(d.window)
        .u64(static_cast<uint64_t>(d.kv));
  }
  void fields(const GatherDesc&) {}
  void fields(const StoreDesc& d) {
    h_.u64(d.page).u64(d.heads).u64(d.size).u64(d.keys).u64(static_cast<uint64_t>(d.kv));
  }
  void fields(const ConvertDesc&) {}
  void fields(const SampleDesc&) {}
  void fields(const ScanDesc&) {}

  const DimTable& dims_;
  bool with_layouts_;
  std::map<Dim, uint64_t>* ids_;
  Hasher h_;
};

std::string type_text(const TensorType& t, const DimTable& dims) {
  std::string s = std::string(t.format != nullptr ? t.format->name : dtype_name(t.dtype)) + "[";
  for (size_t i = 0; i < t.shape.size(); ++i) s += (i ? "," : "") + dims.text(t.shape[i]);
  return s + "]";
}

}  // namespace

static Hash hash_with(ProblemHasher& h, const Problem& p, const DimTable& dims) {
  h.raw().u64(static_cast<uint64_t>(p.family)).u64(p.operands.size());
  for (const Operand& o : p.operands) h.operand(o);
  h.raw().u64(p.extent.size());
  for (const Dim d : p.extent) h.dim(d);
  h.expr(p.prologue);
  h.raw().u64(p.parts.size());
  for (const Part& part : p.parts) h.part(part);
  h.desc(p.desc);
  h.raw().u64(p.bounds.size());
  for (const Bound& b : p.bounds) h.raw().text(dims.symbols()[b.symbol].name).i64(b.min).i64(b.max);
  h.raw().u64(p.policy.precise).u64(p.policy.deterministic);
  return h.raw().done();
}

Hash problem_hash(const Problem& problem, const DimTable& dims, bool with_layouts) {
  ProblemHasher h(dims, with_layouts);
  return hash_with(h, problem, dims);
}

Hash ProblemKeys::key(const Problem& problem, bool with_layouts) {
  ProblemHasher h(dims_, with_layouts, &ids_);
  return hash_with(h, problem, dims_);
}

std::string problem_text(const Problem& p, const DimTable& dims) {
  std::string s(family_name(p.family));
  s += " {";
  for (size_t i = 0; i < p.extent.size(); ++i) s += (i ? "," : "") + dims.text(p.extent[i]);
  s += "}";
  for (const Operand& o : p.operands) {
    s += o.access == Access::read ? " " : o.access == Access::write ? " -> " : " => ";
    s += type_text(o.type, dims);
    if (o.layout.def != nullptr && o.layout.def != &kDense) s += "@" + std::string(o.layout.def->name);
  }
  for (const Bound& b : p.bounds) s += " " + dims.symbols()[b.symbol].name + "<=" + std::to_string(b.max);
  return s;
}

}  // namespace tern
