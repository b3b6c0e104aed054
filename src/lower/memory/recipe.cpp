#include "lower/memory/recipe.h"

namespace tern::lowering {
namespace {

class Ctx final : public BuildCtx {
 public:
  Ctx(const Pick& pick, uint32_t problem, const Asked& a, KernelTable& kernels)
      : BuildCtx(a), pick_(pick), problem_(problem), kernels_(kernels) {
    for (const Operand& o : pick.problem.operands) recipe.access.push_back(o.access);
  }

  Use whole(uint16_t operand) override {
    const Operand& o = pick_.problem.operands[operand];
    auto bytes = o.layout.def->bytes(asked.dims, o.type, o.layout.tile);
    if (!bytes && !failure)
      failure = make_error(Code::internal, "layout " + std::string(o.layout.def->name) + " refuses operand " +
                                               std::to_string(operand) + ": " + bytes.why());
    return {{operand, 0, bytes ? *bytes : Dim(0)}, o.access};
  }
  Use window(uint16_t operand, Dim byte_offset, Dim bytes) override {
    return {{operand, byte_offset, bytes}, pick_.problem.operands[operand].access};
  }
  Use scratch(Dim bytes) override {
    recipe.scratch.push_back(bytes);
    return {{static_cast<BufferId>(pick_.problem.operands.size() + recipe.scratch.size() - 1), 0, bytes},
            Access::write};
  }
  KernelId kernel(KernelDef def) override {
    if (def.problem == kNone) def.problem = problem_;
    return kernels_.add(std::move(def));
  }
  void step(Step step) override {
    step.problem = problem_;
    recipe.steps.push_back(std::move(step));
  }

  Recipe recipe;
  std::optional<Error> failure;

 private:
  const Pick& pick_;
  uint32_t problem_;
  KernelTable& kernels_;
};

}  // namespace

KernelId KernelTable::add(KernelDef def) {
  if (def.hash == Hash{})
    def.hash = Hasher().text(def.name).u64(static_cast<uint64_t>(def.kind)).bytes(def.code).done();
  const auto [it, fresh] = ids_.emplace(def.hash, static_cast<KernelId>(kernels_.size()));
  if (fresh) kernels_.push_back(std::move(def));
  return it->second;
}

Result<Recipe> make_recipe(const Pick& pick, uint32_t problem, const Asked& asked, KernelTable& kernels) {
  Ctx ctx(pick, problem, asked, kernels);
  Status s = pick.candidate->build(pick.problem, pick.bid, ctx);
  if (ctx.failure) return *ctx.failure;
  if (!s) {
    Error e = s.take_error();
    e.text = std::string(pick.candidate->name) + ": " + e.text;
    return e;
  }
  return std::move(ctx.recipe);
}

}  // namespace tern::lowering
