// Kernel IR to LLVM IR: a workgroup of L lanes is one vector <L x T>.
//
// Values that are equal in all lanes stay scalar. A 32-bit integer that is a scalar plus a constant per lane keeps that
// form (Value::base and pattern), so that an index tells which memory instruction it wants: one scalar load, one vector
// load, a few with a shuffle, or a gather. A branch that only some lanes take is emitted twice: without mask for "all
// lanes", with mask for "some". Lanes run in lockstep, so a barrier is nothing and workgroup memory is an array on the
// stack.
#pragma once

#include <llvm/IR/Module.h>

#include <cstdint>
#include <string>
#include <vector>

#include "emit/llvm/arch.h"
#include "kir/ir.h"
#include "kir/uniformity.h"

namespace tern::emit {

struct Value {
  llvm::Value* v = nullptr;       // scalar or <L x T>; null: affine, made when asked for
  llvm::Value* base = nullptr;    // affine: the scalar part; null: 0
  std::vector<uint32_t> pattern;  // affine: what each lane adds; empty: not affine
  uint32_t align = 1;             // power of two that divides the scalar, or the base

  bool affine() const { return !pattern.empty(); }
  bool scalar() const { return v && !v->getType()->isVectorTy(); }
};

class Codegen {
 public:
  Codegen(const kir::Kernel& kernel, const Isa& isa, llvm::Module& module);
  // The error sentence, empty when the module holds the entry.
  std::string run(const char* entry);

 private:
  using Lanes = std::vector<uint32_t>;
  // codegen_control.cpp
  void entry(llvm::Function* f);
  void block(uint32_t index);
  void statement(kir::Ref ref);
  void branch(const kir::Node& n);
  void masked_branch(const kir::Node& n, llvm::Value* cond);
  void loop(kir::Ref ref);
  void variable(kir::Ref ref);
  void assign(const kir::Node& n);
  Value subgroup(const kir::Node& n);
  llvm::Value* any(llvm::Value* mask);
  llvm::Value* all(llvm::Value* mask);
  llvm::BasicBlock* fresh(const char* name);

  // codegen_values.cpp
  Value value(kir::Ref ref);
  Value leaf(const kir::Node& n);
  Value pure(const kir::Node& n);
  Value unary(const kir::Node& n, const Value& a);
  Value binary(const kir::Node& n, const Value& a, const Value& b);
  bool affine_binary(const kir::Node& n, const Value& a, const Value& b, Value* out);
  llvm::Value* arithmetic(kir::Op op, kir::Type type, llvm::Value* a, llvm::Value* b);
  llvm::Value* divide(bool rem, kir::Type type, llvm::Value* a, llvm::Value* b);
  llvm::Value* compare(kir::Op op, kir::Type type, llvm::Value* a, llvm::Value* b);
  llvm::Value* saturate(kir::Type to, llvm::Value* a);
  llvm::Value* to_float(bool sign, llvm::Value* a, llvm::Type* t);
  llvm::Value* cast(kir::Type from, kir::Type to, llvm::Value* a);
  llvm::Value* half_to_f32(llvm::Value* bits);
  llvm::Value* f32_to_half(llvm::Value* value);
  llvm::Value* lookup(llvm::Value* indices, uint64_t low, uint64_t high);
  llvm::Value* dot4(llvm::Value* acc, llvm::Value* codes, llvm::Value* acts);
  // Cuts vectors into pieces of `lanes` lanes, which make takes one by one, and joins what comes out.
  llvm::Value* in_pieces(uint32_t lanes, llvm::ArrayRef<llvm::Value*> operands,
                         llvm::function_ref<llvm::Value*(llvm::ArrayRef<llvm::Value*>)> make);
  Value wrap(llvm::Value* v, uint32_t align = 1);
  llvm::Value* vec(const Value& v);    // <L x T>
  llvm::Value* plain(const Value& v);  // scalar where it is one, else <L x T>
  llvm::Type* type(kir::Type t);       // of a scalar value
  llvm::Type* shaped(llvm::Type* element, llvm::Type* like);
  llvm::Value* splat_like(llvm::Value* scalar, llvm::Value* like);
  llvm::Value* word(uint32_t v) { return b_.getInt32(v); }
  llvm::Value* pattern_constant(const Lanes& pattern);

  // codegen_memory.cpp
  struct Place {  // one view or workgroup array
    llvm::Value* pointer;
    llvm::Type* element;
    kir::Type stored;
    uint32_t bytes;
    bool read_only, streaming;
    llvm::MDNode *scope, *noalias;
  };
  Place view_place(uint64_t view);
  Place array_place(uint64_t array);
  llvm::Value* address(const Place& p, llvm::Value* index);
  void prefetch(const Place& p, const Value& index);
  Value load(const Place& p, const Value& index, uint32_t width, uint32_t part);
  void store(const Place& p, const Value& index, const std::vector<Value>& values);
  llvm::Value* load_scalar(const Place& p, llvm::Value* index);
  llvm::Value* load_vector(const Place& p, llvm::Value* index, uint32_t count);
  llvm::Value* load_pattern(const Place& p, llvm::Value* base, const Lanes& pattern);
  llvm::Value* gather(const Place& p, llvm::Value* index);
  void store_scalar(const Place& p, llvm::Value* index, llvm::Value* value);
  void store_vector(const Place& p, llvm::Value* index, llvm::Value* value);
  void store_pattern(const Place& p, llvm::Value* base, const Lanes& pattern, llvm::Value* value);
  void store_masked(const Place& p, const Value& index, const Value& value);
  void scatter(const Place& p, llvm::Value* index, llvm::Value* value, llvm::Value* mask);
  llvm::Value* widen(const Place& p, llvm::Value* raw);
  llvm::Value* narrow(const Place& p, llvm::Value* value);
  void tag(llvm::Instruction* i, const Place& p, bool is_load);
  llvm::Value* shuffle(llvm::Value* a, const std::vector<int>& mask);
  llvm::Value* concat(std::vector<llvm::Value*> parts);
  llvm::Value* extract(llvm::Value* v, uint32_t lane) { return b_.CreateExtractElement(v, b_.getInt32(lane)); }

  void fail(std::string why) {
    if (error_.empty()) error_ = std::move(why);
  }

  const kir::Kernel& k_;
  const Isa isa_;
  llvm::Module& m_;
  llvm::LLVMContext& c_;
  Build b_;
  const uint32_t lanes_;
  kir::Uniformity uniform_;
  std::string error_;

  std::vector<Value> values_;             // by node, as last emitted
  std::vector<std::vector<Value>> wide_;  // by node: the parts of a wide load
  std::vector<llvm::AllocaInst*> vars_;   // by node
  std::vector<uint32_t> var_depth_;       // masks that were on where the var was made
  std::vector<llvm::Value*> buffers_, dims_, arrays_;
  std::vector<llvm::MDNode*> scope_, noalias_;  // bindings, then arrays
  llvm::BasicBlock* entry_ = nullptr;
  llvm::Value* group_ = nullptr;
  llvm::Value* mask_ = nullptr;  // <L x i1>; null: all lanes
  uint32_t mask_depth_ = 0;
};

}  // namespace tern::emit
