// sample: penalties, top-k, top-p, min-p, temperature and a seeded draw, as include/tern/ops/sample.h defines them.
//
// A workgroup owns a row. Nothing is sorted: logits become keys that order like them, a set of best candidates is "key
// above E, or key E and id below C", and E, C and the drawn id are found by bisection, each step one pass over the
// candidates. So that passes are short, candidates are first cut to those above a bound that surely keeps the wanted
// set: each lane packs its own, in place. Sums run in a fixed order: the same seeds give the same id whatever else
// runs.
#include <algorithm>
#include <bit>
#include <cmath>

#include "kernels/common/expr.h"
#include "kernels/common/keys.h"

namespace tern {

namespace kernels {
namespace {

using kir::V;
using kir::Var;

constexpr uint32_t kNobody = ~0u;  // no id
// Distances below the best logit at which the weight of what lies above is known before candidates are cut.
constexpr float kSteps[] = {1, 2, 4, 6, 9, 14};

V u32c(uint32_t v) { return kir::constant(kir::u32, v); }

class Sampler {
 public:
  Sampler(Launcher& l, const Use& scratch)
      : l_(l),
        lanes_(static_cast<int>(l.b().lanes())),
        logits_(bound(Role::x)),
        settings_(bound(Role::settings)),
        history_(bound(Role::history)),
        seeds_(bound(Role::seeds)),
        out_(bound(Role::out)) {
    row_ = kir::group();
    vocabulary_ = l.argument(l.problem().extent[1]);
    chunks_ = (vocabulary_ + (lanes_ - 1)) / lanes_;
    // Whole chunks of each array: lanes pack their candidates one below the other.
    const V place = chunks_ * lanes_;
    const kir::Buffer work = l.bind(scratch, "work", kir::u32);
    keys_ = work.at(row_ * 3 * place), ids_ = work.at((row_ * 3 + 1) * place);
    weights_ = work.as(kir::f32).at((row_ * 3 + 2) * place);
    const int64_t most = l.dims().range(l.problem().extent[1], l.problem().bounds).second;
    id_bits_ = l.argument(static_cast<int64_t>(std::bit_width(static_cast<uint64_t>(most))));
  }

  void run() {
    penalise();
    find_best();
    const V temperature = setting(0);
    const Var id = kir::var(kir::u32, best_id_);
    // Control depends on settings alone, which every lane reads alike: a row without candidates goes through and
    // chooses nobody.
    kir::If(temperature > 0.f, [&] {
      edge_ = kir::var(kir::u32, u32c(0)), cut_ = kir::var(kir::u32, u32c(0));
      choose_bound();
      pack();
      top_k();
      top_p();
      id.set(draw(temperature));
    });
    kir::If(kir::lane() == 0,
            [&] { out_.store(row_, kir::bitcast(kir::i32, kir::select(best_key_ == 0, u32c(kNobody), id.get()))); });
  }

 private:
  kir::Buffer bound(Role role) { return l_.operand(static_cast<uint16_t>(find_role(l_.problem(), role))); }
  V setting(int i) { return settings_[row_ * 8 + i]; }

  void each_id(const std::function<void(V id)>& body) {
    kir::For(0, chunks_, [&](V c) {
      const V id = c * lanes_ + kir::lane();
      kir::If(id < vocabulary_, [&] { body(id); });
    });
  }
  // Every packed candidate: where it stands. Lanes with fewer run along; `here` says whether the lane has one.
  void each_packed(const std::function<void(V at, V here)>& body) {
    kir::For(0, rounds_, [&](V c) { body(c * lanes_ + kir::lane(), c < packed_.get()); });
  }

  // Order-preserving bits; 0 for what may never be chosen (NaN, -inf).
  static V key_of(const V& value) { return kir::select(value >= -3.402823466e38f, order_key(value, true), u32c(0)); }
  V weight_of(const V& key) { return kir::select(key == best_key_, V(1.f), kir::exp(key_value(key) - best_)); }

  // Keys of the logits, each id of the history penalised once.
  void penalise() {
    each_id([&](V id) { keys_.store(id, key_of(logits_[row_ * vocabulary_ + id])); });
    const V length = l_.argument(l_.problem().extent[2]), first = row_ * length;
    const V repeat = setting(4), frequency = setting(5), presence = setting(6);
    kir::If((repeat > 0.f && repeat != 1.f) || frequency != 0.f || presence != 0.f, [&] {
      kir::barrier();
      kir::For(0, (length + (lanes_ - 1)) / lanes_, [&](V c) {
        const V mine = c * lanes_ + kir::lane();
        const V id = history_[first + kir::min(mine, length - 1)];
        const Var count = kir::var(kir::u32, u32c(0)), earlier = kir::var(kir::u32, u32c(0));
        kir::For(0, length, [&](V j) {
          const V same = history_[first + j] == id;
          count.set(count.get() + kir::cast(kir::u32, same));
          earlier.set(earlier.get() + kir::cast(kir::u32, same && j < mine));
        });
        kir::If(mine < length && id >= 0 && kir::bitcast(kir::u32, id) < vocabulary_ && earlier.get() == 0, [&] {
          const V where = kir::bitcast(kir::u32, id);
          V value = logits_[row_ * vocabulary_ + where];
          value = kir::select(repeat > 0.f, kir::select(value > 0.f, value / repeat, value * repeat), value);
          keys_.store(where, key_of(value - kir::cast(kir::f32, count.get()) * frequency - presence));
        });
      });
    });
    kir::barrier();
  }

