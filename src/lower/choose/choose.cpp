#include "lower/choose/choose.h"

#include <algorithm>
#include <limits>
#include <set>

#include "lower/choose/weights.h"

namespace tern::lowering {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

// A layout that readers want a value in; rows are those of the type they see.
struct Form {
  Layout layout;
  TensorType type;
};

class Chooser {
 public:
  Chooser(Grouping& grouping, Asker& asker, const Tuning* tuning)
      : asker_(asker), dims_(asker.dims()), grouping_(grouping), tuning_(tuning) {}

  Result<Chosen> run() {
    out_.groups = std::move(grouping_.groups);
    for (Group& g : out_.groups) {
      find_aliases(g);
      Asker::settle(g.problem);
      const Answers& answers = asker_.ask(g.problem);
      if (!answers.tag) return nobody(g, answers);
      tags_.push_back(*answers.tag);
      first_.push_back(&answers);
    }
    choose_weights(out_.groups, tags_, asker_);
    choose_forms();
    TERN_OK(make_forms());
    return pick_all();
  }

 private:
  // Operands that read one value: a norm's input and its epilogue's residual, say.
  void find_aliases(Group& g) const {
    for (size_t i = 1; i < g.values.size(); ++i) {
      if (g.problem.operands[i].access != Access::read) continue;
      for (size_t j = 0; j < i; ++j) {
        const bool same = grouping_.home(g.values[j]) == grouping_.home(g.values[i]);
        if (!same || g.problem.operands[j].access != Access::read) continue;
        g.problem.operands[i].alias = static_cast<uint16_t>(j);
        break;
      }
    }
  }

  Error nobody(const Group& g, const Answers& answers) const {
    for (const Answer& a : answers.range) {
      if (!a.offers.empty()) continue;
      std::string text = "no kernel of device '" + asker_.caps().device + "' takes " + problem_text(a.problem, dims_);
      for (const auto& [name, why] : a.refusals) text += "; " + name + ": " + why;
      if (a.refusals.empty()) text += "; there is no candidate for this family";
      Error error = make_error(Code::unsupported, text, g.label);
      limit_of(a.problem, error);
      return error;
    }
    return make_error(Code::unsupported,
                      "no kernel computes " + problem_text(g.problem, dims_) + " with the same numbers in every range",
                      g.label);
  }

  // Where the largest value exceeds a binding, the sizes are to blame: another range, chunk or context may do.
  void limit_of(const Problem& p, Error& error) const {
    for (const Operand& o : p.operands) {
      if (o.origin == Origin::param || o.type.format != nullptr) continue;
      const Layout dense{&kDense, {}};
      const auto bytes = dense.def->bytes(dims_, o.type, {});
      const int64_t most = bytes ? dims_.range(*bytes, p.bounds).second : 0;
      if (most < 0 || static_cast<uint64_t>(most) <= std::max(asker_.caps().max_binding_bytes, error.need)) continue;
      error.code = Code::limit;
      error.need = static_cast<uint64_t>(most);
      error.have = asker_.caps().max_binding_bytes;
    }
  }

  static bool activation(const Operand& o) { return o.access == Access::read && o.origin != Origin::param; }

  // The forms in which a group reads its activations: the cheapest over all ranges.
  void choose_forms() {
    std::map<std::pair<const Answers*, Hash>, std::vector<Layout>> memo;
    for (size_t g = 0; g < out_.groups.size(); ++g) {
      Problem& p = out_.groups[g].problem;
      const Answers& answers = asker_.ask(p);
      auto [it, fresh] = memo.try_emplace({&answers, tags_[g]});
      if (fresh) it->second = cheapest_forms(p, answers, tags_[g]);
      for (size_t i = 0; i < p.operands.size(); ++i) {
        if (activation(p.operands[i]) && i < it->second.size()) p.operands[i].layout = it->second[i];
      }
    }
  }

  std::vector<Layout> cheapest_forms(const Problem& p, const Answers& answers, const Hash& tag) const {
    const auto same = [&](const Bid& a, const std::vector<Layout>& b) {
      for (size_t i = 0; i < p.operands.size(); ++i) {
        if (activation(p.operands[i]) && a.layouts[i] != b[i]) return false;
      }
      return true;
    };
    std::vector<Layout> pick;
    double least = kNever;
    for (const Offer& candidate : answers.range[0].offers) {
      if (candidate.bid.numerics != tag) continue;
      double sum = 0;
      for (const Answer& answer : answers.range) {
        double best = kNever, mine = kNever;
        for (const Offer& o : answer.offers) {
          if (o.bid.numerics != tag) continue;
          best = std::min(best, o.bid.seconds);
          if (same(o.bid, candidate.bid.layouts)) mine = std::min(mine, o.bid.seconds);
        }
        sum += best > 0 && mine < kNever ? mine / best : mine < kNever ? 1 : kNever;
      }
      if (sum < least) least = sum, pick = candidate.bid.layouts;
    }
    return pick;
  }

