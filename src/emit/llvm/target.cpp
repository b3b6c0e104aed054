#include "emit/llvm/target.h"

#include <llvm/Analysis/AliasAnalysis.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/PassManager.h>
#include <llvm/IR/Verifier.h>
#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Object/ELFObjectFile.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/SmallVectorMemoryBuffer.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/Transforms/InstCombine/InstCombine.h>
#include <llvm/Transforms/Scalar/DCE.h>
#include <llvm/Transforms/Scalar/EarlyCSE.h>
#include <llvm/Transforms/Scalar/GVN.h>
#include <llvm/Transforms/Scalar/LICM.h>
#include <llvm/Transforms/Scalar/LoopPassManager.h>
#include <llvm/Transforms/Scalar/SROA.h>
#include <llvm/Transforms/Scalar/SimplifyCFG.h>

#include <map>
#include <memory>
#include <mutex>

#include "emit/llvm/codegen.h"
#include "emit/llvm_plugin.h"

namespace tern::emit {

namespace {

constexpr const char* kTriple = "x86_64-unknown-linux-gnu";

std::unique_ptr<llvm::TargetMachine> make_machine(const Request& r, std::string* why) {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
  });
  const llvm::Target* target = llvm::TargetRegistry::lookupTarget(kTriple, *why);
  if (!target) return nullptr;
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict;
  auto machine = std::unique_ptr<llvm::TargetMachine>(
      target->createTargetMachine(kTriple, r.cpu.empty() ? "x86-64" : r.cpu, r.features, options, llvm::Reloc::PIC_,
                                  llvm::CodeModel::Small, llvm::CodeGenOptLevel::Default));
  if (!machine) *why = "LLVM has no machine for " + r.cpu;
  return machine;
}

Isa isa_of(const llvm::TargetMachine& m, uint32_t vector_bits) {
  const llvm::MCSubtargetInfo* s = m.getMCSubtargetInfo();
  auto has = [&](const char* f) { return s->checkFeatures(std::string("+") + f); };
  Isa isa;
  isa.ssse3 = has("ssse3");
  isa.avx2 = has("avx2");
  isa.f16c = has("f16c");
  isa.avx512 = has("avx512f") && has("avx512vl") && has("avx512dq");
  isa.avx512bw = isa.avx512 && has("avx512bw");
  isa.fma = has("fma") || has("avx512f");
  const uint32_t widest = isa.avx512 ? 512 : has("avx") ? 256 : 128;
  isa.vector_bits = vector_bits ? std::min(vector_bits, widest) : widest;
  isa.vnni512 = isa.avx512 && has("avx512vnni") && isa.vector_bits >= 512;
  isa.vnni256 = (isa.avx512 && has("avx512vnni")) || has("avxvnni");
  isa.avx512bw = isa.avx512bw && isa.vector_bits >= 512;
  isa.fast_gather = isa.avx512 || (isa.avx2 && has("fast-gather"));
  return isa;
}

std::string lacks(const kir::Kernel& k, const Isa& isa) {
  for (const kir::Node& n : k.nodes) {
    if (n.op == kir::Op::fma && !isa.fma) return "kernel " + k.name + " uses fma, which the target's features lack";
    if (n.op == kir::Op::rem && kir::is_float(n.type))
      return "kernel " + k.name + " uses a float remainder, which is a library call";
  }
  return {};
}