  void find_best() {
    const Var key = kir::var(kir::u32, u32c(0)), id = kir::var(kir::u32, u32c(kNobody));
    each_id([&](V i) {
      const V k = keys_[i], better = key.get() < k;
      id.set(kir::select(better, i, id.get()));
      key.set(kir::select(better, k, key.get()));
    });
    lane_best_ = key.get();
    best_key_ = kir::wg_max(lane_best_);
    best_id_ = kir::wg_min(kir::select(lane_best_ == best_key_, id.get(), u32c(kNobody)));
    best_ = kir::select(best_key_ == 0, V(0.f), key_value(best_key_));
  }

  // The largest t below 2^bits for which enough(t) holds; enough(0) is taken to hold.
  V bisect(const V& bits, const std::function<V(V threshold)>& enough) {
    const Var t = kir::var(kir::u32, u32c(0)), bit = kir::var(kir::u32, u32c(1) << (bits - 1));
    kir::For(0, bits, [&](V) {
      const V next = t.get() | bit.get();
      t.set(kir::select(enough(next), next, t.get()));
      bit.set(bit.get() >> 1);
    });
    return t.get();
  }

  // A key that no candidate of the wanted set lies below. The k-th best of the lanes' best ones has k candidates at or
  // above it. Without top-k the best ones that make up the wanted weight lie above the first step that does.
  void choose_bound() {
    const V k = setting(1), p = setting(2);
    const Var bound = kir::var(kir::u32, u32c(1));
    total_ = kir::var(kir::f32, V(0.f));
    kir::If(k >= 1.f && k <= static_cast<float>(lanes_), [&] {
      const V want = kir::cast(kir::u32, k);
      bound.set(bisect(u32c(32), [&](V t) { return kir::wg_add(kir::cast(kir::u32, t <= lane_best_)) >= want; }));
    });
    kir::If(k < 1.f && p < 1.f, [&] {
      std::vector<Var> sums = kir::vars(std::size(kSteps) + 1, V(0.f));
      each_id([&](V id) {
        const V key = keys_[id], value = key_value(key), w = kir::select(key == 0, V(0.f), weight_of(key));
        for (size_t i = 0; i < std::size(kSteps); ++i)
          sums[i].set(sums[i].get() + kir::select(value >= best_ - kSteps[i], w, V(0.f)));
        sums.back().set(sums.back().get() + w);
      });
      total_.set(kir::wg_add(sums.back().get()));
      V chosen = u32c(1);
      for (size_t i = std::size(kSteps); i-- > 0;) {
        chosen = kir::select(kir::wg_add(sums[i].get()) >= kir::max(p, V(0.f)) * total_.get(),
                             order_key(best_ - kSteps[i], true), chosen);
      }
      bound.set(chosen);
    });
    bound_ = kir::max(bound.get(), u32c(1));
  }

  void pack() {
    packed_ = kir::var(kir::u32, u32c(0));
    kir::barrier();
    each_id([&](V id) {
      const V key = keys_[id];
      kir::If(bound_ <= key, [&] {
        const V at = packed_.get() * lanes_ + kir::lane();
        keys_.store(at, key);
        ids_.store(at, id);
        weights_.store(at, weight_of(key));
        packed_.set(packed_.get() + 1);
      });
    });
    kir::barrier();
    rounds_ = l_.caps().lockstep ? kir::wg_max(packed_.get())
                                 : chunks_;  // elsewhere loops want bounds that are plainly uniform
  }

  V kept(const V& at) { return edge_.get() < keys_[at] || (keys_[at] == edge_.get() && ids_[at] < cut_.get()); }
  V count(const std::function<V(V at)>& test) {
    const Var n = kir::var(kir::u32, u32c(0));
    each_packed([&](V at, V here) { kir::If(here, [&] { n.set(n.get() + kir::cast(kir::u32, test(at))); }); });
    return kir::wg_add(n.get());
  }
  V weight(const std::function<V(V at)>& test) {
    const Var sum = kir::var(kir::f32, V(0.f));
    each_packed([&](V at, V here) {
      kir::If(here, [&] { sum.set(sum.get() + kir::select(test(at), weights_[at], V(0.f))); });
    });
    return kir::wg_add(sum.get());
  }
  // The largest id below which at most n of the candidates that pass stand.
  V cut_after(const V& n, const std::function<V(V at)>& test) {
    return bisect(id_bits_, [&](V t) { return count([&](V at) { return test(at) && ids_[at] < t; }) <= n; });
  }

