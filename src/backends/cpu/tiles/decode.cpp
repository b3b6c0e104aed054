// From kir to decoded ops: which values are one memory, how long each lives, where it lies in the frame.
#include <algorithm>
#include <cstring>
#include <map>
#include <string>

#include "backends/cpu/tiles/code.h"
#include "kir/serial.h"
#include "kir/uniformity.h"

namespace tern::cpu {
namespace {

using kir::kNone;
using kir::Node;
using kir::Op;
using kir::Ref;

const TileOps& ops_for(bool portable) {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (!portable && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c"))
    return tile_ops_avx2();
#endif
  (void)portable;
  return tile_ops_base();
}

bool word_int(kir::Type t) { return t == kir::i32 || t == kir::u32; }
uint32_t lane_bytes(kir::Type t) { return kir::type_bytes(t) == 8 ? 8 : 4; }

// Room in the frame, first fit.
class Room {
 public:
  explicit Room(uint32_t begin) : begin_(begin), most_(begin) {}
  uint32_t take(uint32_t bytes) {
    bytes = (bytes + 63) / 64 * 64;
    uint32_t at = begin_;
    auto it = used_.begin();
    for (; it != used_.end() && it->first < at + bytes; ++it) at = it->second;
    used_.emplace(at, at + bytes);
    most_ = std::max(most_, at + bytes);
    return at;
  }
  void give(uint32_t at) { used_.erase(at); }
  uint32_t most() const { return most_; }

 private:
  uint32_t begin_, most_;
  std::map<uint32_t, uint32_t> used_;  // begin -> end
};

class Decoder {
 public:
  Decoder(const kir::Kernel& kernel, const TileOps& ops)
      : k_(kernel), ops_(ops), uniform_(kir::uniformity(kernel, kir::Strength::lockstep)) {
    const size_t n = k_.nodes.size();
    root_.resize(n);
    part_.assign(n, 0);
    at_.assign(n, 0);
    block_of_.assign(n, 0);
    last_.assign(n, 0);
    uses_.assign(n, {});
    offset_.assign(n, 0);
    forward_.assign(n, kNone);
    into_.assign(n, kNone);
    for (Ref r = 0; r < n; ++r) root_[r] = r;
  }

  Result<std::unique_ptr<TileProgram::Code>> run() {
    auto code = std::make_unique<TileProgram::Code>();
    out_ = code.get();
    out_->lanes = k_.lanes;
    whole_blocks_ = (k_.lanes + kBlockLanes - 1) / kBlockLanes;
    number(0);
    for (Ref r = 0; r < k_.nodes.size(); ++r) alias(r);
    collect(0);
    for (const std::vector<Ref>& block : k_.blocks) {
      for (size_t i = 0; i < block.size(); ++i) forward_set(block, i);
    }
    for (const std::vector<Ref>& block : k_.blocks) {
      for (size_t i = 0; i < block.size(); ++i) share_get(block, i);
    }
    lifetimes();
    place_leaves();
    Room room(static_cast<uint32_t>(out_->image.size()) + arrays_bytes());
    room_ = &room;
    emit(0);
    out_->frame = room.most();
    if (!error_.empty()) return make_error(Code::unsupported, error_, "kernel " + k_.name);
    return code;
  }

 private:
  const Node& node(Ref r) const { return k_.nodes[r]; }
  bool uniform(Ref r) const { return k_.lanes == 1 || uniform_.uniform(r); }
  uint32_t blocks(Ref r) const { return uniform(r) ? 1 : whole_blocks_; }
  uint32_t part_bytes(Ref r) const { return blocks(r) * kBlockLanes * lane_bytes(node(r).type); }
  bool leaf(Ref r) const { return kir::op_info(node(r).op).cls == kir::OpClass::leaf; }
  bool control(Ref r) const { return node(r).op == Op::branch || node(r).op == Op::loop; }

  // ---- what is where

  // Positions in the order of the code; a control statement's end is that of its body.
  void number(uint32_t block) {
    for (const Ref r : k_.blocks[block]) {
      at_[r] = ++position_;
      block_of_[r] = block;
      if (!control(r)) continue;
      const uint32_t body = node(r).body;
      if (parent_.size() <= body) parent_.resize(body + 1, kNone);
      parent_[body] = r;
      number(body);
      last_[r] = ++position_;
    }
  }

  // Values that are others' memory: bits seen as another type, parts of wide loads.
  void alias(Ref r) {
    const Node& n = node(r);
    if (n.op == Op::bitcast || (n.op == Op::cast && word_int(n.type) && word_int(node(n.a).type))) {
      root_[r] = root_[n.a];
      part_[r] = part_[n.a];
    } else if (n.op == Op::part) {
      root_[r] = root_[n.a];
      part_[r] = static_cast<uint32_t>(n.imm) * part_bytes(n.a);
    }
  }

  bool is_alias(Ref r) const {
    const Node& n = node(r);
    return n.op == Op::bitcast || n.op == Op::part || n.op == Op::tuple ||
           (n.op == Op::cast && word_int(n.type) && word_int(node(n.a).type));
  }

  // Who reads each root. Aliases read nothing themselves.
  void collect(uint32_t block) {
    for (const Ref r : k_.blocks[block]) {
      const Node& n = node(r);
      if (!is_alias(r)) {
        kir::each_operand(n, [&](Ref o) {
          if (node(o).op == Op::tuple)
            kir::each_operand(node(o), [&](Ref p) { uses_[root_[p]].push_back(r); });
          else
            uses_[root_[o]].push_back(r);
        });
      }
      if (control(r)) collect(n.body);
    }
  }

  // var.set(op(…)) computes into the variable where nobody looks at it in between.
  void forward_set(const std::vector<Ref>& block, size_t i) {
    const Ref set = block[i];
    if (node(set).op != Op::set || uniform_.varying_block[block_of_[set]]) return;
    const Ref var = node(set).a, value = node(set).b;
    if (root_[value] != value || leaf(value) || kir::op_info(node(value).op).cls != kir::OpClass::pure) return;
    if (uses_[value].size() != 1 || block_of_[value] != block_of_[set] || blocks(value) != blocks(var)) return;
    for (size_t j = i; j > 0 && block[j - 1] != value; --j) {
      const Ref r = block[j - 1];
      if (control(r) || ((node(r).op == Op::get || node(r).op == Op::set) && node(r).a == var)) return;
    }
    forward_[set] = value;
    into_[value] = var;
  }
  // Where a set takes effect.
  uint32_t effect(Ref set) const { return forward_[set] == kNone ? at_[set] : at_[forward_[set]]; }

  // A get is the variable itself while nobody sets it.
  void share_get(const std::vector<Ref>& block, size_t i) {
    const Ref get = block[i];
    if (node(get).op != Op::get) return;
    const Ref var = node(get).a;
    uint32_t last = at_[get];
    for (const Ref user : uses_[get]) {
      if (block_of_[user] != block_of_[get]) return;
      last = std::max(last, at_[user]);
    }
    for (size_t j = i + 1; j < block.size(); ++j) {
      const Ref r = block[j];
      if (control(r) && at_[r] < last) return;
      if (node(r).op == Op::set && node(r).a == var && effect(r) < last) return;
    }
    for (Ref r = 0; r < root_.size(); ++r) {
      if (root_[r] == get) root_[r] = var;
    }
    uses_[var].insert(uses_[var].end(), uses_[get].begin(), uses_[get].end());
  }

  // A value lives to its last use, and to the end of every loop that it is used in but not made in.
  void lifetimes() {
    for (Ref r = 0; r < k_.nodes.size(); ++r) {
      if (control(r)) continue;
      if (last_[r] < at_[r]) last_[r] = at_[r];
      for (const Ref user : uses_[r]) last_[r] = std::max(last_[r], reach(r, user));
    }
    for (Ref set = 0; set < forward_.size(); ++set) {
      if (forward_[set] != kNone) last_[node(set).a] = std::max(last_[node(set).a], reach(node(set).a, set));
    }
  }
  uint32_t reach(Ref made, Ref user) const {
    uint32_t end = at_[user];
    for (uint32_t block = block_of_[user]; block < parent_.size() && parent_[block] != kNone;
         block = block_of_[parent_[block]]) {
      const Ref outer = parent_[block];
      if (node(outer).op == Op::loop && at_[outer] > at_[made]) end = std::max(end, last_[outer]);
    }
    return end;
  }

  // ---- the frame

  uint32_t reserve(uint32_t bytes) {
    const auto at = static_cast<uint32_t>(out_->image.size());
    out_->image.resize(at + (bytes + 63) / 64 * 64);
    return at;
  }
  void place_leaves() {
    const uint32_t lane_words = whole_blocks_ * kBlockLanes;
    out_->live = reserve(lane_words * 4);
    for (uint32_t l = 0; l < k_.lanes; ++l) {
      const uint32_t on = ~0u;
      std::memcpy(&out_->image[out_->live + l * 4], &on, 4);
    }
    out_->group = reserve(kBlockLanes * 4);
    for (Ref r = 0; r < k_.nodes.size(); ++r) {
      if (leaf(r) && node(r).op != Op::group) place_leaf(r);
      if (node(r).op == Op::group) offset_[r] = out_->group;
    }
  }
  void place_leaf(Ref r) {
    const Node& n = node(r);
    const uint32_t bytes = lane_bytes(n.type), count = blocks(r) * kBlockLanes;
    offset_[r] = reserve(count * bytes);
    if (n.op == Op::dim) out_->dims.push_back({offset_[r], static_cast<uint32_t>(n.imm)});
    for (uint32_t l = 0; l < count; ++l) {
      uint64_t bits = 0;
      switch (n.op) {
        case Op::constant: bits = n.type == kir::b1 ? (n.imm != 0 ? ~uint64_t{0} : 0) : n.imm; break;
        case Op::lane:
        case Op::subgroup_lane: bits = uniform(r) ? 0 : l; break;
        case Op::subgroup_count: bits = 1; break;
        default: break;  // the subgroup is the workgroup
      }
      std::memcpy(&out_->image[offset_[r] + l * bytes], &bits, bytes);
    }
  }
  uint32_t arrays_bytes() {
    uint32_t at = static_cast<uint32_t>(out_->image.size());
    for (const kir::Array& a : k_.arrays) {
      arrays_.push_back(at);
      at += (std::max(a.count, 1u) * kir::type_bytes(a.type) + 63) / 64 * 64;
    }
    return at - static_cast<uint32_t>(out_->image.size());
  }

  uint32_t take(uint32_t bytes, uint32_t until) {
    const uint32_t at = room_->take(bytes);
    dying_.emplace(until, at);
    return at;
  }
  void release(uint32_t position) {
    for (auto it = dying_.begin(); it != dying_.end() && it->first <= position; it = dying_.erase(it))
      room_->give(it->second);
  }
  uint32_t place(Ref r) const { return offset_[root_[r]] + part_[r]; }
  uint8_t stride(Ref r) const { return uniform(r) ? 0 : 1; }

  // ---- code

  TileIns& add(TileIns::Kind kind) {
    out_->code.emplace_back();
    out_->code.back().kind = kind;
    return out_->code.back();
  }
  void fail(Ref r) {
    if (error_.empty())
      error_ = "the tile interpreter does not know op " + std::string(kir::op_info(node(r).op).name) + " of " +
               std::string(kir::type_name(node(r).type));
  }
  void in(TileIns& i, uint32_t slot, Ref r) { i.in[slot] = place(r), i.stride[slot] = stride(r); }

  void emit(uint32_t block) {
    for (const Ref r : k_.blocks[block]) {
      statement(r);
      release(at_[r]);
    }
  }

  void statement(Ref r) {
    const Node& n = node(r);
    if (is_alias(r) || n.op == Op::barrier || n.op == Op::prefetch) return;
    switch (n.op) {
      case Op::load:
      case Op::wg_load: return load(r);
      case Op::store:
      case Op::wg_store: return store(r);
      case Op::var: return move(r, n.a, TileIns::Kind::pure, take(part_bytes(r), last_[r]));
      case Op::get:
        if (root_[r] == r) move(r, n.a, TileIns::Kind::pure, take(part_bytes(r), last_[r]));
        return;
      case Op::set:
        if (forward_[r] == kNone) set(r);
        return;
      case Op::branch: return branch(r);
      case Op::loop: return loop(r);
      case Op::subgroup_add:
      case Op::subgroup_min:
      case Op::subgroup_max: return reduce(r);
      default: return pure(r);
    }
  }

  void move(Ref r, Ref from, TileIns::Kind kind, uint32_t to) {
    offset_[r] = to;
    TileIns& i = add(uniform(r) && !uniform(from) ? TileIns::Kind::first : kind);
    i.type = node(r).type;
    i.blocks = blocks(r);
    i.out = to;
    in(i, 0, from);
    i.pure = ops_.copy(i.type);
  }
  void set(Ref r) {
    const Ref var = node(r).a, value = node(r).b;
    if (place(value) == place(var)) return;  // what it holds already
    TileIns& i = add(uniform(var) && !uniform(value) ? TileIns::Kind::first : TileIns::Kind::set);
    i.type = node(var).type;
    i.blocks = blocks(var);
    i.out = place(var);
    in(i, 0, value);
    i.pure = ops_.copy(i.type);
    i.blend = uniform(var) ? nullptr : ops_.blend(i.type);
  }

  void pure(Ref r) {
    const Node& n = node(r);
    const kir::Type operand = node(n.op == Op::select ? n.b : n.a).type;
    const PureFn f = ops_.pure(n.op, n.type, operand);
    if (f == nullptr) return fail(r);
    offset_[r] = into_[r] != kNone ? place(into_[r]) : take(part_bytes(r), last_[r]);
    TileIns& i = add(TileIns::Kind::pure);
    i.pure = f;
    i.type = n.type;
    i.blocks = blocks(r);
    i.out = offset_[r];
    if (n.op == Op::lookup) {
      in(i, 0, n.a);
      i.low = node(n.b).imm, i.high = node(n.c).imm;
      return;
    }
    uint32_t slot = 0;
    kir::each_operand(n, [&](Ref o) { in(i, slot++, o); });
  }

  void reduce(Ref r) {
    const Node& n = node(r);
    const Op op = n.op == Op::subgroup_add ? Op::add : n.op == Op::subgroup_min ? Op::min : Op::max;
    const uint32_t work = take(whole_blocks_ * kBlockLanes * lane_bytes(n.type), at_[r]);
    offset_[r] = take(part_bytes(r), last_[r]);
    TileIns& i = add(TileIns::Kind::reduce);
    i.type = n.type;
    i.op = op;
    i.out = offset_[r];
    in(i, 0, n.a);
    i.in[1] = work;
    i.pure = ops_.pure(op, n.type, n.type);
    if (i.pure == nullptr) fail(r);
  }

  void memory(TileIns& i, Ref r, bool array) {
    const Node& n = node(r);
    i.width = array ? 1 : k_.views[n.imm].width;
    i.one = uniform(n.a);
    i.array = array;
    i.memory = array ? arrays_[n.imm] : k_.views[n.imm].binding;
  }
  kir::Type stored(const Node& n, bool array) const { return array ? k_.arrays[n.imm].type : k_.views[n.imm].type; }
  void load(Ref r) {
    const Node& n = node(r);
    const bool array = n.op == Op::wg_load;
    offset_[r] = take(part_bytes(r) * (array ? 1 : k_.views[n.imm].width), last_[r]);
    TileIns& i = add(TileIns::Kind::load);
    memory(i, r, array);
    i.type = n.type;
    i.blocks = blocks(r);
    i.out = offset_[r];
    in(i, 0, n.a);
    i.move = ops_.load(stored(n, array));
    if (i.move == nullptr) fail(r);
  }
  void store(Ref r) {
    const Node& n = node(r);
    const bool array = n.op == Op::wg_store;
    TileIns& i = add(TileIns::Kind::store);
    memory(i, r, array);
    i.index = place(n.a);
    uint32_t slot = 0;
    if (node(n.b).op == Op::tuple)
      kir::each_operand(node(n.b), [&](Ref o) { in(i, slot++, o); });
    else
      in(i, 0, n.b);
    i.move = ops_.store(stored(n, array));
    if (i.move == nullptr) fail(r);
  }

  void branch(Ref r) {
    const Node& n = node(r);
    const size_t here = out_->code.size();
    TileIns& i = add(TileIns::Kind::branch);
    in(i, 0, n.a);
    i.one = uniform(n.a);
    i.blocks = whole_blocks_;
    if (!i.one) i.out = take(whole_blocks_ * kBlockLanes * 4, last_[r]);
    emit(n.body);
    out_->code[here].end = static_cast<uint32_t>(out_->code.size());
    release(last_[r]);
  }
  void loop(Ref r) {
    const Node& n = node(r);
    const size_t here = out_->code.size();
    TileIns& i = add(TileIns::Kind::loop);
    in(i, 0, n.a);
    in(i, 1, n.b);
    i.type = node(n.a).type;
    i.out = offset_[r] = take(kBlockLanes * 4, last_[r]);
    emit(n.body);
    out_->code[here].end = static_cast<uint32_t>(out_->code.size());
    release(last_[r]);
  }

  const kir::Kernel& k_;
  const TileOps& ops_;
  kir::Uniformity uniform_;
  TileProgram::Code* out_ = nullptr;
  Room* room_ = nullptr;
  uint32_t whole_blocks_ = 1, position_ = 0;
  std::string error_;
  std::vector<Ref> root_;                    // by node: whose memory it is
  std::vector<uint32_t> part_;               // and where in it
  std::vector<uint32_t> at_, block_of_;      // position of a statement; the list it stands in
  std::vector<uint32_t> last_;               // position up to which a root lives; a control statement's end
  std::vector<std::vector<Ref>> uses_;       // by root
  std::vector<Ref> parent_;                  // by block: its control statement
  std::vector<Ref> forward_, into_;          // set -> the value computed into the variable, and back: value -> variable
  std::vector<uint32_t> offset_, arrays_;    // in the frame
  std::multimap<uint32_t, uint32_t> dying_;  // last position -> offset
};

}  // namespace

TileProgram::TileProgram(std::unique_ptr<Code> code) : code_(std::move(code)) {}
TileProgram::~TileProgram() = default;

Result<std::unique_ptr<TileProgram>> TileProgram::make(const kir::Kernel& kernel, bool portable) {
  TERN_TRY(std::unique_ptr<Code> code, Decoder(kernel, ops_for(portable)).run());
  return std::unique_ptr<TileProgram>(new TileProgram(std::move(code)));
}

Result<std::unique_ptr<TileProgram>> TileProgram::make(std::span<const std::byte> kir) {
  TERN_TRY(const kir::Kernel kernel, kir::deserialize(kir));
  return make(kernel);
}

}  // namespace tern::cpu