void optimise(llvm::Module& module, llvm::TargetMachine& machine) {
  llvm::LoopAnalysisManager lam;
  llvm::FunctionAnalysisManager fam;
  llvm::CGSCCAnalysisManager cgam;
  llvm::ModuleAnalysisManager mam;
  llvm::PassBuilder pb(&machine);
  pb.registerModuleAnalyses(mam);
  pb.registerCGSCCAnalyses(cgam);
  pb.registerFunctionAnalyses(fam);
  pb.registerLoopAnalyses(lam);
  pb.crossRegisterProxies(lam, fam, cgam, mam);
  llvm::FunctionPassManager fpm;
  fpm.addPass(llvm::SROAPass(llvm::SROAOptions::ModifyCFG));
  fpm.addPass(llvm::EarlyCSEPass(true));
  fpm.addPass(llvm::InstCombinePass());
  fpm.addPass(llvm::SimplifyCFGPass());
  fpm.addPass(llvm::createFunctionToLoopPassAdaptor(llvm::LICMPass(llvm::LICMOptions()), /*UseMemorySSA=*/true));
  fpm.addPass(llvm::GVNPass());
  fpm.addPass(llvm::InstCombinePass());
  fpm.addPass(llvm::DCEPass());
  for (llvm::Function& f : module) {
    if (!f.isDeclaration()) fpm.run(f, fam);
  }
}

bool emit(llvm::Module& module, llvm::TargetMachine& machine, bool assembly, llvm::SmallVectorImpl<char>& bytes,
          std::string* why) {
  llvm::raw_svector_ostream stream(bytes);
  llvm::legacy::PassManager pm;
  const auto type = assembly ? llvm::CodeGenFileType::AssemblyFile : llvm::CodeGenFileType::ObjectFile;
  if (machine.addPassesToEmitFile(pm, stream, nullptr, type, /*DisableVerify=*/true)) {
    *why = "LLVM cannot write objects for this target";
    return false;
  }
  pm.run(module);
  return true;
}

// The object must stand alone: names what it would have to be linked with.
std::string undefined(llvm::StringRef bytes) {
  auto object = llvm::object::ObjectFile::createObjectFile(llvm::MemoryBufferRef(bytes, "kernel"));
  if (!object) return llvm::toString(object.takeError());
  std::string names;
  for (const llvm::object::SymbolRef& s : (*object)->symbols()) {
    auto flags = s.getFlags();
    auto name = s.getName();
    if (flags && (*flags & llvm::object::SymbolRef::SF_Undefined) && name && !name->empty())
      names += (names.empty() ? "" : ", ") + name->str();
    if (!flags) llvm::consumeError(flags.takeError());
    if (!name) llvm::consumeError(name.takeError());
  }
  return names.empty() ? names : "the code refers to " + names;
}

}  // namespace

bool generate(const kir::Kernel& kernel, const Request& request, std::string* out) {
  // Making a machine costs a millisecond; a thread mostly asks for one target.
  thread_local std::map<std::string, std::unique_ptr<llvm::TargetMachine>> machines;
  std::unique_ptr<llvm::TargetMachine>& machine = machines[request.cpu + '\n' + request.features];
  if (!machine && !(machine = make_machine(request, out))) return false;
  const Isa isa = isa_of(*machine, request.vector_bits);
  if (*out = lacks(kernel, isa); !out->empty()) return false;
  llvm::LLVMContext context;
  context.setDiscardValueNames(request.want == Want::object);
  llvm::Module module(kernel.name, context);
  module.setTargetTriple(kTriple);
  module.setDataLayout(machine->createDataLayout());
  module.setPICLevel(llvm::PICLevel::SmallPIC);
  Codegen codegen(kernel, isa, module);
  if (*out = codegen.run(TERN_LLVM_ENTRY); !out->empty()) return false;
  std::string fault;
  llvm::raw_string_ostream faults(fault);
  if (llvm::verifyModule(module, &faults)) {
    *out = "kernel " + kernel.name + ": the code generator made invalid code: " + fault;
    return false;
  }
  optimise(module, *machine);
  out->clear();
  if (request.want == Want::ir) {
    llvm::raw_string_ostream text(*out);
    module.print(text, nullptr);
    return true;
  }
  llvm::SmallVector<char, 0> bytes;
  if (!emit(module, *machine, request.want == Want::assembly, bytes, out)) return false;
  if (request.want == Want::object) {
    if (std::string why = undefined(llvm::StringRef(bytes.data(), bytes.size())); !why.empty()) {
      *out = "kernel " + kernel.name + ": " + why;
      return false;
    }
  }
  out->assign(bytes.data(), bytes.size());
  return true;
}

}  // namespace tern::emit