  void top_k() {
    const V k = setting(1);
    kir::If(k >= 1.f, [&] {
      const V all = count([&](V) { return V(true); });
      const V want = kir::min(kir::cast(kir::u32, kir::min(k, V(4e9f))), all);
      const V edge = bisect(u32c(32), [&](V t) { return count([&](V at) { return t <= keys_[at]; }) >= want; });
      const V ties = want - count([&](V at) { return edge < keys_[at]; });
      cut_.set(cut_after(ties, [&](V at) { return keys_[at] == edge; }));
      edge_.set(edge);
      total_.set(weight([&](V at) { return kept(at); }));
    });
  }

  void top_p() {
    const V p = setting(2);
    kir::If(p < 1.f, [&] {
      const V want = kir::max(p, V(0.f)) * total_.get();
      V edge = bisect(u32c(32), [&](V t) {
        return t <= best_key_ && weight([&](V at) { return t <= keys_[at] && kept(at); }) >= want;
      });
      const V before = weight([&](V at) { return edge < keys_[at] && kept(at); }),
              one = kir::max(weight_of(edge), V(1e-37f));
      // The fewest ties that reach it; the best one always stays.
      V n = kir::cast(kir::u32, kir::clamp(kir::ceil((want - before) / one), V(0.f), V(16777216.f)));
      n = kir::select(before + kir::cast(kir::f32, n) * one >= want, n, n + 1);
      n = kir::max(n, kir::cast(kir::u32, edge == best_key_));
      const V ties = count([&](V at) { return keys_[at] == edge && kept(at); });
      const V cut = cut_after(kir::min(n, ties), [&](V at) { return keys_[at] == edge && kept(at); });
      cut_.set(kir::select(edge == edge_.get(), kir::min(cut, cut_.get()), cut));
      edge_.set(edge);
    });
  }

  V philox() {
    const auto word = [&](int i) {
      const V v = seeds_[row_ * 4 + i];
      return v.type() == kir::u32 ? v : kir::bitcast(kir::u32, v);
    };
    const Var c[4] = {kir::var(kir::u32, word(2)), kir::var(kir::u32, word(3)), kir::var(kir::u32, u32c(0)),
                      kir::var(kir::u32, u32c(0))};
    const Var k[2] = {kir::var(kir::u32, word(0)), kir::var(kir::u32, word(1))};
    kir::For(0, 10, [&](V) {
      const V a = c[0].get(), b = c[2].get(), c1 = c[1].get(), c3 = c[3].get();
      c[0].set(kir::mul_hi(b, u32c(0xCD9E8D57u)) ^ c1 ^ k[0].get());
      c[1].set(b * u32c(0xCD9E8D57u));
      c[2].set(kir::mul_hi(a, u32c(0xD2511F53u)) ^ c3 ^ k[1].get());
      c[3].set(a * u32c(0xD2511F53u));
      k[0].set(k[0].get() + u32c(0x9E3779B9u));
      k[1].set(k[1].get() + u32c(0xBB67AE85u));
    });
    return kir::cast(kir::f32, c[0].get() >> 8) * 0x1p-24f;
  }

  // Final weights, then the smallest id up to which their sum passes the drawn share.
  V draw(const V& temperature) {
    const V min_p = setting(3), inverse = 1.f / temperature;
    const V floor = kir::select(min_p > 0.f, best_ + kir::log(kir::max(min_p, V(1e-37f))), V(-3.402823466e38f));
    const Var sum = kir::var(kir::f32, V(0.f));
    each_packed([&](V at, V here) {
      kir::If(here, [&] {
        const V key = keys_[at], value = key_value(key), stays = (kept(at) && value >= floor) || ids_[at] == best_id_;
        const V w =
            kir::select(stays, kir::select(key == best_key_, V(1.f), kir::exp((value - best_) * inverse)), V(0.f));
        weights_.store(at, w);
        sum.set(sum.get() + w);
      });
    });
    const V target = philox() * kir::wg_add(sum.get());
    kir::barrier();
    // The largest t with sum(id < t) <= target is the id where the sum steps over it.
    const V id = bisect(id_bits_, [&](V t) { return weight([&](V at) { return ids_[at] < t; }) <= target; });
    const V there = count([&](V at) { return ids_[at] == id && weights_[at] > 0.f; });
    return kir::select(there == 0, best_id_, id);
  }

  Launcher& l_;
  int lanes_;
  kir::Buffer logits_, settings_, history_, seeds_, out_, keys_, ids_, weights_;
  V row_, vocabulary_, id_bits_, chunks_, rounds_, lane_best_, best_key_, best_id_, best_, bound_;
  Var edge_, cut_, total_, packed_;
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
  if (problem.operands.size() + 1 > asked.caps.max_bindings)
    return refuse("wants one more binding for its working copy");
  Bid bid;
  bid.layouts = std::move(layouts);
  const auto lanes = static_cast<int64_t>(stream_lanes(asked.caps, -1));
  const Dim place = asked.dims.mul(asked.dims.ceildiv(problem.extent[1], lanes), lanes);
  bid.scratch = asked.dims.mul(asked.dims.mul(problem.extent[0], place), 12);
  if (largest(asked, problem, bid.scratch) > static_cast<double>(asked.caps.max_binding_bytes)) {
    return refuse("the working copy of the logits is larger than a binding");
  }
  bid.numerics = numerics_tag("sample 2", {}, asked.caps);
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
