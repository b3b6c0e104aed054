// Regions over the same axes that read the same values, or one the other's result, become one region with several
// outputs.
#include <algorithm>

#include "lower/fuse/fuse.h"

namespace tern::lowering {
namespace {

using Kind = ScalarExpr::Kind;
constexpr size_t kMaxCode = 96;

class Pair {
 public:
  Pair(FuseState& s, const Uses& u, uint32_t a, uint32_t b) : s_(s), u_(u), a_(a), b_(b) {}

  std::optional<Group> merge() {
    const Group &a = s_.groups[a_], &b = s_.groups[b_];
    if (a.problem.extent != b.problem.extent || a.device != b.device || a.over || b.over) return std::nullopt;
    // What b reads of a, it reads of a itself and not of something made from it.
    if (u_.depends(a_, b_) || u_.between(a_, b_)) return std::nullopt;
    out_ = a;
    shared_ = 0;
    if (!append(b)) return std::nullopt;
    if (shared_ == 0 || out_.problem.prologue.code.size() > kMaxCode) return std::nullopt;
    drop_unread();
    if (out_.values.size() > s_.caps.max_bindings || !s_.taken(out_.problem)) return std::nullopt;
    if (a.label != b.label) out_.label += "+" + b.label;
    return std::move(out_);
  }

 private:
  // The output of a that is exactly what the load of b reads.
  std::optional<uint16_t> made_by_a(Value v, const IndexMap& map, bool& writes) const {
    writes = false;
    for (const Output& o : s_.groups[a_].problem.parts[0].outs) {
      if (s_.groups[a_].values[o.operand] != v) continue;
      writes = true;
      if (u_.writers(v).size() == 1 && same_map(s_.dims, o.map, map, s_.groups[a_].problem.extent)) return o.result;
    }
    return std::nullopt;
  }
  uint16_t push(const ScalarExpr::Ins& ins) {
    auto& code = out_.problem.prologue.code;
    const auto at = std::find(code.begin(), code.end(), ins);
    if (at != code.end()) {
      shared_ += ins.kind == Kind::op;
      return static_cast<uint16_t>(at - code.begin());
    }
    code.push_back(ins);
    return static_cast<uint16_t>(code.size() - 1);
  }
  template <class T>
  static uint16_t intern(std::vector<T>& list, const T& x) {
    const auto at = std::find(list.begin(), list.end(), x);
    if (at != list.end()) return static_cast<uint16_t>(at - list.begin());
    list.push_back(x);
    return static_cast<uint16_t>(list.size() - 1);
  }
  bool whole(const Group& b, const ScalarExpr::Load& l) const {
    const Dim n = element_count(s_.dims, b.problem.extent);
    return s_.dims.equal(n, element_count(s_.dims, b.problem.operands[l.operand].type.shape)).value_or(false);
  }

  bool append(const Group& b) {
    const ScalarExpr& from = b.problem.prologue;
    ScalarExpr& to = out_.problem.prologue;
    std::vector<uint16_t> at(from.code.size());
    for (size_t n = 0; n < from.code.size(); ++n) {
      ScalarExpr::Ins i = from.code[n];
      switch (i.kind) {
        case Kind::load: {
          const ScalarExpr::Load& l = from.loads[i.a];
          bool writes = false;
          const Value v = b.values[l.operand];
          if (const auto made = made_by_a(v, l.map, writes)) {
            // A stored value is rounded to its type; one that is not may be taken as it is.
            if (to.code[*made].type != b.problem.operands[l.operand].type.dtype) return false;
            at[n] = *made;
            ++shared_;
            continue;
          }
          if (writes) return false;
          const size_t before = to.loads.size();
          i.a = intern(to.loads, {read_operand(out_, v, b.problem.operands[l.operand]), l.map});
          shared_ += to.loads.size() == before && whole(b, l);
          break;
        }
        case Kind::constant: i.a = intern(to.consts, from.consts[i.a]); break;
        case Kind::dim: i.a = intern(to.dims, from.dims[i.a]); break;
        case Kind::op: {
          const int arity = scalar_row(i.op).arity;
          i.a = at[i.a];
          if (arity > 1) i.b = at[i.b];
          if (arity > 2) i.c = at[i.c];
          break;
        }
        case Kind::index:
        case Kind::accumulator: break;
      }
      at[n] = push(i);
    }
    for (const Output& o : b.problem.parts[0].outs) {
      Output out = o;
      out.operand = written_operand(b, o.operand);
      out.result = at[o.result];
      out_.problem.parts[0].outs.push_back(out);
    }
    return true;
  }

