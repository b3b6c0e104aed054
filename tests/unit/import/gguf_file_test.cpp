#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmath>
#include <fstream>
#include <limits>

#include "gguf_builder.h"
#include "tern/import/model_file.h"

namespace tern {
namespace {

bool mentions(const Error& error, std::string_view text) { return error.message().find(text) != std::string::npos; }

// Expected numbers worked out from the file by a separate reader in Python.
TEST(GgufFile, SmallModelListsAndMaps) {
  auto file = open_model_file(TERN_TEST_DATA "/gguf/model_ok_small.gguf");
  ASSERT_TRUE(file.ok()) << file.error().message();
  const ModelFile& model = **file;
  EXPECT_EQ(model.container(), "gguf");
  EXPECT_EQ(model.container_version(), 3u);
  const auto tensors = model.list_tensors();
  ASSERT_EQ(tensors.size(), 20u);
  EXPECT_EQ(tensors[0].name, "token_embd.weight");
  EXPECT_EQ(tensors[0].type, "q4_0");
  EXPECT_EQ(tensors[0].shape, (std::vector<int64_t>{100, 32}));
  EXPECT_EQ(tensors[0].offset, 3840u);
  EXPECT_EQ(tensors[0].bytes, 1800u);
  EXPECT_EQ(tensors[3].name, "blk.0.attn_k.weight");
  EXPECT_EQ(tensors[3].offset, 6368u);
  EXPECT_EQ(tensors[3].shape, (std::vector<int64_t>{16, 32}));

  const WeightInfo* k = model.find("blk.0.attn_k.weight");
  ASSERT_NE(k, nullptr);
  EXPECT_EQ(k->where, "blk.0.attn_k.weight @0x18e0");
  EXPECT_EQ(k->type.format, format_by_name("q4_0"));
  EXPECT_EQ(k->type.dtype, DType::f32);
  auto planes = model.planes(*k);
  ASSERT_TRUE(planes.ok());
  const uint8_t want[] = {0xae, 0x2c, 0x77, 0x87, 0x86, 0xbb};
  EXPECT_EQ(std::memcmp((*planes).p[0].data(), want, sizeof(want)), 0);
  const WeightInfo* norm = model.find("output_norm.weight");
  ASSERT_NE(norm, nullptr);
  EXPECT_EQ(norm->type, (TensorType{DType::f32, {Dim(32)}, nullptr}));

  const Metadata& meta = model.metadata();
  EXPECT_EQ(*meta.string("general.architecture"), "llama");
  EXPECT_EQ(*meta.u64("llama.vocab_size"), 100u);
  EXPECT_EQ(*meta.f64("llama.rope.freq_base"), 10000.0);
  EXPECT_EQ(*meta.boolean("tokenizer.ggml.add_bos_token"), true);
  const auto tokens = meta.strings("tokenizer.ggml.tokens");
  ASSERT_TRUE(tokens.ok());
  ASSERT_EQ((*tokens).size(), 100u);
  EXPECT_EQ((*tokens)[3], "<0x0A>");
  EXPECT_EQ((*tokens)[99], "he");
  EXPECT_EQ((*meta.floats("tokenizer.ggml.scores"))[99], -1.0f);
  EXPECT_EQ((*meta.ints("tokenizer.ggml.token_type"))[3], 6);
}

TEST(GgufFile, EveryValueTypeIsRead) {
  using namespace std::string_literals;
  TempFolder folder;
  GgufBuilder b;
  b.scalar<uint8_t>("u8", 0, 200)
      .scalar<int8_t>("i8", 1, -100)
      .scalar<uint16_t>("u16", 2, 60000)
      .scalar<int16_t>("i16", 3, -30000);
  b.scalar<uint32_t>("u32", 4, 4000000000u)
      .scalar<int32_t>("i32", 5, -2000000000)
      .scalar<float>("f32", 6, 1.5f)
      .scalar<uint8_t>("bool", 7, 1);
  b.text("text", "a\0\xff\"b"s)
      .scalar<uint64_t>("u64", 10, UINT64_MAX)
      .scalar<int64_t>("i64", 11, INT64_MIN)
      .scalar<double>("f64", 12, 0.1);
  b.array<int16_t>("a.i16", 3, {-1, 2, -3})
      .array<uint64_t>("a.u64", 10, {1, UINT64_MAX})
      .array<double>("a.f64", 12, {0.5, 0.25});
  b.array<uint8_t>("a.bool", 7, {0, 1})
      .array<std::string>("a.text", 8, {"x", "", "\xc3\xa9"})
      .array<float>("a.none", 6, {});
  auto file = open_model_file(folder.write("values.gguf", b.build()));
  ASSERT_TRUE(file.ok()) << file.error().message();
  const Metadata& m = (*file)->metadata();
  EXPECT_EQ(m.keys().size(), 18u);
  EXPECT_EQ(m.keys()[8], "text");
  EXPECT_EQ(*m.u64("u8"), 200u);
  EXPECT_EQ(*m.i64("i8"), -100);
  EXPECT_EQ(*m.u64("u16"), 60000u);
  EXPECT_EQ(*m.i64("i16"), -30000);
  EXPECT_EQ(*m.u64("u32"), 4000000000u);
  EXPECT_EQ(*m.i64("i32"), -2000000000);
  EXPECT_EQ(*m.f64("f32"), 1.5);
  EXPECT_EQ(*m.boolean("bool"), true);
  EXPECT_EQ(*m.string("text"), "a\0\xff\"b"s);
  EXPECT_EQ(*m.u64("u64"), UINT64_MAX);
  EXPECT_EQ(*m.i64("i64"), INT64_MIN);
  EXPECT_EQ(*m.f64("f64"), 0.1);
  EXPECT_EQ(*m.ints("a.i16"), (std::vector<int64_t>{-1, 2, -3}));
  EXPECT_EQ(*m.floats("a.f64"), (std::vector<float>{0.5f, 0.25f}));
  EXPECT_EQ(*m.strings("a.text"), (std::vector<std::string>{"x", "", "\xc3\xa9"}));
  EXPECT_EQ((*m.floats("a.none")).size(), 0u);

  EXPECT_EQ(m.u64("absent").error().code, Code::not_found);
  EXPECT_TRUE(mentions(m.u64("absent").error(), "absent"));
  for (const Error& e :
       {m.u64("i8").error(), m.i64("u64").error(), m.u64("f32").error(), m.u64("bool").error(), m.f64("u32").error(),
        m.string("u8").error(), m.boolean("u8").error(), m.u64("a.i16").error(), m.ints("u8").error(),
        m.ints("a.f64").error(), m.ints("a.u64").error(), m.ints("a.none").error(), m.ints("a.bool").error(),
        m.floats("a.i16").error(), m.strings("a.i16").error(), m.strings("text").error()}) {
    EXPECT_EQ(e.code, Code::malformed) << e.message();
    EXPECT_TRUE(mentions(e, "@0x")) << e.message();
  }
  EXPECT_TRUE(mentions(m.floats("a.i16").error(), "a.i16 is an array of i16, wants floats"));

  const auto keys = (*file)->list_keys();
  EXPECT_EQ(keys[1].text, "-100");
  EXPECT_EQ(keys[6].text, "1.5");
  EXPECT_EQ(keys[7].text, "true");
  EXPECT_EQ(keys[8].text, "a\0\uFFFD\"b"s);
  EXPECT_EQ(keys[11].text, "0.1");
  EXPECT_EQ(keys[12].type, "i16[]");
  EXPECT_EQ(keys[12].text, "[-1, 2, -3]");
  EXPECT_EQ(keys[16].text, "[\"x\", \"\", \"\xc3\xa9\"]");
  EXPECT_EQ((*file)->list_keys(4)[12].text, "[-1, …]");
}

TEST(GgufFile, VersionTwoAndPlainTypes) {
  TempFolder folder;
  GgufBuilder b;
  b.version = 2;
  b.text("general.architecture", "x");
  b.tensor("d", {2}, 28, std::string(16, '\1'))
      .tensor("h", {4, 3, 2}, 1, std::string(48, '\2'))
      .tensor("b", {3}, 30, std::string(6, '\3'));
  b.tensor("i", {5}, 24, std::string(5, '\4'))
      .tensor("l", {1}, 27, std::string(8, '\5'))
      .tensor("k", {256, 2}, 16, std::string(132, '\6'));
  auto file = open_model_file(folder.write("plain.gguf", b.build()));
  ASSERT_TRUE(file.ok()) << file.error().message();
  const ModelFile& m = **file;
  EXPECT_EQ(m.container_version(), 2u);
  EXPECT_EQ(m.weights().size(), 5u);
  EXPECT_EQ(m.find("d")->type.dtype, DType::f64);
  EXPECT_EQ(m.find("h")->type, (TensorType{DType::f16, {Dim(2), Dim(3), Dim(4)}, nullptr}));
  EXPECT_EQ(m.find("b")->type.dtype, DType::bf16);
  EXPECT_EQ(m.find("i")->type.dtype, DType::i8);
  EXPECT_EQ(m.find("l")->type.dtype, DType::i64);
  EXPECT_EQ((*m.planes(*m.find("b"))).p[0].size(), 6u);
  EXPECT_EQ((*m.planes(*m.find("b"))).p[0][5], std::byte{3});
  // Types that this build cannot run are listed, and refused by name when asked for.
  EXPECT_EQ(m.find("k"), nullptr);
  EXPECT_EQ(m.list_tensors()[5].type, "iq2_xxs");
  EXPECT_FALSE(m.list_tensors()[5].runnable);
  const auto k = m.require("k");
  ASSERT_FALSE(k.ok());
  EXPECT_EQ(k.error().code, Code::unsupported);
  EXPECT_TRUE(mentions(k.error(), "k holds iq2_xxs (type 16")) << k.error().message();
  EXPECT_EQ(m.require("nothing").error().code, Code::not_found);
  EXPECT_EQ(*m.require("d"), m.find("d"));
}

TEST(GgufFile, NestedArraysEndAtADepth) {
  TempFolder folder;
  for (int depth : {1, 7, 8, 1000}) {
    GgufBuilder b;
    b.keys = 1;
    b.key_bytes.string("nest").put<uint32_t>(9);
    for (int i = 0; i < depth; ++i) b.key_bytes.put<uint32_t>(9).put<uint64_t>(1);
    b.key_bytes.put<uint32_t>(0).put<uint64_t>(2).put<uint16_t>(0x0201);
    auto file = open_model_file(folder.write("nest.gguf", b.build()));
    if (depth < 8) {
      ASSERT_TRUE(file.ok()) << file.error().message();
      EXPECT_EQ((*file)->list_keys()[0].type, "array[]");
      EXPECT_TRUE(mentions((*file)->metadata().ints("nest").error(), "array of array"));
    } else {
      ASSERT_FALSE(file.ok());
      EXPECT_TRUE(mentions(file.error(), "nested deeper")) << file.error().message();
    }
  }
}

TEST(GgufFile, LimitsAreNamed) {
  TempFolder folder;
  GgufBuilder b;
  b.text("a", std::string(3000, 'x')).text("b", "y").tensor("t", {1}, 0, "1234").tensor("u", {1}, 0, "1234");
  const std::string path = folder.write("limits.gguf", b.build());
  ASSERT_TRUE(open_model_file(path).ok());
  const auto refused = [&](FileLimits limits, std::string_view text) {
    auto file = open_model_file(path, limits);
    ASSERT_FALSE(file.ok());
    EXPECT_EQ(file.error().code, Code::limit);
    EXPECT_TRUE(mentions(file.error(), text)) << file.error().message();
  };
  refused({.header_bytes = 2000}, "limit of 2000");
  refused({.string_bytes = 2999}, "length 3000");
  refused({.keys = 1}, "key count 2");
  refused({.tensors = 1}, "tensor count 2");
}

TEST(GgufFile, FilesThatAreNone) {
  TempFolder folder;
  EXPECT_EQ(open_model_file(folder.file("absent.gguf")).error().code, Code::not_found);
  EXPECT_EQ(open_model_file(folder.file("")).error().code, Code::io);  // a directory
  ASSERT_EQ(::mkfifo(folder.file("fifo").c_str(), 0600), 0);
  EXPECT_EQ(open_model_file(folder.file("fifo")).error().code, Code::io);
}

TEST(GgufFile, AFileThatShrinksIsAnError) {
  TempFolder folder;
  GgufBuilder b;
  b.text("general.name", "shrinks").tensor("t", {4096}, 0, std::string(16384, 'z'));
  const std::string path = folder.write("shrinks.gguf", b.build());
  auto file = open_model_file(path);
  ASSERT_TRUE(file.ok());
  ASSERT_EQ(::truncate(path.c_str(), 100), 0);
  auto planes = (*file)->planes(*(*file)->find("t"));
  ASSERT_FALSE(planes.ok());
  EXPECT_EQ(planes.error().code, Code::io);
  EXPECT_TRUE(mentions(planes.error(), "shortened"));
  EXPECT_TRUE(mentions(planes.error(), "t @0x"));
  EXPECT_EQ(*(*file)->metadata().string("general.name"), "shrinks");  // owned
}

long resident_file_pages() {
  std::ifstream statm("/proc/self/statm");
  long size = 0, resident = 0, shared = 0;
  statm >> size >> resident >> shared;
  return shared;
}

TEST(GgufFile, DropGivesPagesBack) {
  TempFolder folder;
  constexpr size_t kBytes = 32u << 20;
  GgufBuilder b;
  b.tensor("before", {8}, 0, std::string(32, 'b')).tensor("t", {kBytes / 4}, 0, std::string(kBytes, 'z'));
  auto file = open_model_file(folder.write("big.gguf", b.build()));
  ASSERT_TRUE(file.ok());
  const WeightInfo& t = *(*file)->find("t");
  const auto bytes = (*(*file)->planes(t)).p[0];
  size_t count = 0;
  for (std::byte byte : bytes) count += byte == std::byte{'z'};
  EXPECT_EQ(count, kBytes);
  const long before = resident_file_pages();
  (*file)->drop(t, 0, kBytes / 2);
  (*file)->drop(t, kBytes / 2, kBytes);  // more than there is
  const long after = resident_file_pages();
  EXPECT_GE(before - after, static_cast<long>(kBytes / 4096 * 9 / 10));
  EXPECT_EQ(bytes[kBytes - 1], std::byte{'z'});  // still there when asked for
}

}  // namespace
}  // namespace tern
