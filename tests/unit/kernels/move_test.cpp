// gather, store, convert, region.
#include "unit/kernels/harness.h"
#include "unit/kernels/kv_states.h"

namespace tern::test {

TEST(Gather, DenseRowsAndIndicesOutside) {
  for (const Place& place : places()) {
    SCOPED_TRACE(place.name);
    for (DType type : {DType::f32, DType::f16, DType::i64}) {
      Case c;
      const Dim t = c.symbol("T", 1, 16, 5);
      c.p.family = Family::gather;
      c.p.desc = GatherDesc{};
      c.p.extent = {1, t, 48};
      const auto data = c.add(Role::weight, {type, {10, 48}}), index = c.add(Role::index, {DType::i64, {t}}),
                 out = c.add(Role::out, {type, {t, 48}}, Access::write);
      c.output(out);
      Bid bid;
      ASSERT_TRUE(c.choose("gather", place.caps, &bid)) << c.error;
      std::vector<std::byte> rows(10 * 48 * dtype_bytes(type));
      Random r(1);
      for (auto& b : rows) b = static_cast<std::byte>(r.below(100));
      const std::vector<int64_t> ids = {3, 9, -1, 0, 10};
      c.memory[data] = rows;
      c.set(index, ids);
      c.run("gather", place.caps, bid, place.interpret);
      if (HasFatalFailure()) return;
      const size_t size = 48 * dtype_bytes(type);
      for (size_t i = 0; i < ids.size(); ++i) {
        const bool inside = ids[i] >= 0 && ids[i] < 10;
        for (size_t b = 0; b < size; ++b) {
          ASSERT_EQ(c.memory[out][i * size + b], inside ? rows[static_cast<size_t>(ids[i]) * size + b] : std::byte{0})
              << "row " << i;
        }
      }
    }
  }
}

TEST(Gather, DecodesPackedRows) {
  for (const Place& place : places()) {
    for (const Format* f : packed_formats()) {
      SCOPED_TRACE(std::string(place.name) + " " + std::string(f->name));
      const int64_t columns = f->block[1] <= 32 ? 192 : 512;
      const auto width = static_cast<size_t>(columns);
      Case c;
      const int64_t rows = place.interpret ? 9000 : 150;  // on the mean device the table takes several windows
      c.p.family = Family::gather;
      c.p.desc = GatherDesc{};
      c.p.extent = {1, 6, columns};
      const auto data = c.add(Role::weight, {DType::f32, {rows, columns}, f}, Access::read, Origin::param),
                 index = c.add(Role::index, {DType::i32, {6}}),
                 out = c.add(Role::out, {DType::f32, {6, columns}}, Access::write);
      c.output(out);
      Bid bid;
      ASSERT_TRUE(c.choose("gather", place.caps, &bid)) << c.error;
      ASSERT_EQ(bid.layouts[data].def, &kPackedTiles);
      Random r(2);
      // Rows repeat after a prime number of them: encoders that search take their time.
      const auto some = encode(*f, r.reals(151 * width));
      std::vector<std::byte> file(static_cast<size_t>(rows) * some.size() / 151);
      for (size_t i = 0; i < file.size(); ++i) file[i] = some[i % some.size()];
      const auto truth = decode(*f, file);
      c.pack(data, file);
      const std::vector<int32_t> ids = {0, 1, static_cast<int32_t>(rows) - 1, 64, -3, static_cast<int32_t>(rows) / 2};
      c.set(index, ids);
      c.run("gather", place.caps, bid, place.interpret);
      if (HasFatalFailure()) return;
      const auto y = c.get<float>(out);
      for (size_t i = 0; i < ids.size(); ++i) {
        for (size_t k = 0; k < width; ++k)
          ASSERT_EQ(y[i * width + k], ids[i] < 0 ? 0.f : truth[static_cast<size_t>(ids[i]) * width + k])
              << i << " " << k;
      }
    }
  }
}

namespace {

// What a component may differ by once stored: half a step of its type's numbers, or of its block's codes, whose scale
// is itself rounded to a half; q4's code -8 has no counterpart, so there it is a whole step.
double stored_bound(const KvState& s, int64_t slot, int64_t h, int64_t c, double x) {
  if (s.kind == KvKind::f32) return 0;
  if (s.kind == KvKind::f16) return std::max(std::abs(x) * 0x1p-11, 0x1p-25);
  if (s.kind == KvKind::bf16) return std::abs(x) * 0x1p-8;
  const double step = std::abs(static_cast<double>(s.scale(slot, h, c)));
  const bool end = s.kind == KvKind::q4 && std::abs(x) > 7.5 * step;
  return step * (end ? 1 + 8 * 0x1p-11 : 0.5 + 127 * 0x1p-11 * 0x1p-3);
}

void check_store_kv(const Place& place, KvKind kind, bool keys, int64_t size) {
  SCOPED_TRACE(std::string(kv_kind_name(kind)) + (keys ? " keys " : " values ") + std::to_string(size));
  constexpr int64_t kPages = 4, kPage = 16, kHeads = 2;
  KvState state(kind, keys, kPages, kHeads, size, kPage);
  Random r(3);
  state.fill(r);
  const KvState before = state;
  Case c;
  const Dim t = c.symbol("T", 1, 16, 4);
  const int64_t columns = kHeads * size;
  c.p.family = Family::store;
  c.p.desc = StoreDesc{kPage, kHeads, static_cast<uint32_t>(size), keys, kind};
  c.p.extent = {t, columns};
  const auto type = kv_state_type(kind, keys, kPages, kHeads, size, kPage);
  ASSERT_TRUE(type.ok());
  const int64_t words = static_cast<int64_t>(state.bytes.size() / 4 / kPages),
                each = is_quantised(kind) ? 1 : 32 / kv_bits(kind);
  const auto out = c.add(Role::out, {type->dtype, {kPages, words * each}}, Access::update, Origin::state),
             index = c.add(Role::index, {DType::i32, {t}}), x = c.add(Role::x, {DType::f32, {t, columns}});
  Bid bid;
  ASSERT_TRUE(c.choose("store_kv", place.caps, &bid)) << c.error;
  auto rows = r.reals(static_cast<size_t>(4 * columns));
  for (int64_t i = 0; i < size; ++i) rows[static_cast<size_t>(i)] = 0;  // a head of zeros
  c.set(out, state.bytes);
  const std::vector<int32_t> slots = {5, -1, kPages * kPage - 1, 33};
  c.set(index, slots), c.set(x, rows);
  c.run("store_kv", place.caps, bid, place.interpret);
  if (testing::Test::HasFatalFailure()) return;
  state.bytes = c.get<std::byte>(out);
  for (int32_t slot = 0; slot < kPages * kPage; ++slot) {
    const auto at = std::find(slots.begin(), slots.end(), slot);
    for (int64_t k = 0; k < columns; ++k) {
      const float now = state.get(slot, k / size, k % size);
      if (at == slots.end()) {
        ASSERT_EQ(now, before.get(slot, k / size, k % size)) << "slot " << slot << " column " << k;
        continue;
      }
      const double want = static_cast<double>(rows[static_cast<size_t>((at - slots.begin()) * columns + k)]);
      ASSERT_NEAR(static_cast<double>(now), want, stored_bound(state, slot, k / size, k % size, want))
          << "slot " << slot << " column " << k;
    }
  }
}

}  // namespace

TEST(StoreKv, RoundsTokensIntoPages) {
  for (const Place& place : places()) {
    SCOPED_TRACE(place.name);
    for (const KvKind kind : kKvKinds) {
      for (const bool keys : {true, false}) {
        check_store_kv(place, kind, keys, 64);
        check_store_kv(place, kind, keys, 96);
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST(Store, CastsRowsIntoState) {
  for (const Place& place : places()) {
    SCOPED_TRACE(place.name);
    for (DType type : {DType::f32, DType::f16}) {
      Case c;
      const Dim t = c.symbol("T", 1, 16, 3);
      c.p.family = Family::store;
      c.p.desc = StoreDesc{};
      c.p.extent = {t, 192};
      const int64_t slots = place.interpret ? 3000 : 20;
      const auto state = c.add(Role::out, {type, {slots, 192}}, Access::update, Origin::state),
                 index = c.add(Role::index, {DType::i32, {t}}), x = c.add(Role::x, {DType::f32, {t, 192}});
      Bid bid;
      ASSERT_TRUE(c.choose("store", place.caps, &bid)) << c.error;
      Random r(3);
      const auto rows = r.reals(3 * 192);
      c.memory[state].assign(static_cast<size_t>(slots) * 192 * dtype_bytes(type), std::byte{7});
      const auto before = c.memory[state];
      const std::vector<int32_t> ids = {static_cast<int32_t>(slots) - 1, -1, 2};
      c.set(index, ids);
      c.set(x, rows);
      c.run("store", place.caps, bid, place.interpret);
      if (HasFatalFailure()) return;
      auto expected = before;
      for (size_t i : {0u, 2u}) {
        for (size_t k = 0; k < 192; ++k) {
          const size_t at = static_cast<size_t>(ids[i]) * 192 + k;
          const uint16_t half = f32_to_f16(rows[i * 192 + k]);
          if (type == DType::f16)
            std::memcpy(&expected[at * 2], &half, 2);
          else
            std::memcpy(&expected[at * 4], &rows[i * 192 + k], 4);
        }
      }
      ASSERT_EQ(c.memory[state], expected);
    }
  }
}

TEST(Convert, MakesTheBlocksThatTheLayoutStates) {
  for (const Place& place : places()) {
    for (const bool fine : {false, true}) {
      if (place.interpret && !fine) continue;
      SCOPED_TRACE(std::string(place.name) + (fine ? " fine" : ""));
      Case c;
      const Dim t = c.symbol("T", 1, 8, 3);
      c.p.family = Family::convert;
      c.p.desc = ConvertDesc{};
      c.p.extent = {t, 576};
      const auto x = c.add(Role::x, {DType::f32, {t, 576}}),
                 out = c.add(Role::out, {DType::f32, {t, 576}}, Access::write);
      c.p.operands[out].layout = {&kActInt8, {fine}};
      c.output(out);
      Bid bid;
      ASSERT_TRUE(c.choose("convert", place.caps, &bid)) << c.error;
      Random r(4);
      auto rows = r.reals(3 * 576);
      for (size_t i = 0; i < 32; ++i) rows[i] = 0, rows[64 + i] *= 1e-20f;
      c.set(x, rows);
      c.run("convert", place.caps, bid, place.interpret);
      if (HasFatalFailure()) return;
      ASSERT_EQ(c.memory[out], act_blocks(rows, 576, fine));
    }
  }
}

namespace {

using Ins = ScalarExpr::Ins;
using Kind = ScalarExpr::Kind;

}  // namespace

TEST(Region, FusesWithBroadcastAndTranspose) {  // y[t, h, d] = silu(x[t, h, d]) * w[d] + z[h, t] + h
  for (const Place& place : places()) {
    for (int64_t d : {64, 33, 5}) {
      SCOPED_TRACE(std::string(place.name) + " d " + std::to_string(d));
      Case c;
      const int64_t T = 7, H = 3;
      const Dim t = c.symbol("T", 1, 64, T);
      c.p.family = Family::region;
      c.p.desc = RegionDesc{};
      c.p.extent = {t, H, d};
      const auto x = c.add(Role::x, {DType::f32, {t, H, d}}), w = c.add(Role::x, {DType::f16, {d}}),
                 z = c.add(Role::x, {DType::i32, {H, t}}), y = c.add(Role::out, {DType::f32, {t, H, d}}, Access::write);
      ScalarExpr& e = c.p.prologue;
      e.loads = {{x, {0, {H * d, d, 1}}}, {w, {0, {0, 0, 1}}}, {z, {0, {1, t, 0}}}};
      e.code = {{Kind::load, ScalarOp::add, DType::f32, 0},  {Kind::load, ScalarOp::add, DType::f16, 1},
                {Kind::load, ScalarOp::add, DType::i32, 2},  {Kind::op, ScalarOp::silu, DType::f32, 0},
                {Kind::op, ScalarOp::cast, DType::f32, 1},   {Kind::op, ScalarOp::mul, DType::f32, 3, 4},
                {Kind::op, ScalarOp::cast, DType::f32, 2},   {Kind::op, ScalarOp::add, DType::f32, 5, 6},
                {Kind::index, ScalarOp::add, DType::i32, 1}, {Kind::op, ScalarOp::cast, DType::f32, 8},
                {Kind::op, ScalarOp::add, DType::f32, 7, 9}};
      c.output(y, 10);
      Bid bid;
      ASSERT_TRUE(c.choose("region", place.caps, &bid)) << c.error;
      Random r(5);
      const auto xs = r.reals(static_cast<size_t>(T * H * d));
      std::vector<uint16_t> ws;
      for (int64_t i = 0; i < d; ++i) ws.push_back(f32_to_f16(r.real()));
      std::vector<int32_t> zs;
      for (int64_t i = 0; i < H * T; ++i) zs.push_back(static_cast<int32_t>(r.below(100)) - 50);
      c.set(x, xs), c.set(w, ws), c.set(z, zs);
      c.run("region", place.caps, bid, place.interpret);
      if (HasFatalFailure()) return;
      const auto got = c.get<float>(y);
      for (int64_t a = 0; a < T; ++a) {
        for (int64_t h = 0; h < H; ++h) {
          for (int64_t k = 0; k < d; ++k) {
            const auto i = static_cast<size_t>((a * H + h) * d + k);
            const double v = xs[i];
            const double want = v / (1 + std::exp(-v)) * static_cast<double>(f16_to_f32(ws[static_cast<size_t>(k)])) +
                                zs[static_cast<size_t>(h * T + a)] + static_cast<double>(h);
            ASSERT_NEAR(got[i], want, 1e-5) << a << " " << h << " " << k;
          }
        }
      }
    }
  }
}

TEST(Region, SmallElementsTwoOutputsAndFlip) {  // b[i] = x[i] < x[n - 1 - i], f16 y[i] = x[n - 1 - i]
  for (const Place& place : places()) {
    SCOPED_TRACE(place.name);
    Case c;
    const int64_t n = 1200;
    c.p.family = Family::region;
    c.p.desc = RegionDesc{};
    c.p.extent = {n};
    const auto x = c.add(Role::x, {DType::f32, {n}}), b = c.add(Role::out, {DType::boolean, {n}}, Access::write),
               y = c.add(Role::out, {DType::f16, {n}}, Access::write);
    ScalarExpr& e = c.p.prologue;
    e.loads = {{x, {0, {1}}}, {x, {n - 1, {-1}}}};
    e.code = {{Kind::load, ScalarOp::add, DType::f32, 0},
              {Kind::load, ScalarOp::add, DType::f32, 1},
              {Kind::op, ScalarOp::lt, DType::boolean, 0, 1}};
    c.output(b, 2), c.output(y, 1);
    Bid bid;
    ASSERT_TRUE(c.choose("region", place.caps, &bid)) << c.error;
    Random r(6);
    const auto xs = r.reals(static_cast<size_t>(n));
    c.set(x, xs);
    c.run("region", place.caps, bid, place.interpret);
    if (HasFatalFailure()) return;
    const auto flags = c.get<uint8_t>(b);
    const auto halves = c.get<uint16_t>(y);
    for (size_t i = 0; i < xs.size(); ++i) {
      ASSERT_EQ(flags[i], xs[i] < xs[xs.size() - 1 - i]);
      ASSERT_EQ(halves[i], f32_to_f16(xs[xs.size() - 1 - i]));
    }
  }
}

}  // namespace tern::test
