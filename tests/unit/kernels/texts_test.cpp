// With TERN_TEST_ON=texts the tests of kernels run for GPUs: the interpreter's results are compared with f64 as
// everywhere, and then each kernel is written in every language that it is legal for, given to its compiler, run, and
// compared with the interpreter.
#include "shim/texts.h"

#include <set>

#include "shim/module.h"
#include "shim/tools.h"
#include "unit/kernels/harness.h"
#include "unit/sanitized.h"

namespace tern::test {

std::vector<RanAsText>& ran_as_texts() {
  static std::vector<RanAsText> all;
  return all;
}

void keep_as_text(const Caps& caps, const kir::Kernel& kernel, const std::vector<kir::InterpBuffer>& buffers,
                  const std::vector<uint32_t>& dims, uint32_t groups) {
  constexpr uint64_t kMostBytes = 1 << 18, kMostLanes = 1 << 13;
  constexpr uint32_t kMostStatements = 600, kMostKernels = 3;  // compilers take their time
  static std::map<std::string, std::set<Hash>> kept;           // by device and name of kernel
  uint64_t bytes = 0;
  for (const kir::InterpBuffer& b : buffers) bytes += b.bytes;
  if (bytes > kMostBytes || uint64_t{groups} * kernel.lanes > kMostLanes || kernel.statements() > kMostStatements)
    return;
  for (const kir::InterpBuffer& a : buffers) {
    for (const kir::InterpBuffer& b : buffers) {  // windows of one memory would come apart
      if (&a != &b && a.data < b.data + b.bytes && b.data < a.data + a.bytes) return;
    }
  }
  auto& same_name = kept[caps.device + " " + kernel.name];
  if (same_name.size() == kMostKernels || !same_name.insert(kir::kernel_hash(kernel)).second) return;
  auto& all = ran_as_texts();
  auto place = std::find_if(all.begin(), all.end(), [&](const RanAsText& r) { return r.caps.device == caps.device; });
  if (place == all.end()) place = all.insert(all.end(), {caps, {}});
  TextCase c{
      testing::UnitTest::GetInstance()->current_test_info()->name() + (", " + kernel.name), kernel, {}, dims, groups};
  for (const kir::InterpBuffer& b : buffers) c.buffers.emplace_back(b.data, b.data + b.bytes);
  place->cases.push_back(std::move(c));
}

namespace {

bool promised(std::string_view tool) {
  const char* text = std::getenv("TERN_TEST_REQUIRE");
  return text != nullptr && std::string_view(text).find(tool) != std::string_view::npos;
}

void run_texts(const RanAsText& ran, std::string_view language) {
  SCOPED_TRACE(ran.caps.device + " in " + std::string(language));
  Caps caps = ran.caps;
  caps.language = language;
  const std::string what =
      caps.device + ": " + std::to_string(ran.cases.size()) + " kernels in " + std::string(language);
  if (const std::string why = shim::Module::missing(language); !why.empty()) {
    std::cout << what << " skipped: " << why << std::endl;
    return;
  }
  expect_runs_as_interpreted(caps, ran.cases);
  std::cout << what << std::endl;
  for (const shim::Tool& tool : shim::tools()) {
    if (tool.language != language) continue;
    std::vector<KernelText> texts;
    for (const TextCase& c : ran.cases) texts.push_back(*emit_text(c.kernel, caps));
    const Status taken = tool.takes(texts);
    const bool absent = !taken.ok() && taken.error().code == Code::not_found && !promised(tool.name);
    if (absent) std::cout << what << ", " << tool.name << " skipped: " << taken.error().text << std::endl;
    EXPECT_TRUE(absent || taken.ok()) << taken.error().message();
  }
}

class AfterAll : public testing::Environment {
  void TearDown() override {
    if (!on_texts() || kSanitized) return;
    EXPECT_FALSE(ran_as_texts().empty());
    for (const RanAsText& ran : ran_as_texts()) {
      for (const std::string_view language : shim::Module::languages()) {
        // Each language once: compilers take seconds. Metal has no word for products of bytes.
        const bool bytes = language == "cuda" || language == "cpp";
        if (bytes != (ran.caps.dot4 == Dot4::fast)) continue;
        run_texts(ran, language);
      }
    }
  }
};
[[maybe_unused]] const auto* const after_all = testing::AddGlobalTestEnvironment(new AfterAll);

}  // namespace
}  // namespace tern::test
