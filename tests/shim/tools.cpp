#include "shim/tools.h"

#include <dlfcn.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "unit/temp_folder.h"

namespace tern::shim {

namespace {

// ---- programs

// Runs a command; its exit code, and what it says.
int say(const std::string& command, const std::string& log, std::string* said) {
  const int status = std::system((command + " >" + log + " 2>&1").c_str());
  std::ifstream file(log, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  *said = text.str().substr(0, 4000);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

Status glslang_takes(std::span<const KernelText> texts) {
  const std::string compiler = TERN_TEST_GLSLANG, checker = TERN_TEST_SPIRV_VAL;
  if (compiler.empty() || checker.empty())
    return make_error(Code::not_found,
                      "there is no glslangValidator or no spirv-val (Debian: glslang-tools, spirv-tools)");
  const TempFolder folder;
  for (const KernelText& t : texts) {
    const std::string source = folder.write(t.entry + ".comp", t.text), binary = folder.file("kernel.spv");
    const std::string command = compiler + " -V --target-env vulkan1.1 -o " + binary + " " + source + " && " + checker +
                                " --target-env vulkan1.1 " + binary;
    std::string said;
    if (say("{ " + command + "; }", folder.file("log"), &said) != 0)
      return make_error(Code::invalid, t.entry + ": " + said + "\n" + t.text);
  }
  return ok();
}

Status webgpu_takes(const std::string& compiler, std::span<const KernelText> texts) {
  const std::string python = TERN_TEST_WEBGPU "/bin/python";
  if (!std::filesystem::exists(python))
    return make_error(Code::not_found, "there is no " + python +
                                           "; it comes with: python3 -m venv " TERN_TEST_WEBGPU " && " TERN_TEST_WEBGPU
                                           "/bin/pip install wgpu wgpudawn");
  const TempFolder folder;
  std::string files;
  for (const KernelText& t : texts) files += " " + folder.write(t.entry + ".wgsl", t.text);
  std::string said;
  const int code = say(python + " " TERN_TEST_SHIM "/check_wgsl.py " + compiler + files, folder.file("log"), &said);
  if (code == 0) return ok();
  return make_error(code == 3 ? Code::not_found : Code::invalid, said);
}
Status naga_takes(std::span<const KernelText> texts) { return webgpu_takes("naga", texts); }
Status tint_takes(std::span<const KernelText> texts) { return webgpu_takes("tint", texts); }

// ---- NVRTC, whose interface is a handful of C functions

struct Nvrtc {
  void* library = nullptr;
  template <class... A>
  int call(const char* name, A... arguments) const {
    return reinterpret_cast<int (*)(A...)>(dlsym(library, name))(arguments...);
  }
};

const Nvrtc& nvrtc() {
  static const Nvrtc found = [] {
    const char* named = std::getenv("TERN_TEST_NVRTC");
    for (const char* path : {named != nullptr ? named : "libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12",
                             "/usr/local/cuda/lib64/libnvrtc.so"}) {
      if (void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL)) return Nvrtc{library};
    }
    return Nvrtc{};
  }();
  return found;
}

// To machine code, so that the assembler sees what stands in asm().
Status nvrtc_takes_for(const Nvrtc& n, const std::string& text, const std::string& chip) {
  void* program = nullptr;
  const std::string arch = "-arch=" + chip;
  // Whether it is taken, not how fast it is; and errors alone, without what is declared and not used.
  const char* options[] = {arch.c_str(), "--ptxas-options=-O0", "--disable-warnings"};
  int failed = n.call("nvrtcCreateProgram", &program, text.c_str(), "kernels.cu", 0,
                      static_cast<const char* const*>(nullptr), static_cast<const char* const*>(nullptr));
  if (failed == 0) failed = n.call("nvrtcCompileProgram", program, 3, static_cast<const char* const*>(options));
  size_t bytes = 0;
  std::string log;
  if (failed != 0 && n.call("nvrtcGetProgramLogSize", program, &bytes) == 0 && bytes > 1) {
    log.resize(bytes);
    n.call("nvrtcGetProgramLog", program, log.data());
  }
  if (failed == 0 && (n.call("nvrtcGetCUBINSize", program, &bytes) != 0 || bytes == 0)) failed = -1;
  n.call("nvrtcDestroyProgram", &program);
  if (failed == 0) return ok();
  return make_error(Code::invalid,
                    "NVRTC for " + chip + ", error " + std::to_string(failed) + ":\n" + log.substr(0, 4000));
}

Status nvrtc_takes(std::span<const KernelText> texts) {
  const Nvrtc& n = nvrtc();
  if (n.library == nullptr)
    return make_error(Code::not_found,
                      "there is no libnvrtc.so; TERN_TEST_NVRTC names one (CUDA toolkit, or PyPI: nvidia-cuda-nvrtc)");
  std::string all;
  std::set<std::string> seen;
  for (const KernelText& t : texts) {
    if (seen.insert(t.entry).second) all += t.text;
  }
  for (const char* chip : {"sm_75", "sm_80", "sm_90a", "sm_120"}) {
    if (Status s = nvrtc_takes_for(n, all, chip); !s.ok()) return s;
  }
  return ok();
}

}  // namespace

std::span<const Tool> tools() {
  static constexpr Tool kTools[] = {{"nvrtc", "cuda", nvrtc_takes},
                                    {"glslang", "glsl", glslang_takes},
                                    {"naga", "wgsl", naga_takes},
                                    {"tint", "wgsl", tint_takes}};
  return kTools;
}

}  // namespace tern::shim
