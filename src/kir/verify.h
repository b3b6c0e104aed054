// Whether a kernel is well formed and legal for a device.
#pragma once

#include "core/caps.h"
#include "kir/ir.h"

namespace tern::kir {

struct VerifyOptions {
  bool check_budget = true;  // against Kernel::node_budget
  // Refuse what WGSL would: barriers, subgroup ops and loop bounds under control that only a lockstep device can prove
  // uniform.
  bool strict = true;
};

// Types, scopes, statement lists, indices into tables, uniform loop bounds, barriers and subgroup ops under uniform
// control, statement count, workgroup memory, and whatever the caps lack, each with the kernel, the node and the reason
// in the error. A kernel that came from bytes is safe to hand to emitters and the interpreter once this said ok.
// Thread-safe.
Status verify(const Kernel& kernel, const Caps& caps, const VerifyOptions& options = {});

}  // namespace tern::kir
