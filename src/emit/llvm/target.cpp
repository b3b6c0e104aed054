#include "emit/llvm/target.h"

#include <llvm/Analysis/AliasAnalysis.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/PassManager.h>
#include <llvm/IR/Verifier.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Object/ELFObjectFile.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/SmallVectorMemoryBuffer.h>
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
#include <set>

#include "emit/llvm/arch.h"
#include "emit/llvm/codegen.h"
#include "emit/llvm_plugin.h"

namespace tern::emit {

namespace {

std::unique_ptr<llvm::TargetMachine> make_machine(const Arch& arch, const Request& r, std::string* why) {
  const llvm::Target* target = nullptr;
  {
    static std::mutex mutex;  // LLVM's list of targets has none
    static std::set<const Arch*> ready;
    const std::lock_guard lock(mutex);
    if (ready.insert(&arch).second) arch.initialise();
    target = llvm::TargetRegistry::lookupTarget(arch.triple, *why);
  }
  if (!target) return nullptr;
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict;
  auto machine = std::unique_ptr<llvm::TargetMachine>(
      target->createTargetMachine(arch.triple, r.cpu.empty() ? arch.least_cpu : r.cpu, r.features, options,
                                  llvm::Reloc::PIC_, llvm::CodeModel::Small, llvm::CodeGenOptLevel::Default));
  if (!machine) *why = "LLVM has no machine for " + r.cpu;
  return machine;
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
  const Arch* arch = arch_of(request.triple);
  if (!arch) {
    *out = "the code generator does not know the architecture of " + request.triple;
    return false;
  }
  // Making a machine costs a millisecond; a thread mostly asks for one target.
  thread_local std::map<std::string, std::unique_ptr<llvm::TargetMachine>> machines;
  std::unique_ptr<llvm::TargetMachine>& machine =
      machines[std::string(arch->triple) + '\n' + request.cpu + '\n' + request.features];
  if (!machine) machine = make_machine(*arch, request, out);
  if (!machine) return false;
  const Isa isa = arch->isa(*machine->getMCSubtargetInfo(), request.vector_bits);
  *out = lacks(kernel, isa);
  if (!out->empty()) return false;
  llvm::LLVMContext context;
  context.setDiscardValueNames(request.want == Want::object);
  llvm::Module module(kernel.name, context);
  module.setTargetTriple(arch->triple);
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
