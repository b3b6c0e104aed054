// Every op and every memory form, compiled code against the interpreter.
#include "unit/emit/forms.h"

#include "kir/print.h"

namespace tern::test {

using namespace kir;

namespace {

void one_form(const std::string& isa, uint32_t lanes, Type out_type,
              const std::function<V(const Inputs&, const V&)>& body) {
  const uint32_t n = lanes * kGroups;
  B b("form", lanes, caps_for(isa));
  const Inputs in = declare_inputs();
  Buffer y = buffer("y", out_type, write);
  const V i = group() * static_cast<int>(lanes) + lane();
  y.store(i, body(in, i));
  Bytes m = input_bytes(Random(lanes * 7 + static_cast<uint32_t>(out_type)), n, 1e-41f);
  m.emplace_back(n * type_bytes(out_type));
  differ(b.finish(), isa, m, {}, kGroups);
}

// What `body` makes of an index and of the inputs, for workgroups of several widths.
class Forms : public LevelTest {
 protected:
  void all_lanes(Type out, const std::function<V(const Inputs&, const V&)>& body) {
    for (uint32_t lanes : {1u, 4u, 16u, 24u, 64u}) one_form(GetParam(), lanes, out, body);
  }
};
// Products and tables of bytes: what levels differ in that are alike otherwise.
class ByteForms : public Forms {};

INSTANTIATE_TEST_SUITE_P(Levels, Forms, testing::ValuesIn(base_levels()), level_name);
INSTANTIATE_TEST_SUITE_P(Levels, ByteForms, testing::ValuesIn(all_levels()), level_name);

}  // namespace

TEST_P(Forms, FloatOps) {
  all_lanes(f32, [](const Inputs& in, const V& i) {
    const V a = in.fa[i], b = in.fb[i];
    return select(a < b, a + b, a * b - a / b);
  });
  all_lanes(f32, [](const Inputs& in, const V& i) { return min(in.fa[i], in.fb[i]) + max(in.fb[i], in.fa[i]); });
  all_lanes(f32, [](const Inputs& in, const V& i) { return fma(in.fa[i], in.fb[i], floor(in.fa[i])); });
  all_lanes(f32, [](const Inputs& in, const V& i) { return round(in.fa[i]) - abs(in.fb[i]) + sqrt(in.fa[i]); });
  all_lanes(f32, [](const Inputs& in, const V& i) { return -in.fa[i]; });
  all_lanes(f32, [](const Inputs& in, const V& i) { return exp(in.fa[i]) + tanh(in.fb[i]); });
  all_lanes(u32, [](const Inputs& in, const V& i) {
    return cast(u32, in.fa[i] <= in.fb[i]) | cast(u32, in.fa[i] == in.fb[i]) << 1;
  });
  all_lanes(b8, [](const Inputs& in, const V& i) { return in.fa[i] != in.fb[i]; });
}

TEST_P(Forms, IntegerOps) {
  all_lanes(i32, [](const Inputs& in, const V& i) { return in.ia[i] / in.ib[i] + in.ia[i] % in.ib[i]; });
  all_lanes(u32, [](const Inputs& in, const V& i) { return in.ua[i] / in.ub[i] ^ in.ua[i] % in.ub[i]; });
  all_lanes(u32, [](const Inputs& in, const V& i) { return in.ua[i] / 10 + in.ua[i] % 7; });
  all_lanes(i32, [](const Inputs& in, const V& i) { return in.ia[i] / 10 + in.ia[i] % 7 + in.ia[i] / 8; });
  all_lanes(i32, [](const Inputs& in, const V& i) { return abs(in.ia[i]) * in.ib[i] - (-in.ia[i]); });
  all_lanes(i32, [](const Inputs& in, const V& i) {
    return (in.ia[i] >> (in.ua[i] & 31)) + (in.ia[i] << (in.ub[i] & 31)) + min(in.ia[i], in.ib[i]);
  });
  all_lanes(u32, [](const Inputs& in, const V& i) {
    return (in.ua[i] >> (in.ub[i] & 31)) + max(in.ua[i], in.ub[i]) + (in.ua[i] & ~in.ub[i]);
  });
  all_lanes(u32, [](const Inputs& in, const V& i) {
    return select(in.ia[i] < in.ib[i], in.ua[i], in.ub[i]) + cast(u32, in.ua[i] <= in.ub[i]);
  });
  all_lanes(i64, [](const Inputs& in, const V& i) {
    return cast(i64, in.ia[i]) * cast(i64, in.ib[i]) / cast(i64, in.ib[i]) + cast(i64, in.ua[i]);
  });
  all_lanes(u32, [](const Inputs& in, const V& i) { return mul_hi(in.ua[i], in.ub[i] * 0x1234567); });
}

TEST_P(Forms, Casts) {
  all_lanes(i32, [](const Inputs& in, const V& i) { return cast(i32, in.fa[i]); });
  all_lanes(u32, [](const Inputs& in, const V& i) { return cast(u32, in.fa[i]); });
  all_lanes(i64, [](const Inputs& in, const V& i) { return cast(i64, in.fa[i]); });
  all_lanes(u64, [](const Inputs& in, const V& i) { return cast(u64, in.fb[i]); });
  all_lanes(f32, [](const Inputs& in, const V& i) { return cast(f32, in.ia[i]) + cast(f32, in.ua[i]); });
  all_lanes(f64, [](const Inputs& in, const V& i) { return cast(f64, in.fa[i]) / cast(f64, in.ua[i]); });
  all_lanes(f32, [](const Inputs& in, const V& i) { return cast(f32, cast(u64, in.ua[i]) << 20); });
  // A little above the middle between two neighbours: f64 would lose that, and round to the even one.
  all_lanes(f32, [](const Inputs& in, const V& i) {
    return cast(f32, (cast(u64, ((in.ua[i] & 0xffffff) | 0x800000) << 1 | 1) << 39) + cast(u64, in.ub[i] & 3));
  });
  all_lanes(f32, [](const Inputs& in, const V& i) {
    const V v = (cast(i64, ((in.ua[i] & 0xffffff) | 0x800000) << 1 | 1) << 38) + cast(i64, in.ub[i] & 1);
    return cast(f32, select(in.ia[i] < 0, -v, v));
  });
  all_lanes(f32, [](const Inputs& in, const V& i) { return cast(f32, in.fa[i] < in.fb[i]); });
  all_lanes(f32, [](const Inputs& in, const V& i) { return bitcast(f32, in.ua[i] & 0x3fffffff); });
  all_lanes(u32, [](const Inputs& in, const V& i) { return f32_to_half(in.fa[i]) & 0x7fff; });
  all_lanes(f32, [](const Inputs& in, const V& i) { return half_to_f32(in.ua[i]); });
  all_lanes(f16, [](const Inputs& in, const V& i) { return select(in.fa[i] == in.fa[i], in.fa[i], in.fb[i] * 0.f); });
  all_lanes(bf16, [](const Inputs& in, const V& i) { return in.fa[i]; });
  all_lanes(i8, [](const Inputs& in, const V& i) { return in.ia[i]; });
  all_lanes(u16, [](const Inputs& in, const V& i) { return in.ua[i]; });
}

TEST_P(Forms, EveryHalf) {  // all 65536 halves there and back
  const std::string& isa = GetParam();
  std::vector<uint16_t> x(65536);
  for (uint32_t i = 0; i < 65536; ++i) x[i] = static_cast<uint16_t>(i);
  B b("halves", 64, caps_for(isa));
  Buffer in = buffer("x", f16), y = buffer("y", f32, write), z = buffer("z", u32, write);
  const V i = group() * 64 + lane();
  y.store(i, in[i]);
  If(in[i] == in[i], [&] { z.store(i, f32_to_half(in[i])); });
  Bytes m = {bytes_of(x), std::vector<std::byte>(65536 * 4), std::vector<std::byte>(65536 * 4)};
  differ(b.finish(), isa, m, {}, 1024);
}

TEST_P(ByteForms, Dot4) {
  const uint32_t codes = caps_for(GetParam()).dot4_code_bits == 8 ? 0xffffffff : 0x7f7f7f7f;
  all_lanes(i32,
            [=](const Inputs& in, const V& i) { return dot4(in.ia[i], in.ua[i] & codes, bitcast(u32, in.ia[i])); });
  all_lanes(i32, [=](const Inputs& in, const V& i) { return dot4(0, in.ua[i] & codes, in.ua[group()]); });
  all_lanes(i32, [=](const Inputs& in, const V& i) {
    return dot4(V(0), in.ua[group()] & codes, in.ua[group() / 2]) + cast(i32, i);
  });
  // The largest products there are, so that a sum of two that does not fit its register shows.
  all_lanes(i32, [=](const Inputs& in, const V& i) {
    return dot4(in.ia[i], (in.ua[i] | ~0u) & codes, 0x80808080u | in.ub[i] * 0);
  });
}

TEST_P(ByteForms, Lookup) {
  static constexpr std::array<uint8_t, 16> kTable = {1,   24,  45,  63,  79,  93,  106, 118,
                                                     129, 141, 153, 166, 181, 197, 217, 241};
  all_lanes(u32, [](const Inputs& in, const V& i) { return lookup4(in.ua[i] & 0x0f0f0f0f, kTable); });
  all_lanes(u32, [](const Inputs& in, const V& i) { return lookup4(in.ua[group()] & 0x0f0f0f0f, kTable) + i; });
}

// How an index becomes loads: each pattern once, plain, under a lane mask and under a mask known at build time.
TEST_P(Forms, IndexPatterns) {
  const std::vector<std::function<V(const V&)>> patterns = {[](const V& l) { return l; },
                                                            [](const V& l) { return l + 3; },
                                                            [](const V& l) { return l * 2; },
                                                            [](const V& l) { return l * 4 + 1; },
                                                            [](const V& l) { return l / 8; },
                                                            [](const V& l) { return l % 16; },
                                                            [](const V& l) { return l / 16 * 64 + l % 16; },
                                                            [](const V& l) { return l * 37; },
                                                            [](const V& l) { return 63 - l; },
                                                            [](const V& l) { return l ^ 1; },
                                                            [](const V& l) { return l - l % 4 + 1; },
                                                            [](const V& l) { return (l * l) & 63; },
                                                            [](const V& l) { return l * 0 + 5; },
                                                            [](const V& l) { return l % 4 * 16 + l / 4; }};
  const std::string& isa = GetParam();
  for (size_t p = 0; p < patterns.size(); ++p) {
    for (Type type : {f32, f16, u8}) {
      for (int mask = 0; mask < 4; ++mask) {
        if (type == u8 && (p % 3 || mask == 3)) continue;  // compilers take milliseconds each
        SCOPED_TRACE("pattern " + std::to_string(p) + " type " + std::string(type_name(type)) + " mask " +
                     std::to_string(mask));
        for (uint32_t lanes : {type == f16 ? 64u : 16u}) {
          B b("pattern", lanes, caps_for(isa));
          Buffer x = buffer("x", type), y = buffer("y", type, write), g = buffer("g", u32);
          const V l = lane(), at = patterns[p](l) + group() * 64, to = group() * static_cast<int>(lanes) + l;
          auto body = [&] { y.store(to, x[at]); };
          if (mask == 0) body();
          if (mask == 1) If(to < dim("n"), body);
          if (mask == 2) If(l < 3, body);
          if (mask == 3) If((g[to] & 1) == 1, body);
          const size_t count = 64 * 37 + 64 * kGroups + 64;
          std::vector<std::byte> data(count * type_bytes(type));
          Random r(p + 1);
          for (auto& d : data) d = static_cast<std::byte>(r.below(120));  // no NaN in any type
          std::vector<uint32_t> bits(64 * kGroups);
          for (auto& v : bits) v = r.next();
          Bytes m = {data, std::vector<std::byte>(64 * kGroups * type_bytes(type)), bytes_of(bits)};
          differ(b.finish(), isa, m, mask == 1 ? std::vector<uint32_t>{lanes + lanes / 2 + 1} : std::vector<uint32_t>{},
                 kGroups);
          if (testing::Test::HasFatalFailure()) return;
        }
      }
    }
  }
}

TEST_P(Forms, StorePatterns) {
  const std::vector<std::function<V(const V&)>> patterns = {[](const V& l) { return l; },
                                                            [](const V& l) { return 63 - l; },
                                                            [](const V& l) { return l * 3; },
                                                            [](const V& l) { return l ^ 5; },
                                                            [](const V& l) { return l % 4 * 16 + l / 4; },
                                                            [](const V& l) { return l / 16 * 40 + l % 16; },
                                                            [](const V& l) { return (l * 13) & 63; }};
  const std::string& isa = GetParam();
  for (size_t p = 0; p < patterns.size(); ++p) {
    for (Type type : {f32, f16, u8, i64}) {
      for (int mask = 0; mask < 4; ++mask) {
        SCOPED_TRACE("pattern " + std::to_string(p) + " type " + std::string(type_name(type)) + " mask " +
                     std::to_string(mask));
        B b("pattern", 64, caps_for(isa));
        Buffer x = buffer("x", u32), y = buffer("y", type, write);
        const V l = lane(), from = group() * 64 + l, at = patterns[p](l) + group() * 256;
        const V v = type == f32 || type == f16 ? cast(f32, x[from] & 1023) : cast(type_info(type).loaded, x[from]);
        auto body = [&] { y.store(at, v); };
        if (mask == 0) body();
        if (mask == 1) If(from < dim("n"), body);
        if (mask == 2) If(l == 7, body);
        if (mask == 3) If((x[from] & 4) != 0, body);
        std::vector<uint32_t> bits(64 * kGroups);
        Random r(p + 1);
        for (auto& w : bits) w = r.next();
        Bytes m = {bytes_of(bits), std::vector<std::byte>(256 * kGroups * type_bytes(type))};
        differ(b.finish(), isa, m, mask == 1 ? std::vector<uint32_t>{100} : std::vector<uint32_t>{}, kGroups);
        if (testing::Test::HasFatalFailure()) return;
      }
    }
  }
}

TEST_P(Forms, WideViews) {
  const std::string& isa = GetParam();
  for (Type type : {f32, f16, u8}) {
    for (int width : {2, 4}) {
      if (type == u8 && width == 2) continue;
      for (int mask = 0; mask < 2; ++mask) {
        B b("wide", 16, caps_for(isa));
        Buffer x = buffer("x", type, read, {width, false}), y = buffer("y", type, write, {width, false});
        const V i = group() * 16 + lane();
        auto body = [&] {
          const Parts p = x.load(i);
          std::vector<V> v;
          for (int k = 0; k < width; ++k) v.push_back(p[width - 1 - k] + p[0]);
          y.store(i, v);
        };
        if (mask)
          If(i < 21, body);
        else
          body();
        std::vector<std::byte> data(16 * kGroups * static_cast<size_t>(width) * type_bytes(type));
        Random r(3);
        for (auto& d : data) d = static_cast<std::byte>(r.below(120));
        Bytes m = {data, std::vector<std::byte>(data.size())};
        differ(b.finish(), isa, m, {}, kGroups);
      }
    }
  }
}

TEST_P(Forms, StreamingStores) {
  const std::string& isa = GetParam();
  B b("stream", 64, caps_for(isa));
  Buffer x = buffer("x", f32), y = buffer("y", f32, write, {1, true});
  const V i = group() * 64 + lane();
  If(i < dim("n"), [&] { y.store(i, x[i] * 2.f); });
  Bytes m = {bytes_of(std::vector<float>(64 * 5, 1.5f)), std::vector<std::byte>(64 * 5 * 4)};
  differ(b.finish(), isa, m, {64 * 4 + 13}, 5);
}

TEST_P(Forms, Prefetches) {
  const std::string& isa = GetParam();
  B b("ask", 16, caps_for(isa));
  Buffer x = buffer("x", f32), y = buffer("y", f32, write);
  const V i = group() * 16 + lane();
  x.as(f16).prefetch(group() * 32 + 1000000);  // far outside: a hint reads nothing
  x.prefetch(i);                               // of no one place
  y.store(i, x[i] * 2.f);
  auto kernel = b.finish();
  ASSERT_TRUE(kernel.ok()) << kernel.error().message();
  const std::string text = print(*kernel);
  EXPECT_NE(text.find("prefetch"), std::string::npos) << text;
  Bytes m = {bytes_of(std::vector<float>(64, 1.5f)), std::vector<std::byte>(64 * 4)};
  differ(kernel, isa, m, {}, 4);
}

TEST_P(Forms, ControlFlow) {
  for (uint32_t lanes : {1u, 16u, 48u}) {
    Bytes m = control_bytes(lanes);
    differ(control_kernel(lanes, caps_for(GetParam())), GetParam(), m, {5}, kGroups);
  }
}

TEST_P(Forms, WorkgroupMemory) {
  for (uint32_t lanes : {16u, 24u, 64u}) {
    std::vector<float> data(lanes * kGroups);
    Random r(lanes);
    for (auto& v : data) v = r.real();
    Bytes m = {bytes_of(data), std::vector<std::byte>(lanes * kGroups * 4)};
    differ(workgroup_kernel(lanes, caps_for(GetParam())), GetParam(), m, {}, kGroups);
  }
}

TEST(Plugin, RefusesWhatTheTargetLacks) {
  B b("fused", 16, caps_for("x86-64-v3"));
  Buffer x = buffer("x", f32), y = buffer("y", f32, write);
  y.store(lane(), fma(x[lane()], x[lane()], 1.f));
  auto k = b.finish();
  ASSERT_TRUE(k.ok());
  const auto r = compiler().compile(serialize(*k), cpu_target("x86-64-v2"));
  ASSERT_FALSE(r.ok());
  EXPECT_NE(r.error().text.find("fma"), std::string::npos) << r.error().text;
  const std::byte junk[8] = {};
  EXPECT_FALSE(compiler().compile(junk, cpu_target("x86-64-v3")).ok());
  EXPECT_FALSE(LlvmCompiler::open("/nowhere/libtern-llvm.so").ok());
}

TEST(Plugin, EqualKernelsGiveEqualBytes) {
  B b("scale", 64, caps_for("x86-64-v3"));
  Buffer x = buffer("x", f32), y = buffer("y", f32, write);
  const V i = group() * 64 + lane();
  If(i < dim("n"), [&] { y.store(i, x[i] * 3.f); });
  auto k = b.finish();
  ASSERT_TRUE(k.ok());
  const auto first = compiler().compile(serialize(*k), cpu_target("x86-64-v3"));
  const auto second = compiler().compile(serialize(*k), cpu_target("x86-64-v3"));
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(*first, *second);
  const auto text = compiler().text(serialize(*k), cpu_target("x86-64-v3"), true);
  ASSERT_TRUE(text.ok());
  EXPECT_NE(text->find("ymm"), std::string::npos);
}

TEST(Plugin, WritesForOtherArchitectures) {
  B b("products", 16, caps_for("neon+dotprod"));
  Buffer x = buffer("x", u32), y = buffer("y", i32, write);
  y.store(lane(), dot4(0, x[lane()] & 0x7f7f7f7f, x[lane()]));
  auto k = b.finish();
  ASSERT_TRUE(k.ok());
  const auto text = [&](const char* isa) { return compiler().text(serialize(*k), cpu_target(isa), true); };
  const auto neon = text("neon"), dots = text("neon+dotprod"), x86 = text("x86-64-v3");
  ASSERT_TRUE(neon.ok() && dots.ok() && x86.ok());
  EXPECT_NE(neon->find("smull"), std::string::npos) << *neon;
  EXPECT_NE(dots->find("sdot"), std::string::npos) << *dots;
  EXPECT_NE(x86->find("vpmaddubsw"), std::string::npos) << *x86;
  const auto unknown =
      compiler().compile(serialize(*k), {.triple = "riscv64-unknown-linux-gnu", .cpu = {}, .features = {}});
  ASSERT_FALSE(unknown.ok());
  EXPECT_NE(unknown.error().text.find("riscv64"), std::string::npos) << unknown.error().text;
}

TEST(Plugin, TargetNames) {
  EXPECT_EQ(cpu_target("x86-64-v4+avx512vnni+avx512bf16").cpu, "x86-64-v4");
  EXPECT_EQ(cpu_target("x86-64-v4+avx512vnni+avx512bf16").features, "+avx512vnni,+avx512bf16");
  EXPECT_EQ(cpu_target("x86-64-v2").features, "");
  EXPECT_EQ(cpu_target("x86-64-v2").triple, "x86_64-unknown-linux-gnu");
  EXPECT_EQ(cpu_target("neon+dotprod+i8mm").triple, "aarch64-unknown-linux-gnu");
  EXPECT_EQ(cpu_target("neon+dotprod+i8mm").features, "+dotprod,+i8mm");
}

}  // namespace tern::test
