// The header by itself, from memory: cuts at every byte, readings of shared type ids, alignments, gaps.
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <iterator>

#include "gguf_builder.h"
#include "import/gguf/header/header.h"
#include "matches.h"

namespace tern::gguf {
namespace {

Result<Header> parse(std::string_view bytes) { return parse_header(MemoryBytes(std::as_bytes(std::span(bytes))), {}); }

TEST(GgufHeader, EveryCutIsSaidToBeOne) {
  const std::string cut = "truncat|end of|eof|short|past|size|extent|bounds|data|empty";
  for (const char* name : {"hdr_valid_stub.gguf", "model_ok_small.gguf"}) {
    std::ifstream in(std::string(TERN_TEST_DATA "/gguf/") + name, std::ios::binary);
    const std::string whole{std::istreambuf_iterator<char>(in), {}};
    const auto header = parse(whole);
    ASSERT_TRUE(header.ok());
    uint64_t end = 0;
    for (const Tensor& t : (*header).tensors) end = std::max(end, t.offset + t.bytes);
    for (size_t n = 0; n < whole.size(); n += whole.size() > 1000 ? 7 : 1) {
      const auto part = parse(std::string_view(whole).substr(0, n));
      ASSERT_EQ(part.ok(), n >= end) << name << " cut to " << n;
      if (part.ok()) continue;
      EXPECT_TRUE(matches(part.error().message(), cut)) << n << ": " << part.error().message();
    }
  }
}

GgufBuilder two(uint32_t type, std::vector<uint64_t> ne, size_t bytes, size_t alignment = 32) {
  GgufBuilder b;
  b.alignment = alignment;
  b.tensor("a.weight", ne, type, std::string(bytes, '\1'))
      .tensor("b.weight", ne, type, std::string(bytes, '\2'))
      .tensor("n", {8}, 0, std::string(32, 'n'));
  return b;
}

TEST(GgufHeader, SharedTypeIdsAreReadAsTheOffsetsSay) {
  const auto g64 = parse(two(42, {128, 64}, 64 * 36).build());
  ASSERT_TRUE(g64.ok()) << g64.error().message();
  EXPECT_EQ((*g64).tensors[0].type->name, "q2_0");
  EXPECT_EQ((*g64).tensors[1].bytes, 64u * 36);
  const auto g128 = parse(two(42, {128, 64}, 64 * 34).build());
  ASSERT_TRUE(g128.ok()) << g128.error().message();
  EXPECT_EQ((*g128).tensors[0].type->name, "q2_0_g128");
  const auto neither = parse(two(42, {128, 64}, 64 * 40).build());
  ASSERT_FALSE(neither.ok());
  EXPECT_NE(neither.error().message().find("type 42, and no known layout"), std::string::npos)
      << neither.error().message();
  const auto other = parse(two(142, {256, 64}, 64 * 66).build());
  ASSERT_FALSE(other.ok());
  EXPECT_NE(other.error().message().find("holds iq2_tn (type 142"), std::string::npos) << other.error().message();
  const auto pq = parse(two(142, {256, 64}, 64 * 68).build());
  ASSERT_TRUE(pq.ok()) << pq.error().message();
  EXPECT_EQ((*pq).tensors[0].type->name, "pq2_0");
  // Small enough for padding to hide the difference.
  const auto both = parse(two(142, {256, 4}, 264).build());
  ASSERT_FALSE(both.ok());
  EXPECT_NE(both.error().message().find("ambiguous"), std::string::npos);
}

TEST(GgufHeader, Alignments) {
  for (uint32_t alignment : {8u, 64u, 512u}) {
    GgufBuilder b = two(0, {3}, 12, alignment);
    b.scalar("general.alignment", 4, alignment);
    const auto header = parse(b.build());
    ASSERT_TRUE(header.ok()) << header.error().message();
    EXPECT_EQ((*header).alignment, alignment);
    EXPECT_EQ((*header).tensors[1].offset, (*header).data_offset + (alignment > 12 ? alignment : 16));
  }
  for (uint32_t alignment : {0u, 1u, 3u, 4u, 24u, 33u, 0x80000000u, 0xffffffffu}) {
    GgufBuilder b = two(0, {8}, 32);
    b.scalar("general.alignment", 4, alignment);
    const auto header = parse(b.build());
    ASSERT_FALSE(header.ok()) << alignment;
    EXPECT_NE(header.error().message().find("align"), std::string::npos) << header.error().message();
  }
}

TEST(GgufHeader, TensorsNeedNotFollowEachOther) {
  // In another order than the table's, and with a gap: all extents are in range and apart.
  Bytes bytes;
  bytes.raw("GGUF").put<uint32_t>(3).put<uint64_t>(2).put<uint64_t>(0);
  bytes.string("late").put<uint32_t>(1).put<uint64_t>(8).put<uint32_t>(0).put<uint64_t>(128);
  bytes.string("soon").put<uint32_t>(1).put<uint64_t>(8).put<uint32_t>(0).put<uint64_t>(32);
  bytes.pad(32).raw(std::string(160, 'x'));
  const auto header = parse(bytes.data());
  ASSERT_TRUE(header.ok()) << header.error().message();
  EXPECT_EQ((*header).tensors[0].offset - (*header).tensors[1].offset, 96u);
}

TEST(GgufHeader, BoolsAreZeroOrOne) {
  GgufBuilder b;
  b.scalar<uint8_t>("flag", 7, 2);
  const auto header = parse(b.build());
  ASSERT_FALSE(header.ok());
  EXPECT_NE(header.error().message().find("flag"), std::string::npos);
}

}  // namespace
}  // namespace tern::gguf
