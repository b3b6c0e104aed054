// Every format against bytes that other implementations wrote (tests/data/formats/golden.json), and its forms against
// each other.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <vector>

#include "tern/format.h"

namespace tern {
namespace {

const nlohmann::json& golden() {
  static const nlohmann::json data = nlohmann::json::parse(std::ifstream(TERN_TEST_DATA "/formats/golden.json"));
  return data;
}

std::vector<std::byte> unhex(const std::string& hex) {
  std::vector<std::byte> out(hex.size() / 2);
  for (size_t i = 0; i < out.size(); ++i) out[i] = static_cast<std::byte>(std::stoi(hex.substr(2 * i, 2), nullptr, 16));
  return out;
}
Planes planes_of(const std::vector<std::byte>& bytes) { return Planes{{std::span<const std::byte>(bytes)}}; }

float number(const nlohmann::json& value) {
  if (value.is_number()) return value.get<float>();
  const std::string text = value.is_null() ? "nan" : value.get<std::string>();
  return std::strtof(text.c_str(), nullptr);
}
std::vector<float> numbers(const nlohmann::json& values) {
  std::vector<float> out;
  for (const auto& v : values) out.push_back(number(v));
  return out;
}
void expect_same(float got, float want, const std::string& what) {
  if (std::isnan(want))
    EXPECT_TRUE(std::isnan(got)) << what;
  else
    EXPECT_EQ(std::bit_cast<uint32_t>(got), std::bit_cast<uint32_t>(want)) << what << ": " << got << " for " << want;
}

TEST(Formats, ListIsConsistent) {
  ASSERT_EQ(all_formats().size(), 6u);
  for (const Format* f : all_formats()) {
    EXPECT_EQ(format_by_name(f->name), f);
    ASSERT_FALSE(f->ids.empty());
    for (const FileId& id : f->ids) EXPECT_EQ(format_by_file_id(id.container, id.id), f);
    EXPECT_EQ(f->elements() % f->group, 0u);
    EXPECT_TRUE(f->decode && f->decode_run && f->encode);
    EXPECT_EQ(f->split == nullptr, f->cls == CodeClass::flt);
    EXPECT_EQ(f->split_run == nullptr, f->cls == CodeClass::flt);
  }
  EXPECT_EQ(format_by_name("q4_k"), nullptr);
  EXPECT_EQ(format_by_file_id("gguf", 12), nullptr);
  EXPECT_EQ(format_by_file_id("other", 2), nullptr);
  EXPECT_EQ(plain_format(DType::bf16)->name, "bf16");
  EXPECT_EQ(plain_format(DType::i8), nullptr);
}

TEST(Formats, DecodeEqualsGolden) {
  int seen = 0;
  for (const auto& entry : golden()["decode"]) {
    const Format* f = format_by_file_id("gguf", entry["id"].get<uint32_t>());
    ASSERT_NE(f, nullptr) << entry["type"];
    for (const auto& block : entry["blocks"]) {
      const auto bytes = unhex(block["hex"]);
      const auto want = numbers(block["f32"]);
      const auto blocks = static_cast<int64_t>(bytes.size() / f->bytes);
      std::vector<float> run(want.size()), one(want.size());
      f->decode_run(planes_of(bytes), 0, blocks, run.data());
      for (int64_t b = 0; b < blocks; ++b) f->decode(planes_of(bytes), b, one.data() + b * f->elements());
      for (size_t i = 0; i < want.size(); ++i) {
        expect_same(run[i], want[i], std::string(f->name) + " run " + std::to_string(i));
        expect_same(one[i], want[i], std::string(f->name) + " one " + std::to_string(i));
      }
      ++seen;
    }
  }
  EXPECT_EQ(seen, 16);
}

TEST(Formats, SplitGivesTheDecodedValues) {
  for (const auto& entry : golden()["decode"]) {
    const Format* f = format_by_file_id("gguf", entry["id"].get<uint32_t>());
    if (f->split == nullptr) continue;
    // All blocks in one buffer, so that the block index counts.
    std::vector<std::byte> bytes;
    std::vector<float> want;
    for (const auto& block : entry["blocks"]) {
      const auto b = unhex(block["hex"]);
      bytes.insert(bytes.end(), b.begin(), b.end());
      const auto w = numbers(block["f32"]);
      want.insert(want.end(), w.begin(), w.end());
    }
    const uint32_t n = f->elements();
    const auto blocks = static_cast<int64_t>(bytes.size() / f->bytes);
    std::vector<uint8_t> run_codes(want.size());
    std::vector<float> run_scales(static_cast<size_t>(blocks)), run_mins(static_cast<size_t>(blocks));
    f->split_run(planes_of(bytes), 0, blocks, run_codes.data(), run_scales.data(), run_mins.data());
    for (int64_t b = 0; b < blocks; ++b) {
      std::vector<uint16_t> codes(n);
      float scale = 0, min = 0;
      f->split(planes_of(bytes), b, codes.data(), &scale, &min);
      expect_same(run_scales[static_cast<size_t>(b)], scale, "scale");
      if (f->cls == CodeClass::packed_min) expect_same(run_mins[static_cast<size_t>(b)], min, "min");
      for (uint32_t j = 0; j < n; ++j) {
        const size_t i = static_cast<size_t>(b) * n + j;
        EXPECT_EQ(codes[j], run_codes[i]);
        EXPECT_LT(codes[j], 1u << f->bits);
        const float value = f->cls == CodeClass::packed_min ? static_cast<float>(codes[j]) * scale + min
                                                            : static_cast<float>(codes[j] - f->zero) * scale;
        if (value == 0.0f)
          EXPECT_EQ(want[i], 0.0f);
        else
          expect_same(value, want[i], std::string(f->name) + " value " + std::to_string(i));
      }
    }
  }
}

TEST(Formats, EncodeEqualsGolden) {
  int seen = 0;
  for (const auto& entry : golden()["encode"]) {
    const Format* f = format_by_file_id("gguf", entry["id"].get<uint32_t>());
    const auto values = numbers(entry["f32"]);
    const auto want = unhex(entry["hex"]);
    std::vector<std::byte> got(want.size());
    const size_t n = f->elements();
    for (size_t at = 0, block = 0; at < values.size(); at += n, ++block)
      ASSERT_TRUE(f->encode(std::span(values).subspan(at, n), nullptr, got.data() + block * f->bytes).ok());
    EXPECT_EQ(got, want) << f->name << " " << entry["row"];
    ++seen;
  }
  EXPECT_EQ(seen, 28);
}

TEST(Formats, F16DecodesEveryCode) {
  std::vector<uint16_t> codes(65536);
  for (size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<uint16_t>(i);
  const auto bytes = std::as_bytes(std::span(codes));
  std::vector<float> out(codes.size());
  format_by_name("f16")->decode_run(Planes{{bytes}}, 0, 65536, out.data());
  for (size_t i = 0; i < codes.size(); ++i) {
    const auto exponent = static_cast<int>((i >> 10) & 31), mantissa = static_cast<int>(i & 1023);
    const float sign = i & 0x8000 ? -1.0f : 1.0f;
    if (exponent == 31 && mantissa != 0) {
      EXPECT_TRUE(std::isnan(out[i])) << i;
      continue;
    }
    const float want = exponent == 31  ? sign * std::numeric_limits<float>::infinity()
                       : exponent == 0 ? sign * std::ldexp(static_cast<float>(mantissa), -24)
                                       : sign * std::ldexp(static_cast<float>(1024 + mantissa), exponent - 25);
    expect_same(out[i], want, "code " + std::to_string(i));
    expect_same(out[i], f16_to_f32(static_cast<uint16_t>(i)), "scalar twin of " + std::to_string(i));
  }
}

TEST(Formats, EncodeRefusesWhatItCannotHold) {
  for (const char* name : {"q4_0", "q4_1", "q8_0"}) {
    const Format* f = format_by_name(name);
    std::vector<float> values(f->elements(), 1.0f);
    std::vector<std::byte> out(f->bytes);
    EXPECT_FALSE(f->encode(std::span(values).first(31), nullptr, out.data()).ok());
    values[7] = std::numeric_limits<float>::quiet_NaN();
    const auto nan = f->encode(values, nullptr, out.data());
    ASSERT_FALSE(nan.ok());
    EXPECT_NE(nan.error().text.find("value 7"), std::string::npos);
    values[7] = -std::numeric_limits<float>::infinity();
    EXPECT_FALSE(f->encode(values, nullptr, out.data()).ok());
    values[7] = 3e38f;
    EXPECT_FALSE(f->encode(values, nullptr, out.data()).ok());
  }
}

}  // namespace
}  // namespace tern
