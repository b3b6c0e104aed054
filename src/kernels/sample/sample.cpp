// sample: penalties, top-k, top-p, min-p, temperature and a seeded draw, as include/tern/ops/sample.h defines them.
//
// A workgroup owns a row. Sets are never sorted: a set of best candidates is "key above K, and the first M ids whose key is K", where
// keys are the logits' bits in order-preserving form; K is found by bisection over the 32 bits. Sums run in a fixed order, so the same
// seeds give the same id whatever else runs.
#include <algorithm>
#include <cmath>

#include "kernels/common/expr.h"
#include "kernels/common/rows.h"

namespace tern {

namespace kernels {
namespace {

using kir::V;

V u32c(uint32_t v) { return kir::constant(kir::u32, v); }

class Sampler {
 public:
  Sampler(Launcher& l, const Use& scratch)
      : l_(l),
        lanes_(static_cast<int>(l.b().lanes())),
        logits_(l.operand(at(Role::x))),
        settings_(l.operand(at(Role::settings))),
        history_(l.operand(at(Role::history))),
        seeds_(l.operand(at(Role::seeds))),
        out_(l.operand(at(Role::out))),
        work_(l.bind(scratch, "work", kir::f32)) {
    row_ = kir::group();
    vocabulary_ = l.size(l.problem().extent[1]);
    chunks_ = (vocabulary_ + (lanes_ - 1)) / lanes_;
    values_ = work_.at(row_ * 2 * vocabulary_);
    weights_ = work_.at((row_ * 2 + 1) * vocabulary_);
  }

  void run() {
    const V temperature = setting(0);
    penalise();
    find_best();
    kir::Var id = kir::var(kir::i32, kir::select(best_id_ == u32c(~0u), kir::constant(kir::i32, -1), kir::bitcast(kir::i32, best_id_)));
    kir::If(temperature > 0.f && best_id_ != u32c(~0u), [&] {
      keep_all();
      top_k();
      top_p();
      draw(temperature, id);
    });
    kir::If(kir::lane() == 0, [&] { out_.store(row_, id); });
  }

 private:
  uint16_t at(Role role) const { return static_cast<uint16_t>(find_role(l_.problem(), role)); }
  V setting(int i) { return settings_[row_ * 8 + i]; }

  // body(id, inside) for every chunk of ids, all lanes always there; ids outside read the last one.
  void each(const std::function<void(V id, V inside)>& body) {
    kir::For(0, chunks_, [&](V c) {
      const V i = c * lanes_ + kir::lane();
      body(kir::min(i, vocabulary_ - 1), i < vocabulary_);
    });
  }

  // Order-preserving bits; 0 for what may never be chosen (NaN, -inf).
  static V key_of(const V& value) {
    const V bits = kir::bitcast(kir::u32, kir::select(value == 0.f, V(0.f), value));
    const V key = kir::select(bits >> 31 != 0, ~bits, bits | u32c(0x80000000u));
    return kir::select(value >= -3.402823466e38f, key, u32c(0));
  }
  V key(const V& id) { return key_of(values_[id]); }

  // A working copy of the logits with each id of the history penalised once.
  void penalise() {
    each([&](V id, V inside) { kir::If(inside, [&] { values_.store(id, logits_[row_ * vocabulary_ + id]); }); });
    kir::barrier();
    const V length = l_.size(l_.problem().extent[2]), first = row_ * length;
    const V repeat = setting(4), frequency = setting(5), presence = setting(6);
    const V wanted = (repeat > 0.f && repeat != 1.f) || frequency != 0.f || presence != 0.f;
    kir::If(wanted, [&] {
      kir::For(0, (length + (lanes_ - 1)) / lanes_, [&](V c) {
        const V mine = c * lanes_ + kir::lane();
        const V id = history_[first + kir::min(mine, length - 1)];
        kir::Var count = kir::var(kir::u32, u32c(0)), earlier = kir::var(kir::u32, u32c(0));
        kir::For(0, length, [&](V j) {
          const V same = history_[first + j] == id;
          count.set(count + kir::select(same, u32c(1), u32c(0)));
          earlier.set(earlier + kir::select(same && j < mine, u32c(1), u32c(0)));
        });
        const V valid = mine < length && id >= 0 && kir::bitcast(kir::u32, id) < vocabulary_ && earlier == u32c(0);
        kir::If(valid, [&] {
          const V where = kir::bitcast(kir::u32, id);
          V value = logits_[row_ * vocabulary_ + where];
          value = kir::select(repeat > 0.f, kir::select(value > 0.f, value / repeat, value * repeat), value);
          values_.store(where, value - kir::cast(kir::f32, count) * frequency - presence);
        });
      });
      kir::barrier();
    });
  }

