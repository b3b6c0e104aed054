// Small graphs, run on every device by name.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tern/compile.h"
#include "tern/session.h"
#include "unit/places.h"

namespace tern::test {

using Floats = std::vector<float>;
using Extents = std::vector<int64_t>;

// Where graphs run: each device, and the cpu where the tile interpreter runs every kernel.
inline constexpr const char* kInterpreted = "interpreted";
inline Result<Device> open_place(std::string_view place) { return open_device(place == kInterpreted ? "cpu" : place); }
inline void choose_kernels(std::string_view place, Options& options) {
  options.plugin_path = place == kInterpreted ? "none" : TERN_LLVM_PLUGIN_PATH;
  options.pack_dir = "none";
  options.tuning = std::make_shared<const Tuning>();  // not what the user keeps
  if (place == kInterpreted) options.cache_dir = "none";
}

// A test of each of these places.
class OnDevice : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (const std::string why = why_not(GetParam()); !why.empty()) GTEST_SKIP() << why;
  }
  Result<Executable> compiled(Builder& b, Options options = {}) {
    auto graph = b.finish();
    if (!graph) return graph.take_error();
    const auto device = open_place(GetParam());
    if (!device) return device.error();
    choose_kernels(GetParam(), options);
    return compile(std::move(*graph), *device, options);
  }
  Session opened(Builder& b, const std::map<std::string, std::pair<Floats, Extents>>& params = {}) {
    auto exe = compiled(b);
    EXPECT_TRUE(exe.ok()) << (exe.ok() ? "" : exe.error().message());
    exe_ = std::make_unique<Executable>(std::move(*exe));
    params_ = std::make_unique<Params>(exe_->params());
    for (const auto& [name, value] : params) {
      const Status set = params_->set(name, view(std::span<const float>(value.first), value.second));
      EXPECT_TRUE(set.ok()) << (set.ok() ? "" : set.error().message());
    }
    auto session = exe_->open(*params_);
    EXPECT_TRUE(session.ok()) << (session.ok() ? "" : session.error().message());
    return std::move(*session);
  }
  IoId id(std::string_view name) const { return *exe_->io(name); }

  std::unique_ptr<Executable> exe_;
  std::unique_ptr<Params> params_;
};

inline IoBinding in(IoId id, const Floats& data, Extents shape) {
  return {id, view(std::span<const float>(data), std::move(shape))};
}
inline IoBinding out(IoId id, Floats& data, Extents shape) {
  return {id, mutable_view(std::span<float>(data), std::move(shape))};
}
inline std::string code_of(const Status& status) {
  return status.ok() ? "ok" : std::string(code_name(status.error().code));
}

}  // namespace tern::test