  bool same_rows(const TensorType& a, const TensorType& b) const {
    if (a.shape.empty() || b.shape.empty()) return a.shape.size() == b.shape.size();
    return dims_.equal(a.shape.back(), b.shape.back()).value_or(false);
  }

  // What readers want beyond dense: the producer writes it too, or one visible convert step does.
  Status make_forms() {
    std::map<Value, std::vector<Form>> wanted;
    std::set<Value> dense_wanted;
    std::map<Value, std::vector<size_t>> writers;
    for (const auto& [value, name] : grouping_.outputs) dense_wanted.insert(value);
    for (const CopyOut& copy : grouping_.copies) dense_wanted.insert(copy.from);
    for (const auto& [result, before] : grouping_.same_buffer) dense_wanted.insert(result), dense_wanted.insert(before);
    for (size_t g = 0; g < out_.groups.size(); ++g) {
      const Group& group = out_.groups[g];
      for (size_t i = 0; i < group.values.size(); ++i) {
        const Operand& o = group.problem.operands[i];
        if (o.access != Access::read) {
          writers[group.values[i]].push_back(g);
          if (o.access == Access::update) dense_wanted.insert(group.values[i]);
        } else if (o.origin != Origin::param) {
          if (o.layout.def == &kDense)
            dense_wanted.insert(group.values[i]);
          else
            want(wanted[group.values[i]], {o.layout, o.type});
        }
      }
    }
    for (auto& [value, forms] : wanted) {
      const auto w = writers.find(value);
      if (w == writers.end() || w->second.size() != 1) continue;
      std::erase_if(forms, [&](const Form& f) {
        return write_as(w->second[0], value, f, forms.size() > 1 || dense_wanted.contains(value));
      });
    }
    return insert_converts(wanted);
  }

  void want(std::vector<Form>& forms, Form form) const {
    const bool known = std::any_of(forms.begin(), forms.end(), [&](const Form& f) {
      return f.layout == form.layout && same_rows(f.type, form.type);
    });
    if (!known) forms.push_back(std::move(form));
  }

  // One convert step before the first reader, shared by all.
  Status insert_converts(std::map<Value, std::vector<Form>>& wanted) {
    std::vector<Group> groups;
    std::vector<Hash> tags;
    std::vector<const Answers*> first;
    for (size_t g = 0; g < out_.groups.size(); ++g) {
      Group& group = out_.groups[g];
      for (size_t i = 0; i < group.values.size(); ++i) {
        const Operand& o = group.problem.operands[i];
        const auto w = wanted.find(group.values[i]);
        if (!activation(o) || o.layout.def == &kDense || w == wanted.end()) continue;
        const auto form = std::find_if(w->second.begin(), w->second.end(), [&](const Form& f) {
          return f.layout == o.layout && same_rows(f.type, o.type);
        });
        if (form == w->second.end()) continue;
        Group c;
        c.problem = asker_.convert(form->type, form->layout);
        c.values = {group.values[i], group.values[i]};
        c.label = group.label + " (convert)";
        c.device = group.device;
        const Answers& answers = asker_.ask(c.problem);
        if (!answers.tag) return nobody(c, answers);
        groups.push_back(std::move(c));
        tags.push_back(*answers.tag);
        first.push_back(&answers);
        w->second.erase(form);
      }
      groups.push_back(std::move(group));
      tags.push_back(tags_[g]);
      first.push_back(first_[g]);
    }
    out_.groups = std::move(groups);
    tags_ = std::move(tags);
    first_ = std::move(first);
    return ok();
  }