  void find_best() {
    kir::Var key_here = kir::var(kir::u32, u32c(0)), id_here = kir::var(kir::u32, u32c(~0u));
    each([&](V id, V inside) {
      const V k = key(id), better = inside && k > key_here;
      id_here.set(kir::select(better, id, id_here));
      key_here.set(kir::select(better, k, key_here));
    });
    best_key_ = kir::wg_max(key_here);
    best_id_ = kir::wg_min(kir::select(key_here == best_key_, V(id_here), u32c(~0u)));
    best_ = kir::select(best_id_ == u32c(~0u), V(0.f), values_[kir::min(best_id_, vocabulary_ - 1)]);
  }

  void keep_all() {
    above_ = kir::var(kir::u32, u32c(0));
    ties_ = kir::var(kir::u32, u32c(0));
    each([&](V id, V inside) {
      kir::If(inside, [&] {
        const V v = values_[id];
        const V w = kir::select(v == best_, V(1.f), kir::exp(v - best_));
        weights_.store(id, kir::select(key_of(v) == u32c(0), V(0.f), w));
      });
    });
    kir::barrier();
  }

  V count_where(const std::function<V(V id, V key)>& test) {
    kir::Var n = kir::var(kir::u32, u32c(0));
    each([&](V id, V inside) { n.set(n + kir::select(inside && test(id, key(id)), u32c(1), u32c(0))); });
    return kir::wg_add(n);
  }
  V weight_where(const std::function<V(V key)>& test) {
    kir::Var sum = kir::var(kir::f32, V(0.f));
    each([&](V id, V inside) { sum.set(sum + kir::select(inside && test(key(id)), weights_[id], V(0.f))); });
    return kir::wg_add(sum);
  }
  // The largest threshold t for which enough(t) holds, bit by bit; enough(0) must hold.
  V bisect(const std::function<V(V threshold)>& enough) {
    kir::Var t = kir::var(kir::u32, u32c(0)), bit = kir::var(kir::u32, u32c(0x80000000u));
    kir::For(0, u32c(32), [&](V) {
      const V next = t | V(bit);
      t.set(kir::select(enough(next), next, V(t)));
      bit.set(bit >> 1);
    });
    return t;
  }

  void top_k() {
    const V k = setting(1);
    const V valid = count_where([&](V, V key) { return key > u32c(0); });
    kir::If(k >= 1.f && k < kir::cast(kir::f32, valid), [&] {
      const V want = kir::cast(kir::u32, k);
      const V t = bisect([&](V threshold) { return count_where([&](V, V key) { return key >= threshold; }) >= want; });
      above_.set(t);
      ties_.set(want - count_where([&](V, V key) { return key > t; }));
    });
  }

  // The weight of one candidate whose key is t: all of them are alike.
  V weight_of(const V& t) {
    kir::Var w = kir::var(kir::f32, V(0.f));
    each([&](V id, V inside) { w.set(kir::select(inside && key(id) == t, weights_[id], w)); });
    return kir::wg_max(w);
  }

  void top_p() {
    const V p = setting(2);
    kir::If(p < 1.f, [&] {
      const V edge = above_, total = weight_where([&](V key) { return key > edge; }) + kir::cast(kir::f32, ties_) * weight_of(edge);
      const V want = kir::max(p, V(0.f)) * total;
      // Weight of what lies at or above a threshold; ties at the edge count as many as top-k kept.
      const auto reach = [&](V t) {
        return weight_where([&](V key) { return key >= t && key > edge; }) + kir::select(t <= edge, kir::cast(kir::f32, ties_) * weight_of(edge), V(0.f));
      };
      const V t = kir::max(bisect([&](V threshold) { return reach(threshold) >= want && threshold <= best_key_; }), edge);
      const V before = weight_where([&](V key) { return key > t; }), one = weight_of(t);
      const V most = kir::select(t == edge, V(ties_), count_where([&](V, V key) { return key == t; }));
      // The fewest ties that reach it.
      V n = kir::cast(kir::u32, kir::clamp(kir::ceil((want - before) / kir::max(one, V(1e-37f))), V(0.f), V(16777216.f)));
      n = kir::select(before + kir::cast(kir::f32, n) * one >= want, n, n + 1);
      const V least = kir::select(t == best_key_, u32c(1), u32c(0));
      ties_.set(kir::clamp(n, least, most));
      above_.set(t);
    });
  }

