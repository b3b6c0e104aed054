#include "lower/memory/access.h"

#include <map>
#include <set>

namespace tern::lowering {
namespace {

// What a device sees as one buffer; kNone: the arena.
uint32_t memory_of(const Program& program, const Use& use) {
  return program.buffers[use.ref.id].origin == Origin::temp ? kNone : use.ref.id;
}

std::vector<Access> declared(const Program& program, const Step& step, const Signature& sig) {
  std::set<uint32_t> written;
  for (const Use& use : step.uses) {
    if (use.access != Access::read) written.insert(memory_of(program, use));
  }
  std::vector<Access> out = sig.bindings;
  for (size_t i = 0; i < out.size() && i < step.uses.size(); ++i) {
    if (out[i] == Access::read && written.contains(memory_of(program, step.uses[i]))) out[i] = Access::update;
  }
  return out;
}

Hash declared_hash(const Hash& kernel, const std::vector<Access>& bindings) {
  Hasher hash;
  hash.text("declared").u64(kernel.hi).u64(kernel.lo);
  for (const Access a : bindings) hash.u64(static_cast<uint64_t>(a));
  return hash.done();
}

}  // namespace

// A kernel that launches declare in two ways is two kernels; one that nobody launches as it was made is gone.
void bind_mixed_read_write(Program& program) {
  std::map<std::pair<KernelId, std::vector<Access>>, KernelId> ids;
  std::vector<KernelDef> kernels;
  for (std::vector<Step>& list : program.lists) {
    for (Step& step : list) {
      auto* launch = std::get_if<Launch>(&step.what);
      if (launch == nullptr) continue;
      const KernelDef& def = program.kernels[launch->kernel];
      std::vector<Access> bindings = declared(program, step, def.sig);
      const auto [it, fresh] = ids.emplace(std::pair(launch->kernel, bindings), static_cast<KernelId>(kernels.size()));
      if (fresh) {
        kernels.push_back(def);
        if (bindings != def.sig.bindings) kernels.back().hash = declared_hash(def.hash, bindings);
        kernels.back().sig.bindings = std::move(bindings);
      }
      launch->kernel = it->second;
    }
  }
  program.kernels = std::move(kernels);
}

}  // namespace tern::lowering
