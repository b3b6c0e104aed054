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
  ASSERT_EQ(all_formats().size(), golden()["decode"].size() + 2);  // f32 and f16 stand for themselves
  for (const Format* f : all_formats()) {
    EXPECT_EQ(format_by_name(f->name), f);
    ASSERT_FALSE(f->ids.empty());
    for (const FileId& id : f->ids) EXPECT_EQ(format_by_file_id(id.container, id.id), f);
    EXPECT_EQ(f->elements() % f->group, 0u);
    EXPECT_TRUE(f->decode && f->decode_run && f->encode);
    EXPECT_EQ(f->split == nullptr, f->cls == CodeClass::flt);
    EXPECT_EQ(f->table.size(), f->cls == CodeClass::lookup ? 1u << f->bits : 0u);
  }
  EXPECT_EQ(format_by_name("q4_k_s"), nullptr);
  EXPECT_EQ(format_by_file_id("gguf", 4), nullptr);
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
  EXPECT_EQ(seen, 4 * static_cast<int>(golden()["decode"].size()));
}

// The value of a code by the words of CodeClass, each step rounded to f32 as the book's order has it.
struct Planar {
  std::vector<uint8_t> codes;
  std::vector<float> scales, mins, outer_scales, outer_mins;

  Planar(const Format& f, size_t blocks)
      : codes(blocks * f.elements()),
        scales(codes.size() / f.group, std::numeric_limits<float>::quiet_NaN()),
        mins(scales),
        outer_scales(blocks, std::numeric_limits<float>::quiet_NaN()),
        outer_mins(outer_scales) {}
  SplitPlanes planes() { return {codes.data(), scales.data(), mins.data(), outer_scales.data(), outer_mins.data()}; }
  float value(const Format& f, size_t i) const {
    const size_t group = i / f.group, block = i / f.elements();
    float scale = scales[group], min = mins[group];
    if (f.sub_bits != 0) scale *= outer_scales[block], min *= outer_mins[block];
    if (f.cls == CodeClass::lookup) return static_cast<float>(f.table[codes[i]]) * scale;
    if (f.cls == CodeClass::packed_min) return static_cast<float>(codes[i]) * scale + min;
    return static_cast<float>(f.step * codes[i] - f.zero) * scale;
  }
};

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
    const size_t blocks = bytes.size() / f->bytes;
    Planar all(*f, blocks), last(*f, 1);
    f->split(planes_of(bytes), 0, static_cast<int64_t>(blocks), all.planes());
    f->split(planes_of(bytes), static_cast<int64_t>(blocks) - 1, 1, last.planes());
    EXPECT_TRUE(std::equal(last.codes.begin(), last.codes.end(), all.codes.end() - f->elements()));
    for (size_t i = 0; i < want.size(); ++i) {
      EXPECT_LT(all.codes[i], 1u << f->bits);
      const float value = all.value(*f, i);
      if (want[i] == 0.0f)
        EXPECT_EQ(value, 0.0f);
      else
        expect_same(value, want[i], std::string(f->name) + " value " + std::to_string(i));
    }
    if (f->sub_bits == 0) continue;
    const float low = f->sub_bits == 4 ? 0 : -128, high = f->sub_bits == 4 ? 15 : 127;
    for (size_t g = 0; g < all.scales.size(); ++g) {
      EXPECT_TRUE(all.scales[g] == std::round(all.scales[g]) && all.scales[g] >= low && all.scales[g] <= high);
      if (f->cls != CodeClass::packed_min) continue;
      EXPECT_TRUE(all.mins[g] == std::round(all.mins[g]) && all.mins[g] >= low && all.mins[g] <= high);
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
  EXPECT_EQ(seen, static_cast<int>(golden()["encode"].size()));
}

// Formats whose encoder searches need not give the usual encoder's bytes, but must not be worse.
TEST(Formats, EncodeIsAsGoodAsTheUsual) {
  for (const auto& bound : golden()["bounds"]) {
    const Format* f = format_by_file_id("gguf", bound["id"].get<uint32_t>());
    ASSERT_NE(f, nullptr) << bound["type"];
    const auto values = numbers(golden()["rows"][bound["row"].get<std::string>()]);
    const size_t n = f->elements(), blocks = values.size() / n;
    std::vector<std::byte> bytes(blocks * f->bytes);
    for (size_t b = 0; b < blocks; ++b)
      ASSERT_TRUE(f->encode(std::span(values).subspan(b * n, n), nullptr, bytes.data() + b * f->bytes).ok());
    std::vector<float> got(values.size());
    f->decode_run(planes_of(bytes), 0, static_cast<int64_t>(blocks), got.data());
    double error = 0, size = 0;
    for (size_t i = 0; i < values.size(); ++i) {
      error += (static_cast<double>(got[i]) - static_cast<double>(values[i])) *
               (static_cast<double>(got[i]) - static_cast<double>(values[i]));
      size += static_cast<double>(values[i]) * static_cast<double>(values[i]);
    }
    EXPECT_LE(std::sqrt(error / size), bound["rel_rms"].get<double>() * 1.02 + 1e-9) << f->name << " " << bound["row"];
  }
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
  for (const Format* f : all_formats()) {
    if (f->cls == CodeClass::flt) continue;
    SCOPED_TRACE(f->name);
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
