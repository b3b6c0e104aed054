// The kernels that a device made, for drivers where many are made better together.
#pragma once

#include <map>
#include <mutex>

#include "hal/device.h"

namespace tern::hal {

// Kernel: a hal::Kernel. Thread-safe.
template <class Kernel>
class KernelTable {
 public:
  // def is one of the program's. All of its kernels of def's kind that are not here yet are made with it:
  // build(defs) gives a Result of them, in order.
  template <class Build>
  Result<std::shared_ptr<hal::Kernel>> load(const Program& program, const KernelDef& def, Build build) {
    const std::lock_guard lock(mutex_);
    if (auto known = find(def)) return std::shared_ptr<hal::Kernel>(std::move(known));
    std::map<std::string_view, const KernelDef*> missing{{def.entry, &def}};
    for (const KernelDef& d : program.kernels) {
      if (d.kind == def.kind && find(d) == nullptr) missing.emplace(d.entry, &d);
    }
    std::vector<const KernelDef*> defs;
    for (const auto& [entry, d] : missing) defs.push_back(d);
    TERN_TRY(latest_, build(std::span<const KernelDef* const>(defs)));
    std::erase_if(known_, [](const auto& k) { return k.second.expired(); });
    for (size_t i = 0; i < defs.size(); ++i) known_[defs[i]->entry] = latest_[i];
    return std::shared_ptr<hal::Kernel>(find(def));
  }

 private:
  std::shared_ptr<Kernel> find(const KernelDef& def) const {
    const auto it = known_.find(def.entry);
    return it == known_.end() ? nullptr : it->second.lock();
  }

  std::mutex mutex_;
  std::map<std::string, std::weak_ptr<Kernel>> known_;  // by entry
  std::vector<std::shared_ptr<Kernel>>
      latest_;  // kept until the next are made, so that all of a program find each other
};

}  // namespace tern::hal