  // Parts of one value (a concat's, say) are written through one operand: aliased operands are one binding.
  uint16_t written_operand(const Group& b, uint16_t operand) {
    for (const Output& o : out_.problem.parts[0].outs) {
      const bool same = out_.problem.operands[o.operand].type == b.problem.operands[operand].type;
      if (same && out_.values[o.operand] == b.values[operand]) return o.operand;
    }
    out_.values.push_back(b.values[operand]);
    out_.problem.operands.push_back(b.problem.operands[operand]);
    return static_cast<uint16_t>(out_.values.size() - 1);
  }

  // Results of a that only b read need no memory any more.
  void drop_unread() {
    auto& outs = out_.problem.parts[0].outs;
    for (size_t n = 0; n < outs.size();) {
      const uint16_t operand = outs[n].operand;
      const Value v = out_.values[operand];
      const auto& readers = u_.readers(v);
      const bool needed = s_.kept.contains(v) || readers.empty() ||
                          std::any_of(readers.begin(), readers.end(), [&](uint32_t r) { return r != a_ && r != b_; });
      if (needed || outs.size() == 1) {
        ++n;
        continue;
      }
      outs.erase(outs.begin() + static_cast<std::ptrdiff_t>(n));
      if (std::any_of(outs.begin(), outs.end(), [&](const Output& o) { return o.operand == operand; })) continue;
      out_.values.erase(out_.values.begin() + operand);
      out_.problem.operands.erase(out_.problem.operands.begin() + operand);
      for (Output& o : outs) o.operand = static_cast<uint16_t>(o.operand - (o.operand > operand));
      for (ScalarExpr::Load& l : out_.problem.prologue.loads)
        l.operand = static_cast<uint16_t>(l.operand - (l.operand > operand));
    }
  }

  FuseState& s_;
  const Uses& u_;
  uint32_t a_, b_;
  Group out_;
  int shared_ = 0;
};

}  // namespace

void merge_regions(FuseState& s) {
  std::vector<bool> gone(s.groups.size());
  std::map<Value, std::vector<uint32_t>> touched;  // regions by what they read or make
  for (uint32_t g = 0; g < s.groups.size(); ++g) {
    if (s.groups[g].problem.family != Family::region) continue;
    for (const Value v : s.groups[g].values) touched[v].push_back(g);
  }
  std::set<std::pair<uint32_t, uint32_t>> tried;
  Uses u(s);
  constexpr size_t kLook = 8;  // neighbours in the list of one value; a value that everybody reads would cost a square
  for (const auto& [value, list] : touched) {
    for (size_t i = 0; i < list.size(); ++i) {
      for (size_t j = i + 1; j < list.size() && j <= i + kLook; ++j) {
        const uint32_t a = std::min(list[i], list[j]), b = std::max(list[i], list[j]);
        if (a == b || gone[a] || gone[b] || !tried.insert({a, b}).second) continue;
        // The one that the other reads comes first.
        const bool turned = u.depends(a, b);
        const uint32_t first = turned ? b : a, second = turned ? a : b;
        auto merged = Pair(s, u, first, second).merge();
        if (!merged) continue;
        s.groups[second] = std::move(*merged);
        gone[first] = true;
        u = [&] {
          for (uint32_t g = 0; g < s.groups.size(); ++g) {
            if (gone[g]) s.groups[g].values.clear(), s.groups[g].problem.operands.clear();
          }
          return Uses(s);
        }();
      }
    }
  }
  drop(s, gone);
}

}  // namespace tern::lowering
