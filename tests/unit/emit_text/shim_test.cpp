// Texts executed without their devices, against kir's interpreter; and that the shim finds what it is there to find.
#include <set>

#include "shim/module.h"
#include "shim/texts.h"
#include "unit/emit_text/cases.h"
#include "unit/sanitized.h"

namespace tern::test {
namespace {

class TextRuns : public testing::TestWithParam<std::string_view> {};

TEST_P(TextRuns, AsTheInterpreter) {
  if (kSanitized) GTEST_SKIP() << "sanitizers do not follow fibres";
  if (const std::string why = shim::Module::missing(GetParam()); !why.empty()) GTEST_SKIP() << why;
  const Caps caps = text_caps(GetParam(), 64);
  const std::vector<TextCase> cases = text_cases(caps, 24);
  ASSERT_FALSE(HasFailure());
  expect_runs_as_interpreted(caps, cases);
}
INSTANTIATE_TEST_SUITE_P(Languages, TextRuns,
                         testing::ValuesIn(shim::Module::languages().begin(), shim::Module::languages().end()),
                         [](const auto& param) { return std::string(param.param); });

// Kernels of CUDA with one fault each.
constexpr std::string_view kFaults = R"(
extern "C" __global__ void some(int* out) { if (threadIdx.x < 3) { __syncthreads(); } out[threadIdx.x] = 1; }
extern "C" __global__ void apart(int* out) {
  if (threadIdx.x % 2) {
    __syncthreads();
  } else {
    __syncthreads();
  }
}
extern "C" __global__ void beyond(int* out) { out[threadIdx.x] = __shfl_xor_sync(~0u, 7, 16); }
extern "C" __global__ void masked(int* out) { out[threadIdx.x] = __shfl_sync(1u, 7, 0); }
extern "C" __global__ void early(int* out) { if (threadIdx.x > 0) out[threadIdx.x] = __shfl_sync(~0u, 7, 1); }
extern "C" __global__ void race(int* out) {
  __shared__ int s[16];
  s[threadIdx.x] = (int)(blockIdx.x * 100 + threadIdx.x);
  out[threadIdx.x] = s[15 - threadIdx.x];
}
)";

class ShimFinds : public testing::Test {
 protected:
  void SetUp() override {
    if (kSanitized) GTEST_SKIP() << "sanitizers do not follow fibres";
  }
  // What is said of a kernel with 16 lanes.
  static std::string said(const std::string& entry, uint64_t seed, std::vector<int32_t>* out) {
    static const Result<shim::Module> module = [] {
      static const kir::Kernel kernel;
      std::vector<shim::Source> all;
      for (const char* name : {"some", "apart", "beyond", "masked", "early", "race"})
        all.push_back({&kernel, {all.empty() ? std::string(kFaults) : "", name, 16}});
      return shim::Module::make("cuda", all);
    }();
    EXPECT_TRUE(module.ok()) << module.error().message();
    if (!module.ok()) return {};
    out->assign(16, 0);
    void* const bindings[] = {out->data()};
    const Status done = module->run(entry, bindings, nullptr, {16, 2, 32, seed});
    return done.ok() ? "" : done.error().text;
  }
  static void expect_said(const std::string& entry, std::initializer_list<std::string_view> words) {
    std::vector<int32_t> out;
    for (uint64_t seed = 1; seed <= 3; ++seed) {
      const std::string text = said(entry, seed, &out);
      for (const std::string_view word : words) EXPECT_NE(text.find(word), std::string::npos) << entry << ": " << text;
    }
  }
};

TEST_F(ShimFinds, BarriersThatNotAllLanesReach) {
  expect_said("some", {"some, group 0", "lane 0 waits at the barrier", "lane 3 has ended", "threadIdx.x < 3"});
  expect_said("apart", {"lane 0 waits at the barrier", "lane 1 waits at the barrier", "must reach"});
}

TEST_F(ShimFinds, ShufflesWithLanesThatDoNotTakePart) {
  expect_said("beyond", {"which is not there"});
  expect_said("masked", {"mask that leaves it out"});
  expect_said("early", {"lane 0 has ended", "waits for its subgroup"});
}

TEST_F(ShimFinds, MissingBarriersByTheOrderOfLanes) {
  std::set<std::vector<int32_t>> results;
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    std::vector<int32_t> out;
    EXPECT_EQ(said("race", seed, &out), "");
    results.insert(out);
  }
  EXPECT_GT(results.size(), 1u);
}

TEST_F(ShimFinds, ParametersThatMetalWouldNotFill) {
  const auto text = [](const std::string& parameters) {
    return "#include <metal_stdlib>\nusing namespace metal;\n[[max_total_threads_per_threadgroup(16)]] kernel void f(" +
           parameters + ") {\n}\n";
  };
  kir::Kernel kernel;
  kernel.lanes = 16, kernel.bindings.resize(1);
  const auto refusal = [&](const std::string& parameters) {
    const shim::Source source{&kernel, {text(parameters), "f", 16}};
    const auto module = shim::Module::make("msl", {&source, 1});
    return module.ok() ? "" : module.error().text;
  };
  EXPECT_EQ(refusal("device int* p0 [[buffer(0)]], uint lane [[thread_index_in_threadgroup]]"), "");
  EXPECT_NE(refusal("device int* p0 [[buffer(2)]]").find("buffer(2)"), std::string::npos);
  EXPECT_NE(refusal("uint lane [[thread_index_in_group]]").find("thread_index_in_group"), std::string::npos);
  EXPECT_NE(refusal("uint lane").find("no attribute"), std::string::npos);
}

}  // namespace
}  // namespace tern::test
