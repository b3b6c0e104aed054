// The entry table.
#include <llvm/ADT/StringMap.h>
#include <llvm/Config/llvm-config.h>
#include <llvm/TargetParser/Host.h>
#include <llvm/TargetParser/SubtargetFeature.h>

#include <memory>
#include <string>

#include "emit/llvm/target.h"
#include "emit/llvm_plugin.h"
#include "kir/serial.h"
#include "kir/verify.h"

namespace {

using namespace tern;

struct Answer {
  std::string text;
};

// What this code generator takes; what a device lacks was looked at when the kernel was built.
Caps lenient() {
  Caps caps;
  caps.device = "llvm";
  caps.lanes = caps.max_lanes = 64;
  caps.workgroup_bytes = 1u << 20;
  caps.subgroup = {1, 64, true};
  caps.dot4 = Dot4::fast;
  caps.byte_lookup = true;
  caps.lockstep = true;
  return caps;
}

bool answer(const tern_llvm_request& r, std::string* out) {
  auto kernel = kir::deserialize(std::span(static_cast<const std::byte*>(r.kir), r.kir_bytes));
  if (!kernel) {
    *out = kernel.error().message();
    return false;
  }
  kir::VerifyOptions options;
  options.check_budget = options.strict = false;
  if (Status s = kir::verify(*kernel, lenient(), options); !s) {
    *out = s.error().message();
    return false;
  }
  emit::Request request{r.triple ? r.triple : "", r.cpu ? r.cpu : "", r.features ? r.features : "", r.vector_bits,
                        r.want == TERN_LLVM_IR         ? emit::Want::ir
                        : r.want == TERN_LLVM_ASSEMBLY ? emit::Want::assembly
                                                       : emit::Want::object};
  return emit::generate(*kernel, request, out);
}

void compile(const tern_llvm_request* request, tern_llvm_result* result) {
  auto owner = std::make_unique<Answer>();
  const bool good = answer(*request, &owner->text);
  *result = {good ? owner->text.data() : nullptr, good ? owner->text.size() : 0, good ? nullptr : owner->text.c_str(),
             nullptr};
  result->owner = owner.release();
}

void release(tern_llvm_result* result) {
  delete static_cast<Answer*>(result->owner);
  *result = {};
}

std::string features() {
  llvm::SubtargetFeatures f;
  for (const auto& e : llvm::sys::getHostCPUFeatures()) f.AddFeature(e.first(), e.second);
  return f.getString();
}

}  // namespace

extern "C" __attribute__((visibility("default"))) const tern_llvm_plugin* tern_llvm_plugin_table(void) {
  static const std::string cpu = llvm::sys::getHostCPUName().str(), feature_text = features();
  static const tern_llvm_plugin table{TERN_LLVM_PLUGIN_VERSION,
                                      TERN_LLVM_CODEGEN_REVISION,
                                      LLVM_VERSION_STRING,
                                      cpu.c_str(),
                                      feature_text.c_str(),
                                      compile,
                                      release};
  return &table;
}
