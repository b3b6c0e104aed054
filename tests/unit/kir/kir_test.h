// Helpers of the kir tests.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "kir/builder.h"
#include "kir/interp.h"

namespace tern::kir {

inline Caps test_caps() {
  Caps caps;
  caps.device = "test";
  caps.max_lanes = 256;
  return caps;
}

inline Caps lockstep_caps() {
  Caps caps = test_caps();
  caps.lockstep = true;
  caps.dot4 = Dot4::fast;
  return caps;
}

template <class T>
InterpBuffer bytes_of(std::vector<T>& v) {
  return {reinterpret_cast<std::byte*>(v.data()), v.size() * sizeof(T)};
}

inline Status run_kernel(const Kernel& kernel, std::vector<InterpBuffer> buffers, std::vector<uint32_t> dims,
                         uint32_t groups, uint32_t subgroup = 0) {
  return interpret(kernel, buffers, dims, 0, groups, {.subgroup = subgroup});
}

inline std::string error_text(const Status& s) { return s ? std::string() : s.error().message(); }
template <class T>
std::string error_text(const Result<T>& r) {
  return r ? std::string() : r.error().message();
}

#define EXPECT_OK(expr)                                                  \
  do {                                                                   \
    const auto& expect_ok_ = (expr);                                     \
    EXPECT_TRUE(expect_ok_.ok()) << ::tern::kir::error_text(expect_ok_); \
  } while (0)
#define ASSERT_OK(expr)                                                  \
  do {                                                                   \
    const auto& expect_ok_ = (expr);                                     \
    ASSERT_TRUE(expect_ok_.ok()) << ::tern::kir::error_text(expect_ok_); \
  } while (0)
#define EXPECT_MENTIONS(text, what) EXPECT_NE(std::string(text).find(what), std::string::npos) << (text)

}  // namespace tern::kir
