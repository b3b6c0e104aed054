// The entry, statement lists, branches, loops and variables.
#include <llvm/IR/Constants.h>
#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/MDBuilder.h>

#include <algorithm>

#include "emit/llvm/codegen.h"

namespace tern::emit {

using kir::Op;

Codegen::Codegen(const kir::Kernel& kernel, const Isa& isa, llvm::Module& module)
    : k_(kernel),
      isa_(isa),
      m_(module),
      c_(module.getContext()),
      b_(c_),
      lanes_(kernel.lanes),
      uniform_(kir::uniformity(kernel, kir::Strength::lockstep)),
      values_(kernel.nodes.size()),
      wide_(kernel.nodes.size()),
      vars_(kernel.nodes.size(), nullptr),
      var_depth_(kernel.nodes.size(), 0) {}

llvm::BasicBlock* Codegen::fresh(const char* name) {
  return llvm::BasicBlock::Create(c_, name, b_.GetInsertBlock()->getParent());
}

std::string Codegen::run(const char* name) {
  llvm::Type* ptr = llvm::PointerType::getUnqual(c_);
  auto* type = llvm::FunctionType::get(b_.getVoidTy(), {ptr, ptr, b_.getInt32Ty(), b_.getInt32Ty()}, false);
  auto* f = llvm::Function::Create(type, llvm::GlobalValue::ExternalLinkage, name, m_);
  f->setDSOLocal(true);
  f->addFnAttr(llvm::Attribute::NoUnwind);
  f->addFnAttr("no-builtins");
  f->addFnAttr("prefer-vector-width", std::to_string(isa_.vector_bits));
  f->addFnAttr("min-legal-vector-width", std::to_string(isa_.vector_bits));
  // Registers that do not fit are kept aligned: across two cache lines each costs twice, and their reload waits.
  f->addFnAttr(llvm::Attribute::getWithStackAlignment(c_, llvm::Align(isa_.vector_bits / 8)));
  // One scope a binding and array: two bindings do not overlap where one of them is written, arrays overlap nothing.
  llvm::MDBuilder md(c_);
  llvm::MDNode* domain = md.createAnonymousAliasScopeDomain("kernel");
  const size_t memories = k_.bindings.size() + k_.arrays.size();
  for (size_t i = 0; i < memories; ++i) scope_.push_back(md.createAnonymousAliasScope(domain));
  for (size_t i = 0; i < memories; ++i) {
    std::vector<llvm::Metadata*> others;
    for (size_t j = 0; j < memories; ++j) {
      if (j != i) others.push_back(scope_[j]);
    }
    noalias_.push_back(others.empty() ? nullptr : llvm::MDNode::get(c_, others));
    scope_[i] = llvm::cast<llvm::MDNode>(scope_[i]);
  }
  for (size_t i = 0; i < memories; ++i) scope_[i] = llvm::MDNode::get(c_, {scope_[i]});
  entry(f);
  return error_;
}

void Codegen::entry(llvm::Function* f) {
  llvm::Value *buffers = f->getArg(0), *dims = f->getArg(1), *first = f->getArg(2), *last = f->getArg(3);
  entry_ = llvm::BasicBlock::Create(c_, "entry", f);
  b_.SetInsertPoint(entry_);
  llvm::MDNode* none = llvm::MDNode::get(c_, {});
  auto argument = [&](llvm::Type* t, llvm::Value* from, uint64_t i) {
    llvm::LoadInst* l = b_.CreateLoad(t, b_.CreateConstInBoundsGEP1_64(t, from, i));
    l->setMetadata(llvm::LLVMContext::MD_invariant_load, none);
    return l;
  };
  for (size_t i = 0; i < k_.bindings.size(); ++i) buffers_.push_back(argument(b_.getPtrTy(), buffers, i));
  for (size_t i = 0; i < k_.dims.size(); ++i) dims_.push_back(argument(b_.getInt32Ty(), dims, i));
  for (const kir::Array& a : k_.arrays) {
    llvm::AllocaInst* p = b_.CreateAlloca(llvm::ArrayType::get(type(a.type), std::max(a.count, 1u)));
    p->setAlignment(llvm::Align(64));
    arrays_.push_back(p);
  }
  llvm::BasicBlock *head = fresh("group"), *exit = fresh("exit");
  b_.CreateCondBr(b_.CreateICmpULT(first, last), head, exit);
  llvm::BasicBlock* before = b_.GetInsertBlock();
  b_.SetInsertPoint(head);
  llvm::PHINode* g = b_.CreatePHI(b_.getInt32Ty(), 2);
  g->addIncoming(first, before);
  group_ = g;
  block(0);
  llvm::Value* next = b_.CreateNUWAdd(g, word(1));
  g->addIncoming(next, b_.GetInsertBlock());
  b_.CreateCondBr(b_.CreateICmpULT(next, last), head, exit);
  b_.SetInsertPoint(exit);
  const bool streams =
      std::any_of(k_.bindings.begin(), k_.bindings.end(), [](const kir::Binding& b) { return b.streaming; });
  if (streams && isa_.publish) isa_.publish(b_);
  b_.CreateRetVoid();
}

void Codegen::block(uint32_t index) {
  for (kir::Ref r : k_.blocks[index]) {
    if (!error_.empty()) return;
    statement(r);
  }
}

void Codegen::statement(kir::Ref ref) {
  const kir::Node& n = k_.at(ref);
  switch (n.op) {
    case Op::load:
      wide_[ref].clear();  // a loop that is written out comes here more than once
      for (uint32_t i = 0; i < n.width; ++i) wide_[ref].push_back(load(view_place(n.imm), value(n.a), n.width, i));
      values_[ref] = wide_[ref][0];
      return;
    case Op::store: {
      const kir::Node& what = k_.at(n.b);
      std::vector<Value> all;
      if (what.op == Op::tuple)
        kir::each_operand(what, [&](kir::Ref r) { all.push_back(value(r)); });
      else
        all.push_back(value(n.b));
      return store(view_place(n.imm), value(n.a), all);
    }
    case Op::prefetch: return prefetch(view_place(n.imm), value(n.a));
    case Op::wg_load: values_[ref] = load(array_place(n.imm), value(n.a), 1, 0); return;
    case Op::wg_store: return store(array_place(n.imm), value(n.a), {value(n.b)});
    case Op::tuple:
    case Op::barrier: return;
    case Op::var: return variable(ref);
    case Op::get: values_[ref] = wrap(b_.CreateLoad(vars_[n.a]->getAllocatedType(), vars_[n.a])); return;
    case Op::set: return assign(n);
    case Op::branch: return branch(n);
    case Op::loop: return loop(ref);
    case Op::subgroup_add:
    case Op::subgroup_min:
    case Op::subgroup_max: values_[ref] = subgroup(n); return;
    default: values_[ref] = pure(n); return;
  }
}

void Codegen::variable(kir::Ref ref) {
  const kir::Node& n = k_.at(ref);
  const bool varying = lanes_ > 1 && uniform_.varying[ref];
  llvm::Type* t = type(n.type);
  if (varying) t = llvm::FixedVectorType::get(t, lanes_);
  llvm::IRBuilder<> at(entry_, entry_->begin());
  vars_[ref] = at.CreateAlloca(t);
  var_depth_[ref] = mask_depth_;
  const Value first = value(n.a);
  if (!varying && !first.scalar()) return fail("a variable that uniformity calls uniform starts with a varying value");
  b_.CreateStore(varying ? vec(first) : first.v, vars_[ref]);
}

void Codegen::assign(const kir::Node& n) {
  llvm::AllocaInst* var = vars_[n.a];
  const bool varying = var->getAllocatedType()->isVectorTy();
  const Value v = value(n.b);
  if (!varying && !v.scalar()) {
    // Equal in all lanes, though it was computed in each.
    if (lanes_ > 1) b_.CreateStore(extract(vec(v), 0), var);
    return;
  }
  llvm::Value* next = varying ? vec(v) : v.v;
  if (varying && mask_ && var_depth_[n.a] < mask_depth_)
    next = b_.CreateSelect(mask_, next, b_.CreateLoad(next->getType(), var));
  b_.CreateStore(next, var);
}

llvm::Value* Codegen::any(llvm::Value* mask) {
  if (!isa_.mask_words) return b_.CreateOrReduce(mask);
  llvm::Value* bits = b_.CreateBitCast(mask, b_.getIntNTy(lanes_));
  return b_.CreateICmpNE(bits, llvm::ConstantInt::get(bits->getType(), 0));
}

llvm::Value* Codegen::all(llvm::Value* mask) {
  if (!isa_.mask_words) return b_.CreateAndReduce(mask);
  llvm::Value* bits = b_.CreateBitCast(mask, b_.getIntNTy(lanes_));
  return b_.CreateICmpEQ(bits, llvm::Constant::getAllOnesValue(bits->getType()));
}

void Codegen::branch(const kir::Node& n) {
  const Value cond = value(n.a);
  if (cond.scalar()) {
    if (auto* c = llvm::dyn_cast<llvm::ConstantInt>(cond.v)) {
      if (!c->isZero()) block(n.body);
      return;
    }
    llvm::BasicBlock *then = fresh("then"), *done = fresh("done");
    b_.CreateCondBr(cond.v, then, done);
    b_.SetInsertPoint(then);
    block(n.body);
    b_.CreateBr(done);
    b_.SetInsertPoint(done);
    return;
  }
  masked_branch(n, vec(cond));
}

void Codegen::masked_branch(const kir::Node& n, llvm::Value* cond) {
  auto masked = [&](llvm::Value* mask) {
    llvm::Value* outer = mask_;
    mask_ = mask;
    ++mask_depth_;
    block(n.body);
    --mask_depth_;
    mask_ = outer;
  };
  if (auto* c = llvm::dyn_cast<llvm::Constant>(cond)) {
    if (c->isNullValue()) return;
    if (c->isAllOnesValue()) return block(n.body);
    if (!mask_) return masked(cond);
  }
  llvm::BasicBlock* done = fresh("done");
  if (!mask_) {
    llvm::BasicBlock *whole = fresh("whole"), *other = fresh("other");
    b_.CreateCondBr(all(cond), whole, other);
    b_.SetInsertPoint(whole);
    block(n.body);
    b_.CreateBr(done);
    b_.SetInsertPoint(other);
  }
  llvm::Value* mask = mask_ ? b_.CreateAnd(mask_, cond) : cond;
  llvm::BasicBlock* some = fresh("some");
  b_.CreateCondBr(any(mask), some, done);
  b_.SetInsertPoint(some);
  masked(mask);
  b_.CreateBr(done);
  b_.SetInsertPoint(done);
}

// Tested before the first turn and after each, the form that LICM wants.
void Codegen::loop(kir::Ref ref) {
  const kir::Node& n = k_.at(ref);
  auto bound = [&](kir::Ref r) {
    const Value v = value(r);
    return v.scalar() ? v.v : extract(vec(v), 0);  // equal in all lanes by rule
  };
  llvm::Value *lo = bound(n.a), *hi = bound(n.b);
  const bool sign = kir::is_signed(k_.at(n.a).type);
  auto less = [&](llvm::Value* a) { return sign ? b_.CreateICmpSLT(a, hi) : b_.CreateICmpULT(a, hi); };
  llvm::BasicBlock *before = fresh("before"), *body = fresh("loop"), *done = fresh("done");
  b_.CreateCondBr(less(lo), before, done);
  b_.SetInsertPoint(before);
  b_.CreateBr(body);
  b_.SetInsertPoint(body);
  llvm::PHINode* i = b_.CreatePHI(lo->getType(), 2);
  i->addIncoming(lo, before);
  values_[ref] = wrap(i);
  block(n.body);
  llvm::Value* next = sign ? b_.CreateNSWAdd(i, word(1)) : b_.CreateNUWAdd(i, word(1));
  i->addIncoming(next, b_.GetInsertBlock());
  b_.CreateCondBr(less(next), body, done);
  b_.SetInsertPoint(done);
}

// Upper half onto lower half until one lane is left: the order that ir.h states.
Value Codegen::subgroup(const kir::Node& n) {
  Value a = value(n.a);
  if (lanes_ == 1) return a;
  const Op op = n.op == Op::subgroup_add ? Op::add : n.op == Op::subgroup_min ? Op::min : Op::max;
  llvm::Value* v = vec(a);
  for (uint32_t count = lanes_; count > 1;) {
    const uint32_t half = (count + 1) / 2, upper = count - half;
    std::vector<int> low(upper), high(upper), merge(half);
    for (uint32_t i = 0; i < upper; ++i) low[i] = static_cast<int>(i), high[i] = static_cast<int>(i + half);
    llvm::Value* r = arithmetic(op, n.type, shuffle(v, low), shuffle(v, high));
    if (upper < half) {
      std::vector<int> grow(half, -1), middle(half);
      for (uint32_t i = 0; i < upper; ++i) grow[i] = static_cast<int>(i);
      for (uint32_t i = 0; i < half; ++i) middle[i] = static_cast<int>(i);
      llvm::Value* rest = shuffle(v, middle);
      for (uint32_t i = 0; i < half; ++i) merge[i] = static_cast<int>(i < upper ? i : half + i);
      r = b_.CreateShuffleVector(upper == half ? r : shuffle(r, grow), rest, merge);
    }
    v = r;
    count = half;
  }
  return wrap(extract(v, 0));
}

}  // namespace tern::emit
