#include "backends/opencl/device.h"

#include <algorithm>

#include "backends/opencl/commands.h"
#include "base/version.h"
#include "hal/driver_library.h"
#include "hal/waited_queue.h"

namespace tern::opencl {
namespace {

// Behind every buffer: vectors are loaded whole where some of their lanes are on (emit's text for vectors).
constexpr uint64_t kSlack = 128;

bool has_extension(const Driver& cl, cl_device_id device, std::string_view name) {
  const std::string all = " " + device_text(cl, device, CL_DEVICE_EXTENSIONS) + " ";
  return all.find(" " + std::string(name) + " ") != std::string::npos;
}

Caps caps_of(const Driver& cl, cl_device_id device, bool vectors) {
  Caps caps;
  const auto limit = [&](uint64_t v, uint64_t most) { return static_cast<uint32_t>(std::min<uint64_t>(v, most)); };
  caps.device = "opencl";
  caps.form = KernelForm::text;
  caps.language = vectors ? "opencl-vectors" : "opencl";
  caps.isa = caps.language + ", " + device_text(cl, device, CL_DEVICE_NAME) + ", " +
             device_text(cl, device, CL_DRIVER_VERSION);
  caps.workers = std::max<cl_uint>(1, device_number<cl_uint>(cl, device, CL_DEVICE_MAX_COMPUTE_UNITS));
  caps.workgroup_bytes = limit(device_number<cl_ulong>(cl, device, CL_DEVICE_LOCAL_MEM_SIZE), 32 * 1024);
  caps.fma = (device_number<cl_device_fp_config>(cl, device, CL_DEVICE_SINGLE_FP_CONFIG) & CL_FP_FMA) != 0;
  caps.f64 = has_extension(cl, device, "cl_khr_fp64");
  caps.host_visible = false;
  caps.max_binding_bytes = device_number<cl_ulong>(cl, device, CL_DEVICE_MAX_MEM_ALLOC_SIZE) - kSlack;
  caps.memory_limit = device_number<cl_ulong>(cl, device, CL_DEVICE_GLOBAL_MEM_SIZE);
  caps.offset_alignment = 64;
  if (vectors) {
    caps.lockstep = true;
    caps.lanes = std::clamp<cl_uint>(device_number<cl_uint>(cl, device, CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT), 4, 16);
    caps.max_lanes = 64;
    caps.subgroup = {1, 64, true};
    caps.dot4 = Dot4::fast, caps.dot4_code_bits = 8;
  } else {
    // Which lanes are a subgroup, and how many, OpenCL 1.2 does not say.
    caps.lanes = 32;
    caps.max_lanes = limit(device_number<size_t>(cl, device, CL_DEVICE_MAX_WORK_GROUP_SIZE), 256);
    caps.subgroup = {1, 1, false};
  }
  caps.launch_s = 3e-6;
  return caps;
}

std::string build_options(const Driver& cl, cl_device_id device) {
  std::string options = "-cl-std=CL1.2 -w";
  const auto config = device_number<cl_device_fp_config>(cl, device, CL_DEVICE_SINGLE_FP_CONFIG);
  if ((config & CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT) != 0) options += " -cl-fp32-correctly-rounded-divide-sqrt";
  return options;
}

cl_mem memory_of(const hal::Buffer& buffer) { return static_cast<const ClBuffer&>(buffer).memory(); }

struct Work {
  std::shared_ptr<Context> context;
  Owned<cl_command_queue> queue;

  Status run(hal::Commands& commands, const hal::Binding& binding, const hal::SubmitOptions& options) const {
    return static_cast<ClCommands&>(commands).run(queue.get(), binding, options);
  }
  Status upload(std::span<const std::byte> from, const hal::Buffer& to, uint64_t at) const {
    return moved(context->cl.EnqueueWriteBuffer(queue.get(), memory_of(to), CL_TRUE, at, from.size(), from.data(), 0,
                                                nullptr, nullptr));
  }
  Status download(const hal::Buffer& from, uint64_t at, std::span<std::byte> to) const {
    return moved(context->cl.EnqueueReadBuffer(queue.get(), memory_of(from), CL_TRUE, at, to.size(), to.data(), 0,
                                               nullptr, nullptr));
  }
  Status copy(const hal::Buffer& from, uint64_t from_at, const hal::Buffer& to, uint64_t to_at, uint64_t bytes) const {
    TERN_OK(moved(context->cl.EnqueueCopyBuffer(queue.get(), memory_of(from), memory_of(to), from_at, to_at, bytes, 0,
                                                nullptr, nullptr)));
    return moved(context->cl.Finish(queue.get()));
  }
  static Status moved(cl_int code) { return checked(code, "moving data"); }
};

class ClDevice final : public hal::Device {
 public:
  ClDevice(Caps caps, const std::shared_ptr<Context>& context, const std::string& cache_dir)
      : caps_(std::move(caps)),
        context_(context),
        programs_(context, build_options(context->cl, context->device),
                  std::string(version()) + ", " + caps_.isa + ", " +
                      device_text(context->cl, context->device, CL_DEVICE_VERSION),
                  DiskCache(cache_dir)) {}

  const Caps& caps() const override { return caps_; }
  hal::MemoryInfo memory() const override {
    return {caps_.memory_limit, caps_.memory_limit - std::min<uint64_t>(*used_, caps_.memory_limit)};
  }
  std::span<const Candidate> native() const override { return {}; }
  std::span<const StepFuser> fusers() const override { return {}; }

