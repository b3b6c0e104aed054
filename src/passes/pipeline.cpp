// The only place that orders passes, and the loop that runs them.
#include <algorithm>
#include <chrono>

#include "base/hash.h"
#include "passes/passes.h"

namespace tern {
namespace {

// Sizes settle first, while shape arithmetic is as it was written. Canonical forms come before cse, which compares
// spellings; what decompose writes is cleaned by the same passes again.
constexpr Pass kPasses[] = {
    {"settle", settle},
    {"canonicalise", canonicalise},
    {"simplify", simplify},
    {"fold", fold},
    {"cse", cse},
    {"dce", dce},
    {"decompose", decompose},
    {"canonicalise", canonicalise},
    {"simplify", simplify},
    {"fold", fold},
    {"cse", cse},
    {"dce", dce},
};

// Of the live structure. Contents of constants enter by address: passes never change them in place.
void feed(Hasher& h, const Graph& g) {
  const std::vector<uint32_t> order = g.order();
  std::vector<uint32_t> place(g.node_count(), 0);
  for (uint32_t i = 0; i < order.size(); ++i) place[order[i]] = i;
  auto value = [&](Value v) { h.u64(place[v.node]).u64(v.out); };
  auto dim = [&](Dim d) {
    if (auto c = d.constant()) {
      h.u64(0).i64(*c);
    } else {
      h.u64(1).text(g.dims->text(d));
    }
  };
  auto shape = [&](const Shape& s) {
    h.u64(s.size());
    std::for_each(s.begin(), s.end(), dim);
  };
  struct Visitor {
    Hasher& h;
    decltype(dim)& dim_;
    decltype(shape)& shape_;
    void operator()(bool v) { h.u64(v); }
    void operator()(int64_t v) { h.i64(v); }
    void operator()(double v) { h.f64(v); }
    void operator()(const std::string& v) { h.text(v); }
    void operator()(DType v) { h.u64(static_cast<uint64_t>(v)); }
    void operator()(const std::vector<int64_t>& v) { h.bytes(std::as_bytes(std::span(v))); }
    void operator()(Dim v) { dim_(v); }
    void operator()(const Shape& v) { shape_(v); }
    void operator()(const Const& v) { h.u64(reinterpret_cast<uintptr_t>(v.data.get())); }
  };
  for (uint32_t id : order) {
    const Node& n = g.node(id);
    h.text(n.op->name).u64(n.in.size());
    std::for_each(n.in.begin(), n.in.end(), value);
    for (const TensorType& t : n.out) {
      h.u64(static_cast<uint64_t>(t.dtype)).u64(reinterpret_cast<uintptr_t>(t.format));
      shape(t.shape);
    }
    for (const Attr& a : n.attrs) h.u64(a.index()), std::visit(Visitor{h, dim, shape}, a);
    for (const auto& r : n.regions) feed(h, *r);
    h.text(n.loc.text);
  }
  for (const OutputPort& o : g.outputs()) h.text(o.name), value(o.value);
  for (const StateUpdate& u : g.updates()) h.text(u.state), value(u.next);
  h.u64(g.guards.size());
}

Hash fingerprint(const Graph& g) {
  Hasher h;
  feed(h, g);
  return h.done();
}

}  // namespace

std::span<const Pass> default_passes() { return kPasses; }

Result<std::vector<PassTiming>> run_passes(Graph& graph, const Target& target, std::span<const Pass> passes,
                                           const PassOptions& options) {
  for (const std::string& name : options.skip) {
    if (std::none_of(passes.begin(), passes.end(), [&](const Pass& p) { return p.name == name; })) {
      return make_error(Code::not_found, "no pass is named '" + name + "'");
    }
  }
  auto located = [](const Pass& pass, Error e, std::string_view when) {
    e.where = "pass " + std::string(pass.name) + std::string(when) + (e.where.empty() ? "" : ", " + e.where);
    return e;
  };
  std::vector<PassTiming> timings;
  Hash before = fingerprint(graph);
  for (const Pass& pass : passes) {
    if (std::find(options.skip.begin(), options.skip.end(), pass.name) != options.skip.end()) continue;
    const auto start = std::chrono::steady_clock::now();
    if (auto s = pass.run(graph, target); !s) return located(pass, s.take_error(), "");
    PassTiming timing{pass.name, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(),
                      false};
    const Hash after = fingerprint(graph);
    timing.changed = after != before;
    before = after;
    timings.push_back(timing);
    if (options.verify) {
      if (auto s = graph.verify(); !s) return located(pass, s.take_error(), " left a graph that does not verify");
    }
    if (timing.changed && options.changed) options.changed(pass.name, graph);
  }
  return timings;
}

}  // namespace tern