  // Makes the producer write the value in the form, beside or instead of the dense one. False: no candidate can.
  bool write_as(size_t g, Value value, const Form& form, bool keep_dense) {
    Group& group = out_.groups[g];
    const Problem& p = group.problem;
    size_t i = 0;
    while (i < group.values.size() && (group.values[i] != value || p.operands[i].access != Access::write)) ++i;
    if (i == group.values.size() || !same_rows(p.operands[i].type, form.type)) return false;
    const auto accept = [&](Problem& changed, bool more) {
      const Answers& answers = asker_.ask(changed);
      for (const Answer& a : answers.range) {
        if (std::none_of(a.offers.begin(), a.offers.end(), [&](const Offer& o) { return o.bid.numerics == tags_[g]; }))
          return false;
      }
      group.problem = std::move(changed);
      if (more) group.values.push_back(value);
      return true;
    };
    Problem changed = p;
    if (!keep_dense && p.operands[i].layout.def == &kDense && p.operands[i].origin == Origin::temp) {
      changed.operands[i].layout = form.layout;
      return accept(changed, false);
    }
    for (Part& part : changed.parts) {
      for (size_t o = 0; o < part.outs.size(); ++o) {
        if (part.outs[o].operand != i) continue;
        Output more = part.outs[o];
        more.operand = static_cast<uint16_t>(changed.operands.size());
        Operand operand = changed.operands[i];
        operand.layout = form.layout;
        operand.origin = Origin::temp;
        changed.operands.push_back(operand);
        part.outs.push_back(more);
        return changed.operands.size() <= asker_.caps().max_bindings && accept(changed, true);
      }
    }
    return false;
  }

  Result<Chosen> pick_all() {
    std::map<std::pair<const Answers*, Hash>, std::vector<uint32_t>> memo;
    out_.which.assign(asker_.ranges().size(), {});
    for (size_t g = 0; g < out_.groups.size(); ++g) {
      const Answers& answers = asker_.ask(out_.groups[g].problem);
      auto [it, fresh] = memo.try_emplace({&answers, tags_[g]});
      for (size_t r = 0; r < answers.range.size() && fresh; ++r) {
        const auto pick = cheapest(answers.range[r], g, r);
        if (!pick) return nobody(out_.groups[g], answers);
        it->second.push_back(static_cast<uint32_t>(out_.picks.size()));
        out_.picks.push_back(*pick);
      }
      for (size_t r = 0; r < it->second.size(); ++r) out_.which[r].push_back(it->second[r]);
    }
    return std::move(out_);
  }

  std::optional<Pick> cheapest(const Answer& answer, size_t g, size_t r) const {
    const Offer* best = nullptr;
    for (const Offer& o : answer.offers) {
      if (o.bid.numerics == tags_[g] && (best == nullptr || o.bid.seconds < best->bid.seconds)) best = &o;
    }
    if (best == nullptr) return std::nullopt;
    Pick pick{best->candidate, best->bid, answer.problem, first_[g]->range[r].refusals};
    for (size_t i = 0; i < pick.problem.operands.size(); ++i) pick.problem.operands[i].layout = best->bid.layouts[i];
    tune(pick, answer);
    // Those that would have done it, too.
    std::set<std::string_view> told = {best->candidate->name};
    for (const Offer& o : first_[g]->range[r].offers) {
      if (!told.insert(o.candidate->name).second) continue;
      const bool other = o.bid.numerics != tags_[g];
      pick.refusals.emplace_back(o.candidate->name,
                                 other ? "its numbers differ from the chosen ones, which are cheaper over all ranges"
                                       : "not the cheapest over all uses");
    }
    return pick;
  }

  // Offers that differ from the pick in their variant only: the tuning may know a better one.
  void tune(Pick& pick, const Answer& answer) const {
    if (tuning_ == nullptr) return;
    std::vector<const Bid*> bids;
    std::vector<std::string> variants;
    for (const Offer& o : answer.offers) {
      if (o.candidate != pick.candidate || o.bid.numerics != pick.bid.numerics || o.bid.layouts != pick.bid.layouts)
        continue;
      bids.push_back(&o.bid), variants.push_back(o.bid.variant);
    }
    if (bids.size() < 2) return;
    pick.bid = *bids[tuning_->choose(pick.candidate->name, problem_text(pick.problem, dims_), variants)];
  }

  Asker& asker_;
  DimTable& dims_;
  Grouping& grouping_;
  const Tuning* tuning_;
  std::vector<Hash> tags_;             // of each group
  std::vector<const Answers*> first_;  // what was said before layouts were decided
  Chosen out_;
};

}  // namespace

Result<Chosen> choose(Grouping& grouping, Asker& asker, const Tuning* tuning) {
  return Chooser(grouping, asker, tuning).run();
}

}  // namespace tern::lowering