  V philox() {
    const auto word = [&](int i) {
      const V v = seeds_[row_ * 4 + i];
      return v.type() == kir::u32 ? v : kir::bitcast(kir::u32, v);
    };
    V c0 = word(2), c1 = word(3), c2 = u32c(0), c3 = u32c(0), k0 = word(0), k1 = word(1);
    for (int round = 0; round < 10; ++round) {
      const V p_hi = kir::mul_hi(c0, u32c(0xD2511F53u)), p_lo = c0 * u32c(0xD2511F53u);
      const V q_hi = kir::mul_hi(c2, u32c(0xCD9E8D57u)), q_lo = c2 * u32c(0xCD9E8D57u);
      c0 = q_hi ^ c1 ^ k0;
      c1 = q_lo;
      c2 = p_hi ^ c3 ^ k1;
      c3 = p_lo;
      k0 = k0 + u32c(0x9E3779B9u);
      k1 = k1 + u32c(0xBB67AE85u);
    }
    return kir::cast(kir::f32, c0 >> 8) * 0x1p-24f;
  }

  // Final weights, then the first id whose running sum passes the drawn share; ids run upward.
  void draw(const V& temperature, kir::Var& id) {
    const V min_p = setting(3);
    const V floor = kir::select(min_p > 0.f, best_ + kir::log(kir::max(min_p, V(1e-37f))), V(-3.402823466e38f));
    const V edge = above_, allowed = ties_, inverse = 1.f / temperature;
    kir::barrier();
    kir::Var seen = kir::var(kir::u32, u32c(0)), sum = kir::var(kir::f32, V(0.f));
    each([&](V i, V inside) {
      const V k = key(i), v = values_[i];
      const V tie = kir::select(inside && k == edge, u32c(1), u32c(0));
      const V rank = seen + kir::wg_exclusive_add(tie);
      const V kept = inside && k > u32c(0) && (v >= floor || i == best_id_) && (k > edge || (tie == u32c(1) && rank < allowed) || i == best_id_);
      const V w = kir::select(kept, kir::select(v == best_, V(1.f), kir::exp((v - best_) * inverse)), V(0.f));
      kir::If(inside, [&] { weights_.store(i, w); });
      seen.set(seen + kir::wg_add(tie));
      sum.set(sum + kir::wg_add(w));
    });
    kir::barrier();
    const V target = philox() * sum;
    kir::Var running = kir::var(kir::f32, V(0.f)), found = kir::var(kir::u32, u32c(~0u));
    each([&](V i, V inside) {
      const V w = kir::select(inside, weights_[i], V(0.f));
      const V chunk = kir::wg_add(w);
      kir::If(found == u32c(~0u) && running + chunk > target, [&] {
        const V passed = running + kir::wg_exclusive_add(w) + w > target && w > 0.f;
        found.set(kir::wg_min(kir::select(passed, i, u32c(~0u))));
      });
      running.set(running + chunk);
    });
    id.set(kir::bitcast(kir::i32, kir::select(found == u32c(~0u), best_id_, V(found))));
  }

  Launcher& l_;
  int lanes_;
  kir::Buffer logits_, settings_, history_, seeds_, out_, work_, values_, weights_;
  V row_, vocabulary_, chunks_, best_key_, best_id_, best_;
  kir::Var above_, ties_;
};

Status build_sample(const Problem& problem, const Bid& bid, BuildCtx& ctx) {
  Launcher l(ctx, problem, "sample", stream_lanes(ctx.asked.caps, -1));
  l.b().node_budget(3000);
  Use scratch = ctx.scratch(bid.scratch);
  scratch.access = Access::update;
  Sampler(l, scratch).run();
  return l.launch(problem.extent[0]);
}

OrRefuse<std::vector<Bid>> bid_sample(const Problem& problem, const Asked& asked) {
  for (const Role role : {Role::x, Role::settings, Role::history, Role::seeds, Role::out}) {
    if (find_role(problem, role) < 0) return refuse("an operand is missing");
  }
  TERN_ACCEPT(std::vector<Layout> layouts, dense_layouts(problem));
  TERN_ACCEPT(const Unit fit, check_bindings(problem, layouts, asked));
  (void)fit;
  if (problem.operands.size() + 1 > asked.caps.max_bindings) return refuse("wants one more binding for its working copy");
  Bid bid;
  bid.layouts = std::move(layouts);
  bid.scratch = asked.dims.mul(asked.dims.mul(problem.extent[0], problem.extent[1]), 8);
  if (largest(asked, problem, bid.scratch) > static_cast<double>(asked.caps.max_binding_bytes)) {
    return refuse("the working copy of the logits is larger than a binding");
  }
  bid.numerics = numerics_tag("sample 1", {}, asked.caps);
  bid.bytes = largest(asked, problem, problem.extent[0]) * largest(asked, problem, problem.extent[1]) * 12;
  bid.seconds = asked.caps.launch_s + bid.bytes / asked.caps.read_bytes_per_s;
  bid.variant = "bisection";
  return std::vector<Bid>{bid};
}

}  // namespace
}  // namespace kernels

extern const Candidate kSampleKernel;
const Candidate kSampleKernel = {"sample", Family::sample, kernels::bid_sample, kernels::build_sample};

}  // namespace tern
