#include "tern/tensor.h"

#include <gtest/gtest.h>

namespace tern {
namespace {

Format format(uint32_t rows, uint32_t columns, uint32_t bytes) {
  Format f{};
  f.name = "test";
  f.block = {rows, columns};
  f.bytes = bytes;
  return f;
}

TEST(DenseBytes, Plain) {
  EXPECT_EQ(*dense_bytes(DType::f32, nullptr, std::vector<int64_t>{3, 5}), 60u);
  EXPECT_EQ(*dense_bytes(DType::c128, nullptr, {}), 16u);
  EXPECT_EQ(*dense_bytes(DType::i8, nullptr, std::vector<int64_t>{0, 7}), 0u);
  EXPECT_EQ(*dense_bytes(DType::i8, nullptr, std::vector<int64_t>{INT64_MAX, INT64_MAX, 0}), 0u);
}

TEST(DenseBytes, Blocks) {
  const Format q = format(1, 32, 20), tile = format(4, 8, 12);
  EXPECT_EQ(*dense_bytes(DType::f32, &q, std::vector<int64_t>{576, 1536}), uint64_t{576} * 48 * 20);
  EXPECT_EQ(*dense_bytes(DType::f32, &tile, std::vector<int64_t>{8, 16}), 48u);
  EXPECT_EQ(dense_bytes(DType::f32, &q, std::vector<int64_t>{4, 33}).error().text,
            "shape [4, 33]: axis 1 is no multiple of 32, the block of test");
  EXPECT_FALSE(dense_bytes(DType::f32, &tile, std::vector<int64_t>{6, 16}).ok());
  EXPECT_FALSE(dense_bytes(DType::f32, &q, {}).ok());
}

TEST(DenseBytes, OverflowIsAnError) {
  EXPECT_EQ(dense_bytes(DType::f32, nullptr, std::vector<int64_t>{INT64_MAX}).error().code, Code::limit);
  EXPECT_EQ(dense_bytes(DType::i8, nullptr, std::vector<int64_t>{int64_t{1} << 32, int64_t{1} << 32}).error().code,
            Code::limit);
  EXPECT_EQ(dense_bytes(DType::i8, nullptr, std::vector<int64_t>{-1}).error().code, Code::invalid);
}

}  // namespace
}  // namespace tern
