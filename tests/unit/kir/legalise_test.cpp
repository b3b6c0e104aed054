// The forms that a kernel takes for poorer devices give what the native forms give.
#include <cmath>
#include <random>

#include "kir/print.h"
#include "kir_test.h"

namespace tern::kir {
namespace {

// ---- reductions

struct Form {
  const char* name;
  SubgroupCaps caps;
  uint32_t run_with;  // subgroup size that the interpreter deals
  bool lockstep;
};

const Form kForms[] = {
    {"lockstep", {1, 1, false}, 0, true},       {"none", {1, 1, false}, 1, false},
    {"four", {4, 4, false}, 4, false},          {"eight", {8, 8, false}, 8, false},
    {"sixteen", {16, 16, false}, 16, false},    {"unknown_as_4", {4, 32, false}, 4, false},
    {"unknown_as_8", {4, 32, false}, 8, false}, {"unknown_as_16", {4, 32, false}, 16, false},
    {"unknown_as_1", {1, 32, false}, 1, false}, {"pinned", {8, 32, true}, 8, false},
};

struct Reduced {
  std::vector<float> sum, top;
  std::vector<int32_t> isum, low;
  std::vector<uint32_t> before, picked;
  std::vector<double> wide;
  bool operator==(const Reduced&) const = default;
};

Reduced reduce_all(const Form& form, uint32_t lanes, const std::vector<float>& x_data, std::string* text) {
  Caps caps = test_caps();
  caps.subgroup = form.caps;
  caps.lockstep = form.lockstep;
  caps.lanes = 8;
  B b("reduce", lanes, caps);
  Buffer x = buffer("x", f32), sums = buffer("sums", f32, Access::write), tops = buffer("tops", f32, Access::write),
         isums = buffer("isums", i32, Access::write), lows = buffer("lows", i32, Access::write),
         befores = buffer("befores", u32, Access::write), picks = buffer("picks", u32, Access::write),
         wides = buffer("wides", f64, Access::write);
  V i = group() * lanes + lane(), v = x[i], whole = cast(i32, v);
  sums.store(i, wg_add(v));
  tops.store(i, wg_max(v));
  isums.store(i, wg_add(whole));
  lows.store(i, wg_min(whole));
  befores.store(i, wg_exclusive_add(lane() + 1));
  picks.store(i, wg_broadcast(lane() * 3, lanes - 1));
  // Twice in a loop: the scratch of one round must be free before the next.
  Var total = var(f64, 0.0);
  For(0, 2, [&](V) { total.set(total.get() + wg_add(cast(f64, v))); });
  wides.store(i, total.get());
  auto kernel = b.finish();
  Reduced r;
  EXPECT_OK(kernel);
  if (!kernel) return r;
  *text = print(*kernel);
  std::vector<float> in = x_data;
  r.sum.resize(in.size()), r.top.resize(in.size()), r.isum.resize(in.size()), r.low.resize(in.size());
  r.before.resize(in.size()), r.picked.resize(in.size()), r.wide.resize(in.size());
  EXPECT_OK(run_kernel(*kernel,
                       {bytes_of(in), bytes_of(r.sum), bytes_of(r.top), bytes_of(r.isum), bytes_of(r.low),
                        bytes_of(r.before), bytes_of(r.picked), bytes_of(r.wide)},
                       {}, static_cast<uint32_t>(in.size() / lanes), form.run_with));
  return r;
}

TEST(Legalise, WorkgroupReductionsAgreeInEveryForm) {
  for (uint32_t lanes : {32u, 24u, 1u}) {
    std::vector<float> x(lanes * 2);
    for (size_t i = 0; i < x.size(); ++i)
      x[i] = static_cast<float>(static_cast<int>(i * 37 % 101) - 50);  // sums are exact in any order
    Reduced want;
    for (uint32_t g = 0; g < 2; ++g) {
      double sum = 0, top = -1e9, low = 1e9;
      for (uint32_t l = 0; l < lanes; ++l) {
        sum += x[g * lanes + l];
        top = std::max<double>(top, x[g * lanes + l]);
        low = std::min<double>(low, x[g * lanes + l]);
      }
      for (uint32_t l = 0; l < lanes; ++l) {
        want.sum.push_back(static_cast<float>(sum)), want.top.push_back(static_cast<float>(top));
        want.isum.push_back(static_cast<int32_t>(sum)), want.low.push_back(static_cast<int32_t>(low));
        want.before.push_back(l * (l + 1) / 2), want.picked.push_back((lanes - 1) * 3), want.wide.push_back(sum * 2);
      }
    }
    for (const Form& form : kForms) {
      std::string text;
      EXPECT_EQ(reduce_all(form, lanes, x, &text), want) << form.name << " with " << lanes << " lanes\n" << text;
      if (lanes == 32) {
        EXPECT_EQ(text.find("subgroup_add") == std::string::npos, std::string(form.name) == "none") << form.name;
        EXPECT_EQ(text.find("lanes 32 subgroup 8") != std::string::npos, std::string(form.name) == "pinned") << text;
      }
    }
  }
}

TEST(Legalise, LockstepAndTreeSumInOneOrder) {
  for (uint32_t lanes : {64u, 24u, 7u}) {
    std::mt19937 rng(1);
    std::vector<float> x(lanes * 2);
    for (float& v : x) v = std::uniform_real_distribution<float>(-1, 1)(rng) * 1e3f;
    std::string text;
    EXPECT_EQ(reduce_all(kForms[0], lanes, x, &text).sum, reduce_all(kForms[1], lanes, x, &text).sum) << lanes;
  }
}

// ---- dot4

TEST(Legalise, Dot4) {
  std::mt19937 rng(2);
  std::vector<uint32_t> codes(64), acts(64);
  std::vector<int32_t> want(64);
  for (size_t i = 0; i < 64; ++i) {
    codes[i] = i < 2 ? 0x7f7f7f7fu : rng() & 0x7f7f7f7fu;
    acts[i] = i == 0 ? 0x80808080u : i == 1 ? 0x7f7f7f7fu : static_cast<uint32_t>(rng());
    want[i] = -5;
    for (int k = 0; k < 4; ++k)
      want[i] += static_cast<int>((codes[i] >> (8 * k)) & 0xff) * static_cast<int8_t>(acts[i] >> (8 * k));
  }
  for (Dot4 dot : {Dot4::none, Dot4::slow, Dot4::fast}) {
    Caps caps = test_caps();
    caps.dot4 = dot;
    B b("dot", 64, caps);
    Buffer c = buffer("c", u32), a = buffer("a", u32), y = buffer("y", i32, Access::write);
    y.store(lane(), dot4(-5, c[lane()], a[lane()]));
    auto kernel = b.finish();
    ASSERT_OK(kernel);
    EXPECT_EQ(print(*kernel).find("dot4 i32") != std::string::npos, dot == Dot4::fast);
    std::vector<int32_t> y_data(64);
    ASSERT_OK(run_kernel(*kernel, {bytes_of(codes), bytes_of(acts), bytes_of(y_data)}, {}, 1));
    EXPECT_EQ(y_data, want);
  }
}

TEST(Legalise, Lookup) {
  std::mt19937 rng(4);
  std::array<uint8_t, 16> table;
  for (uint8_t& entry : table) entry = static_cast<uint8_t>(rng());
  std::vector<uint32_t> x(64), want(64);
  for (size_t i = 0; i < 64; ++i) {
    x[i] = i < 16 ? static_cast<uint32_t>(i) * 0x01010101u : static_cast<uint32_t>(rng()) & 0x0f0f0f0fu;
    for (int k = 0; k < 4; ++k) want[i] |= static_cast<uint32_t>(table[x[i] >> (8 * k) & 15]) << (8 * k);
  }
  for (bool native : {false, true}) {
    Caps caps = test_caps();
    caps.byte_lookup = native;
    B b("lookup", 64, caps);
    Buffer in = buffer("x", u32), y = buffer("y", u32, Access::write);
    y.store(lane(), lookup4(in[lane()], table));
    auto kernel = b.finish();
    ASSERT_OK(kernel);
    EXPECT_EQ(print(*kernel).find("lookup u32") != std::string::npos, native);
    std::vector<uint32_t> y_data(64);
    ASSERT_OK(run_kernel(*kernel, {bytes_of(x), bytes_of(y_data)}, {}, 1));
    EXPECT_EQ(y_data, want);
  }
}

TEST(Legalise, HighProductWithAndWithout64Bits) {
  std::mt19937 rng(3);
  std::vector<uint32_t> x(64), w(64), want(64);
  for (size_t i = 0; i < 64; ++i) {
    x[i] = i < 2 ? 0xffffffffu : static_cast<uint32_t>(rng()),
    w[i] = i == 0 ? 0xffffffffu : static_cast<uint32_t>(rng());
    want[i] = static_cast<uint32_t>(uint64_t{x[i]} * w[i] >> 32);
  }
  for (bool wide : {true, false}) {
    Caps caps = test_caps();
    caps.i64 = wide;
    B b("mul_hi", 64, caps);
    Buffer p = buffer("p", u32), q = buffer("q", u32), y = buffer("y", u32, Access::write);
    y.store(lane(), mul_hi(p[lane()], q[lane()]));
    auto kernel = b.finish();
    ASSERT_OK(kernel);
    std::vector<uint32_t> y_data(64);
    ASSERT_OK(run_kernel(*kernel, {bytes_of(x), bytes_of(w), bytes_of(y_data)}, {}, 1));
    EXPECT_EQ(y_data, want) << wide;
  }
}

// ---- storage

struct Storage {
  Type type;
  std::vector<uint8_t> bytes;  // four elements
  std::vector<double> values;
};

// Bits and their values by IEEE 754 and two's complement, written down by hand.
const Storage kStorage[] = {
    {f16, {0x00, 0x3c, 0x00, 0xc0, 0x01, 0x00, 0xff, 0x7b}, {1, -2, 0x1p-24, 65504}},
    {bf16, {0x80, 0x3f, 0x00, 0xc0, 0x40, 0x40, 0x7f, 0x7f}, {1, -2, 3, 0x1.fep127}},
    {i16, {0xff, 0xff, 0x00, 0x80, 0xff, 0x7f, 0x34, 0x12}, {-1, -32768, 32767, 0x1234}},
    {u16, {0xff, 0xff, 0x00, 0x80, 0x01, 0x00, 0x34, 0x12}, {65535, 32768, 1, 0x1234}},
    {i8, {0xff, 0x80, 0x7f, 0x12}, {-1, -128, 127, 18}},
    {u8, {0xff, 0x80, 0x7f, 0x12}, {255, 128, 127, 18}},
    {b8, {0x01, 0x00, 0x01, 0x01}, {1, 0, 1, 1}},
};

Caps storage_caps(bool native) {
  Caps caps = test_caps();
  caps.f16_storage = caps.byte_storage = native;
  return caps;
}

TEST(Legalise, SmallElementsLoadAlike) {
  for (const Storage& s : kStorage) {
    for (bool native : {true, false}) {
      for (int width : {1, 2, 4}) {
        if (width == 2 && type_bytes(s.type) == 1) continue;
        B b("loads", 1, storage_caps(native));
        Buffer x = buffer("x", s.type, read, {.width = width}), y = buffer("y", f64, Access::write);
        For(0, dim("count"), [&](V i) {
          const Parts p = x.load(i);
          for (int k = 0; k < width; ++k) y.store(i * width + k, cast(f64, p[k]));
        });
        auto kernel = b.finish();
        ASSERT_OK(kernel);
        std::vector<uint8_t> in = s.bytes;
        std::vector<double> out(4);
        ASSERT_OK(run_kernel(*kernel, {bytes_of(in), bytes_of(out)}, {static_cast<uint32_t>(4 / width)}, 1));
        EXPECT_EQ(out, s.values) << type_name(s.type) << " " << width << " wide, native " << native << "\n"
                                 << print(*kernel);
      }
    }
  }
}

TEST(Legalise, SmallElementsStoreAlike) {
  for (const Storage& s : kStorage) {
    const int pack = 4 / static_cast<int>(type_bytes(s.type));
    for (bool native : {true, false}) {
      for (int width : {1, pack}) {
        B b("stores", 1, storage_caps(native));
        Buffer x = buffer("x", f64), y = buffer("y", s.type, Access::write, {.width = width});
        const Type held = type_info(s.type).loaded;
        For(0, dim("count"), [&](V i) {
          std::vector<V> parts;
          for (int k = 0; k < width; ++k) {
            const V v = x[i * width + k];
            parts.push_back(held == b1 ? v != 0 : held == u32 ? cast(u32, cast(i32, v)) : cast(held, v));
          }
          y.store(i, parts);
        });
        auto kernel = b.finish();
        if (width == 1 && !native) {
          EXPECT_MENTIONS(error_text(kernel),
                          type_bytes(s.type) == 2 ? "no 16-bit loads and stores" : "no 8-bit loads and stores");
          continue;
        }
        ASSERT_OK(kernel);
        std::vector<double> in = s.values;
        std::vector<uint8_t> out(s.bytes.size());
        ASSERT_OK(run_kernel(*kernel, {bytes_of(in), bytes_of(out)}, {static_cast<uint32_t>(4 / width)}, 1));
        EXPECT_EQ(out, s.bytes) << type_name(s.type) << " " << width << " wide, native " << native << "\n"
                                << print(*kernel);
      }
    }
  }
}

TEST(Legalise, RoundingTo16Bits) {
  // Halfway cases go to the even neighbour; NaN stays NaN.
  const std::vector<float> x = {1 + 0x1p-11f, 1 + 3 * 0x1p-11f, 1 + 0x1p-8f, 1 + 3 * 0x1p-8f,
                                65520.f,      -0x1p-25f,        3.4e38f,     std::nanf("")};
  const std::vector<uint32_t> half = {0x3c00, 0x3c02, 0x3c04, 0x3c0c, 0x7c00, 0x8000, 0x7c00, 0x7e00};
  const std::vector<uint32_t> brain = {0x3f80, 0x3f80, 0x3f80, 0x3f82, 0x4780, 0xb300, 0x7f80, 0x7fc0};
  B b("round", 8, test_caps());
  Buffer in = buffer("in", f32), h = buffer("h", u32, Access::write), r = buffer("r", u32, Access::write);
  h.store(lane(), f32_to_half(in[lane()]));
  r.store(lane(), f32_to_bf16(in[lane()]));
  auto kernel = b.finish();
  ASSERT_OK(kernel);
  std::vector<float> x_data = x;
  std::vector<uint32_t> h_data(8), r_data(8);
  ASSERT_OK(run_kernel(*kernel, {bytes_of(x_data), bytes_of(h_data), bytes_of(r_data)}, {}, 1));
  EXPECT_EQ(h_data, half);
  EXPECT_EQ(r_data, brain);
}

TEST(Legalise, PrefetchesAreForMemoryCachedByAddress) {
  for (bool lockstep : {true, false}) {
    B b("ask", 4, lockstep ? lockstep_caps() : test_caps());
    Buffer x = buffer("x", f32), y = buffer("y", f32, Access::write);
    x.at(dim("first")).prefetch(V(8));
    y.store(lane(), x[lane()]);
    auto kernel = b.finish();
    ASSERT_OK(kernel);
    EXPECT_EQ(print(*kernel).find("prefetch") != std::string::npos, lockstep);
    std::vector<float> in = {1, 2, 3, 4}, out(4);
    ASSERT_OK(run_kernel(*kernel, {bytes_of(in), bytes_of(out)}, std::vector<uint32_t>(kernel->dims.size()), 1));
    EXPECT_EQ(out, in);
  }
}

TEST(Legalise, ViewsOfOneBindingAndElementOffsets) {
  // A row: one f16 scale and one pad, then a word of codes; rows start `first` rows on.
  for (bool native : {true, false}) {
    B b("views", 2, storage_caps(native));
    Buffer words = buffer("rows", u32), y = buffer("y", f32, Access::write);
    Buffer codes = words.at(dim("first") * 2), scales = words.as(f16).at(dim("first") * 4);
    V row = lane();
    y.store(row, scales[row * 4] * cast(f32, codes[row * 2 + 1] & 0xf));
    auto kernel = b.finish();
    ASSERT_OK(kernel);
    EXPECT_EQ(kernel->bindings.size(), 2u);
    std::vector<uint32_t> rows = {0x3c00, 1, 0x4000, 2, 0x3800, 0x35};
    std::vector<float> out(2);
    ASSERT_OK(run_kernel(*kernel, {bytes_of(rows), bytes_of(out)}, {1}, 1));
    EXPECT_EQ(out, (std::vector<float>{4, 2.5f}));
  }
}

}  // namespace
}  // namespace tern::kir
