#include "kir/uniformity.h"

namespace tern::kir {

namespace {

// Walks until no variable turns varying any more: a loop may carry a varying value to an earlier read.
class Walk {
 public:
  Walk(const Kernel& k, Strength strength) : k_(k), lockstep_(strength == Strength::lockstep) {
    u_.varying.assign(k.nodes.size(), 0);
    u_.varying_block.assign(k.blocks.size(), 0);
    for (Ref r = 0; r < k.nodes.size(); ++r) {
      const Op op = k.nodes[r].op;
      u_.varying[r] = op == Op::lane || op == Op::subgroup_lane || (op == Op::subgroup_id && !lockstep_);
    }
  }

  Uniformity run() {
    for (changed_ = true; changed_;) {
      changed_ = false;
      block(0, false);
    }
    return std::move(u_);
  }

 private:
  void mark(uint8_t& flag, bool varying) {
    if (!varying || flag) return;
    flag = 1;
    changed_ = true;
  }

  bool memory_varies(const Node& n) const {
    if (lockstep_) return false;
    return n.op == Op::wg_load || k_.bindings[k_.views[n.imm].binding].access != Access::read;
  }

  void block(uint32_t index, bool varying) {
    mark(u_.varying_block[index], varying);
    for (Ref r : k_.blocks[index]) {
      const Node& n = k_.nodes[r];
      bool any = false;
      each_operand(n, [&](Ref o) { any = any || u_.varying[o]; });
      switch (n.op) {
        case Op::set:  // written by some lanes only, or with differing values
          mark(u_.varying[n.a], varying || u_.varying[n.b]);
          break;
        case Op::branch: block(n.body, varying || u_.varying[n.a]); break;
        case Op::loop:
          mark(u_.varying[r], any);
          block(n.body, varying || any);
          break;
        case Op::load:
        case Op::wg_load: mark(u_.varying[r], any || memory_varies(n)); break;
        case Op::subgroup_add:
        case Op::subgroup_min:
        case Op::subgroup_max: mark(u_.varying[r], !lockstep_); break;
        case Op::store:
        case Op::prefetch:
        case Op::wg_store:
        case Op::barrier: break;
        default: mark(u_.varying[r], any); break;
      }
    }
  }

  const Kernel& k_;
  const bool lockstep_;
  bool changed_ = false;
  Uniformity u_;
};

}  // namespace

Uniformity uniformity(const Kernel& kernel, Strength strength) { return Walk(kernel, strength).run(); }

}  // namespace tern::kir
