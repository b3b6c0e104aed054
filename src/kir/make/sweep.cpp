// Dead values go, statements get their one order, node numbers close up: equal programs get equal bytes, whatever was
// tried while building and in whichever order a compiler evaluates operands.
#include <algorithm>

#include "kir/make/state.h"

namespace tern::kir {

namespace {

bool reads(Op op) { return op == Op::get || op == Op::load || op == Op::wg_load; }
// Stands where its author put it: it changes something, or lanes meet there.
bool is_fixed(Op op) { return op_info(op).cls != OpClass::leaf && op_info(op).cls != OpClass::pure && !reads(op); }

// C++ leaves open in which order the operands of a + b are evaluated, hence in which order they become statements. Here
// each block gets an order of its own: fixed statements as they are; reads stay between the same two of them; a value
// stands right before what first needs it, operands in their order.
class Order {
 public:
  Order(Kernel& k, const std::vector<uint8_t>& live) : k_(k), live_(live), home_(k.nodes.size(), kNone) {
    for (uint32_t b = 0; b < k.blocks.size(); ++b) {
      for (const Ref r : k.blocks[b]) home_[r] = b;
    }
  }
  void run() {
    for (uint32_t b = 0; b < k_.blocks.size(); ++b) block(b);
  }

 private:
  // Appends what r needs of the block, then r.
  void need(uint32_t in, Ref r, std::vector<uint8_t>& seen, std::vector<Ref>& out) {
    if (home_[r] != in || is_fixed(k_.nodes[r].op) || seen[r]) return;
    seen[r] = 1;
    each_operand(k_.nodes[r], [&](Ref o) { need(in, o, seen, out); });
    out.push_back(r);
  }
  void needs_of(uint32_t in, Ref fixed, std::vector<uint8_t>& seen, std::vector<Ref>& out) {
    if (!live_[fixed]) return;
    const Node& n = k_.nodes[fixed];
    each_operand(n, [&](Ref o) { need(in, o, seen, out); });
    if (n.body == kNone) return;
    for (const Ref r : k_.blocks[n.body]) needs_of(in, r, seen, out);
  }

  void block(uint32_t index) {
    const std::vector<Ref> old = std::move(k_.blocks[index]);
    std::vector<Ref> ranked, pending, ready, out;
    std::vector<uint8_t> seen(k_.nodes.size(), 0), placed(k_.nodes.size(), 0);
    for (const Ref r : old) {
      if (is_fixed(k_.nodes[r].op)) needs_of(index, r, seen, ranked);
    }
    std::vector<uint32_t> rank(k_.nodes.size(), 0);
    for (uint32_t i = 0; i < ranked.size(); ++i) rank[ranked[i]] = i;
    for (const Ref r : old) {
      if (!live_[r]) continue;
      if (reads(k_.nodes[r].op)) pending.push_back(r);
      if (!is_fixed(k_.nodes[r].op)) continue;
      for (const Ref read : pending) need(index, read, placed, ready);
      needs_of(index, r, placed, ready);
      std::sort(ready.begin(), ready.end(), [&](Ref a, Ref b) { return rank[a] < rank[b]; });
      out.insert(out.end(), ready.begin(), ready.end());
      out.push_back(r);
      pending.clear(), ready.clear();
    }
    k_.blocks[index] = std::move(out);
  }

  Kernel& k_;
  const std::vector<uint8_t>& live_;
  std::vector<uint32_t> home_;  // block of a statement
};

class Sweep {
 public:
  Sweep(Kernel& k, bool order) : k_(k), live_(k.nodes.size(), 0), order_(order) {}

  void run() {
    for (changed_ = true; changed_;) {
      changed_ = false;
      block(0);
    }
    if (order_) Order(k_, live_).run();
    compact();
  }

 private:
  void keep(Ref ref) {
    if (live_[ref]) return;
    live_[ref] = 1;
    changed_ = true;
    each_operand(k_.nodes[ref], [&](Ref r) { keep(r); });
  }

  // Whether anything in the block lives. Backwards, so that one walk settles straight code.
  bool block(uint32_t index) {
    bool any = false;
    const auto& list = k_.blocks[index];
    for (auto it = list.rbegin(); it != list.rend(); ++it) {
      const Node& n = k_.nodes[*it];
      switch (n.op) {
        case Op::store:
        case Op::prefetch:
        case Op::wg_store:
        case Op::barrier: keep(*it); break;
        case Op::set:  // a variable lives by its readers
          if (live_[n.a]) keep(*it);
          break;
        case Op::branch:
        case Op::loop:
          if (block(n.body)) keep(*it);
          break;
        default: break;
      }
      any = any || live_[*it];
    }
    return any;
  }

  void compact() {
    const Kernel old = std::move(k_);
    k_ = {};
    k_.name = old.name, k_.lanes = old.lanes, k_.subgroup = old.subgroup, k_.node_budget = old.node_budget;
    k_.bindings = old.bindings, k_.dims = old.dims, k_.arrays = old.arrays;
    number_.assign(old.nodes.size(), kNone);
    view_number_.assign(old.views.size(), kNone);
    copy_block(old, 0);
  }

  // Numbers in the order of the text: a leaf's at its first use.
  Ref copy(const Kernel& old, Ref from) {
    if (number_[from] != kNone) return number_[from];
    Node n = old.nodes[from];
    for (Ref* r : {&n.a, &n.b, &n.c, &n.d}) *r = *r == kNone ? kNone : copy(old, *r);
    if (has_view(n)) {
      uint32_t& view = view_number_[n.imm];
      if (view == kNone) {
        view = static_cast<uint32_t>(k_.views.size());
        k_.views.push_back(old.views[n.imm]);
      }
      n.imm = view;
    }
    k_.nodes.push_back(n);
    return number_[from] = static_cast<Ref>(k_.nodes.size() - 1);
  }

  uint32_t copy_block(const Kernel& old, uint32_t from) {
    const auto at = static_cast<uint32_t>(k_.blocks.size());
    k_.blocks.emplace_back();
    for (const Ref r : old.blocks[from]) {
      if (!live_[r]) continue;
      const Ref to = copy(old, r);
      k_.blocks[at].push_back(to);
      if (old.nodes[r].body != kNone) k_.nodes[to].body = copy_block(old, old.nodes[r].body);
    }
    return at;
  }

  Kernel& k_;
  std::vector<uint8_t> live_;
  bool changed_ = false, order_;
  std::vector<Ref> number_, view_number_;  // of old nodes and views
};

}  // namespace

void sweep(Kernel& kernel, bool order) { Sweep(kernel, order).run(); }

Kernel in_one_order(Kernel kernel) {
  sweep(kernel, true);
  return kernel;
}

}  // namespace tern::kir
