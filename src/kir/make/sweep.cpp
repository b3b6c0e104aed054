// Dead values go, node numbers close up: equal programs get equal bytes whatever was tried while building.
#include "kir/make/state.h"

namespace tern::kir {

namespace {

class Sweep {
 public:
  explicit Sweep(Kernel& k) : k_(k), live_(k.nodes.size(), 0) {}

  void run() {
    for (changed_ = true; changed_;) {
      changed_ = false;
      block(0);
    }
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
    std::vector<uint32_t> view_uses(k_.views.size(), 0), block_of;
    std::vector<Ref> node_of(k_.nodes.size(), kNone);
    Kernel out = std::move(k_);
    const std::vector<Node> nodes = std::move(out.nodes);
    const std::vector<std::vector<Ref>> blocks = std::move(out.blocks);
    const std::vector<View> views = std::move(out.views);
    out.nodes.clear();
    out.blocks.clear();
    out.views.clear();
    for (Ref r = 0; r < nodes.size(); ++r) {
      if (!live_[r]) continue;
      node_of[r] = static_cast<Ref>(out.nodes.size());
      out.nodes.push_back(nodes[r]);
      if (has_view(nodes[r])) view_uses[nodes[r].imm] = 1;
    }
    for (uint32_t v = 0; v < views.size(); ++v) {
      if (!view_uses[v]) continue;
      view_uses[v] = static_cast<uint32_t>(out.views.size());
      out.views.push_back(views[v]);
    }
    block_of.assign(blocks.size(), kNone);
    move_block(0, nodes, blocks, node_of, block_of, out);
    for (Node& n : out.nodes) {
      for (Ref* r : {&n.a, &n.b, &n.c, &n.d}) *r = *r == kNone ? kNone : node_of[*r];
      if (n.body != kNone) n.body = block_of[n.body];
      if (has_view(n)) n.imm = view_uses[n.imm];
    }
    k_ = std::move(out);
  }

  void move_block(uint32_t index, const std::vector<Node>& nodes, const std::vector<std::vector<Ref>>& blocks,
                  const std::vector<Ref>& node_of, std::vector<uint32_t>& block_of, Kernel& out) {
    const uint32_t at = block_of[index] = static_cast<uint32_t>(out.blocks.size());
    out.blocks.emplace_back();
    for (Ref r : blocks[index]) {
      if (!live_[r]) continue;
      out.blocks[at].push_back(node_of[r]);
      if (nodes[r].body != kNone) move_block(nodes[r].body, nodes, blocks, node_of, block_of, out);
    }
  }

  Kernel& k_;
  std::vector<uint8_t> live_;
  bool changed_ = false;
};

}  // namespace

void sweep(Kernel& kernel) { Sweep(kernel).run(); }

}  // namespace tern::kir
