// Walks a kernel and writes its module. Integers have one type a width, whatever their sign: ops say how they are
// meant.
#pragma once

#include <optional>

#include "emit/kernel_spirv.h"
#include "emit/spirv/module.h"
#include "kir/uniformity.h"

namespace tern::emit {

class SpirvWriter {
 public:
  SpirvWriter(const kir::Kernel& kernel, const Caps& caps)
      : k_(kernel),
        caps_(caps),
        ids_(kernel.nodes.size()),
        uniform_(kir::uniformity(kernel, kir::Strength::strict)),
        home_(kernel.nodes.size(), kir::kNone),
        movable_(kernel.nodes.size()),
        early_(kernel.nodes.size()) {}
  Result<KernelSpirv> write();

 private:
  using Id = SpirvModule::Id;
  using Op = kir::Op;
  using Node = kir::Node;
  using Ref = kir::Ref;
  using Type = kir::Type;

  const Node& at(Ref r) const { return k_.nodes[r]; }
  Type of(Ref r) const { return k_.nodes[r].type; }
  bool feature(std::string_view name) const;
  void refuse(Ref r, std::string_view why);

  // ---- types and constants
  Id integer(uint32_t bits);
  Id real(uint32_t bits);
  Id word() { return integer(32); }
  Id boolean() { return m_.global(spv::OpTypeBool, 0, {}); }
  Id vector(Id of, uint32_t width) { return m_.global(spv::OpTypeVector, 0, {of, width}); }
  Id pointer(spv::StorageClass where, Id to) { return m_.global(spv::OpTypePointer, 0, {where, to}); }
  Id type(Type t);
  Id number(Type t, uint64_t bits);
  Id word(uint32_t value) { return number(kir::u32, value); }

  // ---- what stands before the first statement
  void features();
  void declare_bindings();
  Id block_of(Id element, uint32_t stride);
  void declare_arrays();
  void declare_dims();
  void declare_leaves();
  Id built_in(spv::BuiltInName name, Id type);

  // ---- statements
  void block(uint32_t index);
  void statement(Ref r);
  void branch(const Node& n);
  void loop(Ref r);
  void label(Id id) { m_.statement(spv::OpLabel, {id}); }
  void jump(Id id) { m_.statement(spv::OpBranch, {id}); }
  void variable(Ref r);
  void memory(Ref r);
  Id element(const Node& n);
  Id loaded(const Node& n);
  void store(const Node& n, Id pointer);
  Id together(const Node& n);

  // ---- elements as texels (texels.cpp)
  // A fetch that a subgroup shares: so many elements from an index on, one a lane.
  struct Fetch {
    uint32_t texels;  // number in set 1
    Ref base;
    uint32_t chunk;  // of as many elements as a subgroup has lanes
    Id word = 0;
    bool alike(const Fetch& o) const { return texels == o.texels && base == o.base && chunk == o.chunk; }
  };
  bool is_texel(const kir::View& view) const;
  Id image() { return m_.global(spv::OpTypeImage, 0, {word(), spv::kBufferImage, 0, 0, 0, 1, 0}); }
  Id declare_texels(const kir::View& view);
  Id texel(const Node& n, Id index);
  Id fetched(const Node& n);
  Id fetch_once(const Node& n, Fetch fetch);
  std::optional<Fetch> shareable(const Node& n, uint32_t in_block, uint32_t& lane) const;
  std::optional<Fetch> shared_fetch(const Node& n, uint32_t in_block, uint32_t& lane) const;
  void find_shared_fetches();
  void fetch_early(uint32_t index);
  bool is_movable(Ref r, uint32_t index);
  void move_early(Ref r, uint32_t index);

  // ---- values
  Id value(Ref r) { return ids_[r]; }
  Id pure(Ref r);
  Id unary(const Node& n);
  Id binary(const Node& n);
  Id logic(const Node& n);
  Id extended(spv::Extended op, Id type, SpirvModule::Words operands);
  Id exact(spv::Op op, Id type, const SpirvModule::Words& operands);
  Id select(Id type, Id when, Id yes, Id no) { return m_.result(spv::OpSelect, type, {when, yes, no}); }
  Id words(spv::Op op, Id a, Id b) { return m_.result(op, word(), {a, b}); }
  Id words_by(spv::Op op, Id a, uint32_t constant) { return words(op, a, word(constant)); }
  Id truth(spv::Op op, Id a, Id b) { return m_.result(op, boolean(), {a, b}); }
  Id cast(Type to, Type from, Id a);
  Id u32_to_f32(Id a);
  Id saturate(Type to, Type from, Id a);
  Id half_to_f32(Id bits);
  Id f32_to_half(Id v);
  Id dot4(const Node& n);

  const kir::Kernel& k_;
  const Caps& caps_;
  SpirvModule m_;
  std::vector<Id> ids_;             // of nodes: their values, and of variables where they lie
  std::vector<Id> views_, arrays_;  // variables
  std::map<Id, Id> blocks_;         // the pointer to a buffer of such elements
  std::map<spv::BuiltInName, Id> built_ins_;
  SpirvModule::Words inputs_;
  Id first_group_ = 0;
  std::vector<Id> dims_;
  const kir::Uniformity uniform_;
  uint32_t block_ = 0;
  std::vector<uint32_t> home_;  // of nodes: the block that they stand in
  enum class Movable : uint8_t { unknown, yes, no };
  std::vector<Movable> movable_;
  std::vector<uint8_t> early_;  // written before its turn
  std::vector<Fetch> shared_;   // by more than one load
  std::vector<Fetch> fetches_;  // seen from here
  Id subgroup_lane_ = 0;
  std::optional<Error> error_;
};

}  // namespace tern::emit
