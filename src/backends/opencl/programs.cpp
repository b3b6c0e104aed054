#include "backends/opencl/programs.h"

namespace tern::opencl {

Result<Owned<cl_kernel>> ClKernel::make() const {
  cl_int code = CL_SUCCESS;
  const cl_kernel kernel = context->cl.CreateKernel(program->get(), entry.c_str(), &code);
  TERN_OK(checked(code, "making the kernel " + entry));
  return Owned<cl_kernel>(kernel, context->cl.ReleaseKernel);
}

Result<std::shared_ptr<hal::Kernel>> Programs::load(const Program& program, const KernelDef& def) {
  if (def.kind != KernelDef::Kind::text) {
    return make_error(Code::unsupported,
                      "an OpenCL device takes kernels as text; '" + def.name + "' comes in another form");
  }
  return table_.load(program, def, [this](std::span<const KernelDef* const> defs) { return build(defs); });
}

Result<std::vector<std::shared_ptr<ClKernel>>> Programs::build(std::span<const KernelDef* const> defs) {
  Hasher hasher;
  hasher.text(identity_).text(options_);
  for (const KernelDef* d : defs) hasher.bytes(d->code);
  const Hash key = hasher.done();
  Owned<cl_program> program;
  if (const auto kept = cache_.find(key)) {
    if (auto made = from_binary(*kept)) program = std::move(*made);
  }
  if (program.get() == nullptr) {
    TERN_TRY(program, from_text(defs));
    // The binary is what runs, so that what was made for it is not made again at the first launch.
    auto binary = binary_of(program.get());
    if (binary && !binary->empty()) {
      if (auto made = from_binary(*binary)) {
        program = std::move(*made);
        cache_.store(key, *binary);
      }
    }
  }
  const auto shared = std::make_shared<Owned<cl_program>>(std::move(program));
  std::vector<std::shared_ptr<ClKernel>> out;
  for (const KernelDef* d : defs) {
    auto kernel = std::make_shared<ClKernel>();
    kernel->context = context_;
    kernel->program = shared;
    kernel->entry = d->entry;
    kernel->work_items = d->work_items;
    out.push_back(std::move(kernel));
  }
  return out;
}

Result<Owned<cl_program>> Programs::from_text(std::span<const KernelDef* const> defs) {
  const Driver& cl = context_->cl;
  std::vector<const char*> texts;
  std::vector<size_t> lengths;
  for (const KernelDef* d : defs) {
    texts.push_back(reinterpret_cast<const char*>(d->code.data()));
    lengths.push_back(d->code.size());
  }
  cl_int code = CL_SUCCESS;
  Owned<cl_program> program(cl.CreateProgramWithSource(context_->context.get(), static_cast<cl_uint>(texts.size()),
                                                       texts.data(), lengths.data(), &code),
                            cl.ReleaseProgram);
  TERN_OK(checked(code, "taking the text of " + defs[0]->name));
  code = cl.BuildProgram(program.get(), 1, &context_->device, options_.c_str(), nullptr, nullptr);
  if (code == CL_BUILD_PROGRAM_FAILURE || code == CL_INVALID_BUILD_OPTIONS || code == CL_COMPILER_NOT_AVAILABLE) {
    return make_error(Code::unsupported, "the OpenCL driver compiles no program of " + std::to_string(defs.size()) +
                                             " kernels, the first '" + defs[0]->name + "' (code " +
                                             std::to_string(code) + "): " + log_of(program.get()));
  }
  TERN_OK(checked(code, "compiling " + std::to_string(defs.size()) + " kernels"));
  return program;
}

Result<Owned<cl_program>> Programs::from_binary(std::span<const std::byte> binary) {
  const Driver& cl = context_->cl;
  const size_t bytes = binary.size();
  const auto* data = reinterpret_cast<const unsigned char*>(binary.data());
  cl_int code = CL_SUCCESS, status = CL_SUCCESS;
  Owned<cl_program> program(
      cl.CreateProgramWithBinary(context_->context.get(), 1, &context_->device, &bytes, &data, &status, &code),
      cl.ReleaseProgram);
  TERN_OK(checked(code, "loading kernels"));
  TERN_OK(checked(status, "loading kernels"));
  TERN_OK(checked(cl.BuildProgram(program.get(), 1, &context_->device, options_.c_str(), nullptr, nullptr),
                  "loading kernels"));
  return program;
}

Result<std::vector<std::byte>> Programs::binary_of(cl_program program) {
  const Driver& cl = context_->cl;
  size_t bytes = 0;
  TERN_OK(
      checked(cl.GetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof bytes, &bytes, nullptr), "reading kernels"));
  std::vector<std::byte> out(bytes);
  auto* data = reinterpret_cast<unsigned char*>(out.data());
  TERN_OK(checked(cl.GetProgramInfo(program, CL_PROGRAM_BINARIES, sizeof data, static_cast<void*>(&data), nullptr),
                  "reading kernels"));
  return out;
}

std::string Programs::log_of(cl_program program) const {
  constexpr size_t kMost = 2000;  // more tells nobody more
  size_t bytes = 0;
  context_->cl.GetProgramBuildInfo(program, context_->device, CL_PROGRAM_BUILD_LOG, 0, nullptr, &bytes);
  std::string log(bytes, '\0');
  if (bytes > 0)
    context_->cl.GetProgramBuildInfo(program, context_->device, CL_PROGRAM_BUILD_LOG, bytes, log.data(), nullptr);
  while (!log.empty() && (log.back() == '\0' || log.back() == '\n')) log.pop_back();
  if (log.empty()) return "the driver says no more";
  return log.size() > kMost ? log.substr(0, kMost) + " …" : log;
}

}  // namespace tern::opencl
