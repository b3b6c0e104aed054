// Packs of kernels: what is written is found, what is damaged is refused by name, and kernels come from where they
// should.
#include "engine/code/packs.h"

#include <gtest/gtest.h>

#include <cstdio>

#include "emit/llvm_compiler.h"
#include "engine/compile.h"
#include "engine/registry.h"
#include "harness.h"
#include "tern/build.h"
#include "tern/ops/elementwise.h"
#include "tern/ops/reduce.h"
#include "unit/temp_folder.h"

namespace tern {
namespace {

using engine::best_level;
using runtime::KernelPack;
using runtime::PackContents;
using test::Floats;

std::vector<std::byte> some_bytes(size_t count, uint32_t seed) {
  std::vector<std::byte> out(count);
  for (std::byte& b : out) b = static_cast<std::byte>((seed = seed * 1664525u + 1013904223u) >> 24);
  return out;
}

void write_file(const std::string& path, const std::vector<std::byte>& bytes) {
  std::FILE* f = std::fopen(path.c_str(), "wb");
  ASSERT_NE(f, nullptr);
  ASSERT_EQ(std::fwrite(bytes.data(), 1, bytes.size(), f), bytes.size());
  std::fclose(f);
}

class Packs : public testing::Test {
 protected:
  std::string path(const std::string& name) const { return own_.file(name); }
  const TempFolder own_;
  const std::string folder_ = own_.file("");
};

PackContents three() {
  PackContents c{"x86-64-v3", engine::codegen_identity(), {}};
  for (uint32_t i = 1; i <= 3; ++i) c.objects[{i * 7ull, i}] = some_bytes(i * 50, i);
  return c;
}

TEST_F(Packs, FindWhatWasWritten) {
  const PackContents c = three();
  ASSERT_TRUE(runtime::write_pack(path("a.pack"), c).ok());
  const auto pack = KernelPack::open(path("a.pack"));
  ASSERT_TRUE(pack.ok()) << pack.error().message();
  EXPECT_EQ(pack->level(), c.level);
  EXPECT_EQ(pack->codegen(), c.codegen);
  ASSERT_EQ(pack->kernels(), 3u);
  for (const auto& [key, object] : c.objects) {
    const auto found = pack->find(key);
    ASSERT_TRUE(found.ok()) << found.error().message();
    ASSERT_TRUE(found->has_value());
    EXPECT_EQ(**found, object);
  }
  for (const Hash absent : {Hash{0, 0}, Hash{7, 2}, Hash{~0ull, ~0ull}}) {
    const auto found = pack->find(absent);
    ASSERT_TRUE(found.ok());
    EXPECT_FALSE(found->has_value());
  }
}

// Each byte of the file, changed: the pack is refused when it is opened or when the object is taken, or it was padding.
TEST_F(Packs, EveryDamageIsFound) {
  const PackContents c = three();
  const std::vector<std::byte> good = runtime::pack_bytes(c);
  size_t refused = 0;
  for (size_t at = 0; at < good.size(); ++at) {
    std::vector<std::byte> bad = good;
    bad[at] ^= std::byte{0x40};
    write_file(path("bad.pack"), bad);
    const auto pack = KernelPack::open(path("bad.pack"));
    bool whole = pack.ok();
    if (!pack) {
      EXPECT_EQ(pack.error().code, Code::malformed);
      EXPECT_NE(pack.error().text.find("bad.pack is damaged"), std::string::npos) << pack.error().text;
    }
    for (const auto& [key, object] : c.objects) {
      if (!whole) break;
      const auto found = pack->find(key);
      if (found.ok()) {
        ASSERT_TRUE(found->has_value());
        EXPECT_EQ(**found, object) << "byte " << at;
      } else {
        whole = false;
      }
    }
    refused += !whole;
  }
  size_t objects = 0;
  for (const auto& [key, object] : c.objects) objects += object.size();
  EXPECT_GE(refused, good.size() - 3 * 16 - 16) << "only padding may change";
  EXPECT_GT(refused, objects);
}

TEST_F(Packs, TruncatedOnesAreRefused) {
  const std::vector<std::byte> good = runtime::pack_bytes(three());
  for (size_t size = 0; size < good.size(); ++size) {
    write_file(path("short.pack"), {good.begin(), good.begin() + static_cast<std::ptrdiff_t>(size)});
    const auto pack = KernelPack::open(path("short.pack"));
    ASSERT_FALSE(pack.ok()) << size;
    EXPECT_EQ(pack.error().code, Code::malformed);
  }
}

TEST(PackLevels, TheBestThatAProcessorHas) {
  const std::vector<std::string> all = {"x86-64-v2", "x86-64-v3", "x86-64-v3+avxvnni", "x86-64-v4",
                                        "x86-64-v4+avx512vnni"};
  EXPECT_EQ(best_level("x86-64-v4+avx512vnni+avx512bf16+avx512vbmi", all), "x86-64-v4+avx512vnni");
  EXPECT_EQ(best_level("x86-64-v4+avx512bf16", all), "x86-64-v4");
  EXPECT_EQ(best_level("x86-64-v3", all), "x86-64-v3");
  EXPECT_EQ(best_level("x86-64-v3+avxvnni", all), "x86-64-v3+avxvnni");
  EXPECT_EQ(best_level("x86-64-v2", {"x86-64-v3"}), "");
  EXPECT_EQ(best_level("generic", all), "");
}

Graph small() {
  Builder b;
  const Value x = b.input("x", DType::f32, {Dim(7), 33});
  b.output("y", tanh(b, mul(b, x, 0.25)));
  b.output("sum", reduce_sum(b, x, AxisList{1}, false));
  return std::move(*b.finish());
}

// A pack of the kernels of small(), for this processor.
PackContents pack_of_small(const std::string& level) {
  PackContents c{level, engine::codegen_identity(), {}};
  const auto device = open_device("cpu");
  CompileTimings timings;
  const auto program = engine::lowered(small(), *device, {}, timings);
  EXPECT_TRUE(program.ok());
  const auto compiler = LlvmCompiler::open(TERN_LLVM_PLUGIN_PATH);
  EXPECT_TRUE(compiler.ok());
  for (const KernelDef& def : program->kernels) {
    auto object = compiler->compile(def.code, cpu_target(level));
    EXPECT_TRUE(object.ok());
    c.objects.emplace(engine::object_key(def.code, level), std::move(*object));
  }
  return c;
}

std::vector<Floats> outputs_of(const Executable& exe) {
  Floats x(7 * 33), y(7 * 33), sum(7);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 23) * 0.37f - 3;
  auto session = exe.open(exe.params());
  EXPECT_TRUE(session.ok());
  const Status done = session->run(std::vector<IoBinding>{
      test::in(*exe.io("x"), x, {7, 33}), test::out(*exe.io("y"), y, {7, 33}), test::out(*exe.io("sum"), sum, {7})});
  EXPECT_TRUE(done.ok());
  return {y, sum};
}

TEST_F(Packs, AreLookedInFirst) {
  const std::string level =
      best_level(engine::host_isa(), {std::begin(engine::pack_levels()), std::end(engine::pack_levels())});
  ASSERT_FALSE(level.empty());
  ASSERT_TRUE(runtime::write_pack(path(level + ".pack"), pack_of_small(level)).ok());
  const auto device = open_device("cpu");
  Options options;
  options.cache_dir = "none";
  options.plugin_path = "none";
  options.pack_dir = folder_;
  const auto packed = compile(small(), *device, options);
  ASSERT_TRUE(packed.ok()) << packed.error().message();
  EXPECT_EQ(packed->timings().kernels_packed, packed->timings().kernels);
  EXPECT_TRUE(packed->timings().notes.empty());
  for (const RangeInfo& range : packed->explain().ranges) {
    for (const StepInfo& step : range.steps) EXPECT_EQ(step.source, KernelSource::pack);
  }
  options.pack_dir = "none";
  const auto interpreted = compile(small(), *device, options);
  ASSERT_TRUE(interpreted.ok()) << interpreted.error().message();
  EXPECT_EQ(interpreted->timings().kernels_interpreted, interpreted->timings().kernels);
  ASSERT_EQ(interpreted->timings().notes.size(), 1u);
  EXPECT_NE(interpreted->timings().notes[0].find("libtern-llvm.so"), std::string::npos);
  options.plugin_path = TERN_LLVM_PLUGIN_PATH;
  options.cache_dir = path("cache");
  const auto compiled = compile(small(), *device, options);
  ASSERT_TRUE(compiled.ok()) << compiled.error().message();
  EXPECT_EQ(compiled->timings().kernels_compiled, compiled->timings().kernels);
  options.plugin_path = "none";
  const auto cached = compile(small(), *device, options);
  ASSERT_TRUE(cached.ok()) << cached.error().message();
  EXPECT_EQ(cached->timings().kernels_cached, cached->timings().kernels);
  const std::vector<Floats> want = outputs_of(*compiled);
  for (const Executable& exe : {*packed, *interpreted, *cached}) EXPECT_EQ(outputs_of(exe), want);
}

TEST_F(Packs, DamagedOrForeignOnesAreToldOfAndNotUsed) {
  const std::string level =
      best_level(engine::host_isa(), {std::begin(engine::pack_levels()), std::end(engine::pack_levels())});
  PackContents foreign = pack_of_small(level);
  foreign.codegen = "tern 0.0.0, llvm 1";
  std::vector<std::byte> damaged = runtime::pack_bytes(pack_of_small(level));
  damaged.back() ^= std::byte{1};  // of the last object
  std::vector<std::byte> index = runtime::pack_bytes(pack_of_small(level));
  index[40] ^= std::byte{1};
  const auto device = open_device("cpu");
  Options options;
  options.cache_dir = "none";
  options.plugin_path = TERN_LLVM_PLUGIN_PATH;
  options.pack_dir = folder_;
  for (const auto& [bytes, says] : {std::pair{runtime::pack_bytes(foreign), "was made by 'tern 0.0.0, llvm 1'"},
                                    std::pair{damaged, "is damaged"}, std::pair{index, "is damaged"}}) {
    write_file(path(level + ".pack"), bytes);
    const auto exe = compile(small(), *device, options);
    ASSERT_TRUE(exe.ok()) << exe.error().message();
    ASSERT_EQ(exe->timings().notes.size(), 1u);
    EXPECT_NE(exe->timings().notes[0].find(says), std::string::npos) << exe->timings().notes[0];
    EXPECT_GT(exe->timings().kernels_compiled, 0u);
    EXPECT_EQ(outputs_of(*exe).size(), 2u);
  }
}

TEST(BuildInfo, TellsWhatThereIs) {
  const BuildInfo info = build_info();
  EXPECT_FALSE(info.version.empty());
  EXPECT_FALSE(info.compiler.empty());
  EXPECT_NE(info.codegen.find(info.version), std::string::npos);
  EXPECT_FALSE(info.levels.empty());
  EXPECT_NE(info.plugin.empty(), info.plugin_refusal.empty());
}

// Named, it must be there: nothing falls back from what was asked for.
TEST(Plugin, NamedButAbsentIsAnError) {
  const auto device = open_device("cpu");
  Options options;
  options.cache_dir = "none";
  options.pack_dir = "none";
  options.plugin_path = "/nowhere/libtern-llvm.so";
  const auto exe = compile(small(), *device, options);
  ASSERT_FALSE(exe.ok());
  EXPECT_EQ(exe.error().code, Code::not_found);
}

}  // namespace
}  // namespace tern