  Result<std::unique_ptr<hal::Buffer>> allocate(uint64_t bytes, hal::MemoryKind) override {
    const uint64_t available = memory().available, most = std::min(available, caps_.max_binding_bytes);
    const auto refused = [&](const std::string& why) {
      return Error{Code::out_of_memory,
                   "the OpenCL device has no room for a buffer of " + std::to_string(bytes) + " bytes: " + why,
                   {},
                   bytes,
                   most};
    };
    if (bytes > caps_.max_binding_bytes) return refused("it takes " + std::to_string(most) + " in one");
    if (bytes > available) return refused(std::to_string(available) + " are available");
    cl_int code = CL_SUCCESS;
    Owned<cl_mem> memory(
        context_->cl.CreateBuffer(context_->context.get(), CL_MEM_READ_WRITE, bytes + kSlack, nullptr, &code),
        context_->cl.ReleaseMemObject);
    if (code == CL_OUT_OF_RESOURCES || code == CL_MEM_OBJECT_ALLOCATION_FAILURE || code == CL_OUT_OF_HOST_MEMORY)
      return refused("the driver gives no more");
    TERN_OK(checked(code, "allocating a buffer"));
    *used_ += bytes;
    return std::unique_ptr<hal::Buffer>(std::make_unique<ClBuffer>(std::move(memory), bytes, used_));
  }
  Result<std::shared_ptr<hal::Kernel>> load(const Program& program, const KernelDef& def) override {
    return programs_.load(program, def);
  }
  Result<std::unique_ptr<hal::Commands>> record(const Program& program, uint32_t list,
                                                std::span<const std::shared_ptr<hal::Kernel>> kernels) override {
    TERN_TRY(auto commands, ClCommands::record(context_, program, list, kernels));
    return std::unique_ptr<hal::Commands>(std::move(commands));
  }
  Result<std::unique_ptr<hal::Queue>> queue() override {
    cl_int code = CL_SUCCESS;
    Owned<cl_command_queue> made(context_->cl.CreateCommandQueue(context_->context.get(), context_->device, 0, &code),
                                 context_->cl.ReleaseCommandQueue);
    TERN_OK(checked(code, "opening a queue"));
    return hal::WaitedQueue<Work>::open({context_, std::move(made)});
  }

 private:
  Caps caps_;
  std::shared_ptr<Context> context_;
  Programs programs_;
  std::shared_ptr<std::atomic<uint64_t>> used_ = std::make_shared<std::atomic<uint64_t>>(0);
};

Status check_device(const Driver& cl, cl_device_id device) {
  const std::string name = device_text(cl, device, CL_DEVICE_NAME);
  if (device_number<cl_bool>(cl, device, CL_DEVICE_AVAILABLE) == CL_FALSE)
    return make_error(Code::device_lost, "the OpenCL device '" + name + "' is not available");
  if (device_number<cl_bool>(cl, device, CL_DEVICE_COMPILER_AVAILABLE) == CL_FALSE)
    return make_error(Code::unsupported, "the OpenCL device '" + name + "' has no compiler");
  if (device_number<cl_bool>(cl, device, CL_DEVICE_ENDIAN_LITTLE) == CL_FALSE)
    return make_error(Code::unsupported, "the OpenCL device '" + name + "' is big-endian");
  return ok();
}

}  // namespace

Result<std::vector<hal::Description>> list_devices() {
  TERN_TRY(const Driver* cl, driver());
  TERN_TRY(const std::vector<Found> all, find_devices(*cl));
  std::vector<hal::Description> out;
  for (const Found& found : all) {
    const auto text = [&](cl_device_info what) { return device_text(*cl, found.device, what); };
    out.push_back({text(CL_DEVICE_NAME) + ", " + text(CL_DEVICE_VERSION),
                   device_number<cl_uint>(*cl, found.device, CL_DEVICE_MAX_COMPUTE_UNITS),
                   device_number<cl_ulong>(*cl, found.device, CL_DEVICE_GLOBAL_MEM_SIZE)});
  }
  return out;
}

Result<std::unique_ptr<hal::Device>> open_opencl(const OpenclOptions& options) {
  TERN_TRY(const Driver* cl, driver());
  TERN_TRY(const std::vector<Found> all, find_devices(*cl));
  TERN_OK(hal::check_index(options.index, all.size(), "OpenCL"));
  const Found& found = all[options.index];
  TERN_OK(check_device(*cl, found.device));
  const bool processor = (device_number<cl_device_type>(*cl, found.device, CL_DEVICE_TYPE) & CL_DEVICE_TYPE_CPU) != 0;
  if (!options.form.empty() && options.form != "vectors" && options.form != "lanes")
    return make_error(Code::invalid,
                      "an OpenCL device takes kernels as 'vectors' or 'lanes', not as '" + options.form + "'");
  const cl_context_properties properties[] = {CL_CONTEXT_PLATFORM,
                                              reinterpret_cast<cl_context_properties>(found.platform), 0};
  cl_int code = CL_SUCCESS;
  Owned<cl_context> made(cl->CreateContext(properties, 1, &found.device, nullptr, nullptr, &code), cl->ReleaseContext);
  TERN_OK(checked(code, "opening a context"));
  auto context = std::make_shared<Context>(Context{*cl, found.device, std::move(made)});
  const bool vectors = options.form.empty() ? processor : options.form == "vectors";
  return std::unique_ptr<hal::Device>(
      std::make_unique<ClDevice>(caps_of(*cl, found.device, vectors), context, options.cache_dir));
}

}  // namespace tern::opencl
