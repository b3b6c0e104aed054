// fuse: groups nodes and rewrites nothing. Its stages, in the order in which fuse() runs them.
#pragma once

#include <optional>
#include <set>

#include "graph/sizes/late.h"
#include "lower/fuse/make/expr.h"
#include "lower/groups.h"

namespace tern::lowering {

// device: of each node, from partition; groups never cross devices. An error names the node.
Result<Grouping> fuse(const Graph& graph, const std::vector<DeviceId>& device, const Caps& caps, const Taken& taken);

// ---- what the stages share

struct FuseState {
  const Graph& graph;
  DimTable& dims;
  const std::vector<DeviceId>& device;
  const Caps& caps;
  const Taken& taken;
  std::vector<uint32_t> order;
  Stored stored;
  std::set<Value> kept;  // outputs and next values of states: they have memory whatever reads them
  std::vector<Group> groups;
  LateSizes late;

  FuseState(const Graph& g, const std::vector<DeviceId>& d, const Caps& c, const Taken& t);
  bool is_leaf(uint32_t node) const;
  bool is_elementwise(uint32_t node) const { return graph.node(node).op->scalar >= 0; }
  bool is_view(uint32_t node) const { return graph.node(node).op->view != nullptr; }
  bool is_anchor(uint32_t node) const;
  // The stored value whose bytes, in order, are this value's; the value itself where no contiguous view leads further.
  Value base_of(Value v) const;
  // The values that late sizes of the group are made of.
  std::vector<Value> waits_for(const Group& group) const;
  std::string where(uint32_t node) const;
};

// roots.cpp: decides which values get memory.
void mark_roots(FuseState& s);
// regions.cpp: one group per stored elementwise value or view. movers.cpp: reduce, concat, pad.
Status make_regions(FuseState& s);
// Groups of everything else, from the table in anchors.cpp.
Status make_anchors(FuseState& s);
// epilogues.cpp: a region that reads one result of a matmul, norm or reduce element by element moves into it.
void absorb_epilogues(FuseState& s);
// prologues.cpp: a region that only a store reads is computed by the store.
void absorb_prologues(FuseState& s);
// parts.cpp: matmuls of one input become parts of one launch.
void merge_parts(FuseState& s);
// siblings.cpp: regions over the same axes that share what they read become one with several outputs.
void merge_regions(FuseState& s);
// axes.cpp: joins axes that every map of a region walks as one.
void collapse(FuseState& s);
// states.cpp: which results live in a state's own buffer, what is copied when, and the order of it all.
Result<Grouping> finish(FuseState& s);

// ---- pieces of regions

// Builds the expression of a stored value (expand) or of an operand; false: `s.stored` has grown, look again.
bool build_expr(FuseState& s, Value root, bool expand, Expr& expr);
// A region over the axes of `extent` that reads the expression's loads.
Group region_group(FuseState& s, const Expr& expr, const Shape& extent, uint32_t node);
void add_out(FuseState& s, Group& group, Value v, TensorType type, uint16_t result, IndexMap map = {});
// Numbers the loads of an expression as operands of a group.
void add_loads(FuseState& s, const Expr& expr, ScalarExpr& code, Group& group, Role role);
// reduce, concat, pad as groups; nullopt: not one of them. false: look again.
Result<std::optional<bool>> make_mover(FuseState& s, uint32_t node, std::vector<Group>& out);
bool is_mover(const Node& node);

Operand operand_of(const FuseState& s, Value v, TensorType type, Role role, Access access);
// The place of a value among a group's read operands that have this type; adds one where there is none.
uint16_t read_operand(Group& group, Value v, const Operand& operand);
void drop(FuseState& s, const std::vector<bool>& gone);

// Which groups read and write a value, and what depends on what. A store counts as coming after those who read what it
// starts from, where they can: no fusion may take the chance away to do it in place.
class Uses {
 public:
  explicit Uses(const FuseState& s);
  const std::vector<uint32_t>& readers(Value v) const { return find(readers_, v); }
  const std::vector<uint32_t>& writers(Value v) const { return find(writers_, v); }
  // Does group `to` need something that `from` makes, directly or through others?
  bool depends(uint32_t to, uint32_t from) const { return (reach_[to][from / 64] >> (from % 64)) & 1; }
  // Does something else come after `from` and before `to`, or a late size that `from` makes? Then they cannot be one
  // launch.
  bool between(uint32_t from, uint32_t to) const;
  // From now on `after` comes after `before`, which must not need it.
  void order(uint32_t before, uint32_t after);
  // a and b became one launch: what depends on one depends on both. Readers and writers keep their old numbers.
  void join(uint32_t a, uint32_t b);

 private:
  using Map = std::map<Value, std::vector<uint32_t>>;
  static const std::vector<uint32_t>& find(const Map& map, Value v) {
    static const std::vector<uint32_t> kNobody;
    const auto it = map.find(v);
    return it == map.end() ? kNobody : it->second;
  }
  Map readers_, writers_;
  std::set<std::pair<uint32_t, uint32_t>> late_;  // group, one that its late sizes come from
  std::vector<std::vector<uint64_t>> reach_;      // [group], bits of the groups that it needs
};

}  // namespace tern::lowering
