#include "unit/emit_text/cases.h"

#include "unit/emit/forms.h"
#include "unit/emit/random_kernel.h"

namespace tern::test {

using namespace kir;

namespace {

using Values = std::function<std::vector<V>(const Inputs&, const V&)>;

void add(std::vector<TextCase>& out, const std::string& name, Result<Kernel> kernel, Bytes buffers,
         std::vector<uint32_t> dims, uint32_t groups) {
  ASSERT_TRUE(kernel.ok()) << name << ": " << kernel.error().message();
  kernel->name = name;
  out.push_back({name, std::move(*kernel), std::move(buffers), std::move(dims), groups});
}

// Each value that `body` gives lands in a row of y of its own.
void values(std::vector<TextCase>& out, const Caps& caps, const std::string& name, uint32_t lanes, Type type,
            const Values& body) {
  const uint32_t n = lanes * kGroups;
  B b(name, lanes, caps);
  const Inputs in = declare_inputs();
  Buffer y = buffer("y", type, write);
  const V i = group() * static_cast<int>(lanes) + lane();
  const std::vector<V> all = body(in, i);
  for (size_t v = 0; v < all.size(); ++v) y.store(i + static_cast<int>(v * n), all[v]);
  Bytes m = input_bytes(Random(lanes * 7 + static_cast<uint32_t>(type)), n, 1e-30f);
  m.emplace_back(n * all.size() * type_bytes(type));
  add(out, name + "_" + std::to_string(lanes), b.finish(), std::move(m), {}, kGroups);
}

void ops(std::vector<TextCase>& out, const Caps& caps, uint32_t lanes) {
  values(out, caps, "floats", lanes, f32, [](const Inputs& in, const V& i) -> std::vector<V> {
    const V a = in.fa[i], b = in.fb[i];
    return {select(a < b, a + b, a * b - a / b),
            min(a, b) + max(b, a),
            a - b,
            -a,
            fma(a, b, floor(a)),
            round(a) - abs(b),
            sqrt(a),
            exp(a) + tanh(b),
            cast(f32, in.ia[i]) + cast(f32, in.ua[i]),
            cast(f32, a < b),
            bitcast(f32, in.ua[i] & 0x3fffffff),
            half_to_f32(in.ua[i]),
            select(a <= b && !(a == b), V(1.5f), V(-0.f)),
            select((a != b) == (a < b), a, V(INFINITY))};
  });
  values(out, caps, "signed", lanes, i32, [&](const Inputs& in, const V& i) -> std::vector<V> {
    const V a = in.ia[i], b = in.ib[i];
    return {a / b + a % b,
            a / 10 + a % 7 + a / 8,
            abs(a) * b - (-a),
            (a >> (in.ua[i] & 31)) + (a << (in.ub[i] & 31)) + min(a, b),
            cast(i32, in.fa[i]),
            dot4(a, in.ua[i] & 0x7f7f7f7f, bitcast(u32, b)),
            dot4(V(0), in.ua[group()] & 0x7f7f7f7f, in.ua[group()]),
            max(a, b) ^ (a & b)};
  });
  values(out, caps, "unsigned", lanes, u32, [](const Inputs& in, const V& i) -> std::vector<V> {
    const V a = in.ua[i], b = in.ub[i];
    return {a / b ^ a % b,
            a / 10 + a % 7,
            (a >> (b & 31)) + max(a, b) + (a & ~b),
            select(in.ia[i] < in.ib[i], a, b) + cast(u32, a <= b),
            mul_hi(a, b * 0x1234567),
            cast(u32, in.fa[i]),
            f32_to_half(in.fb[i]) & select(in.fb[i] == in.fb[i], constant(u32, 0xffff), constant(u32, 0)),
            a - b * a,
            cast(u32, in.fa[i] <= in.fb[i]) | cast(u32, in.fa[i] == in.fb[i]) << 1};
  });
  if (!caps.i64 || !caps.f64) return;
  values(out, caps, "longs", lanes, i64, [](const Inputs& in, const V& i) -> std::vector<V> {
    return {cast(i64, in.ia[i]) * cast(i64, in.ib[i]) / cast(i64, in.ib[i]) + cast(i64, in.ua[i]), cast(i64, in.fa[i]),
            (cast(i64, in.ia[i]) << 20) >> 3, bitcast(i64, cast(u64, in.fb[i])),
            cast(i64, in.ia[i]) & cast(i64, in.ub[i])};
  });
  values(out, caps, "doubles", lanes, f64, [](const Inputs& in, const V& i) -> std::vector<V> {
    return {cast(f64, in.fa[i]) / cast(f64, in.ua[i]), min(cast(f64, in.fa[i]), cast(f64, in.fb[i])),
            select(in.fa[i] < in.fb[i], cast(f64, in.ia[i]), V(0.25)), cast(f64, cast(u64, in.ua[i]) << 20)};
  });
}

// How an index becomes loads and stores: plain, under a lane mask, under one known at build time, and under one of
// data.
void patterns(std::vector<TextCase>& out, const Caps& caps, uint32_t lanes) {
  const std::vector<std::function<V(const V&)>> all = {[](const V& l) { return l; },
                                                       [](const V& l) { return l * 2; },
                                                       [](const V& l) { return l * 4 + 1; },
                                                       [](const V& l) { return l / 8; },
                                                       [](const V& l) { return l % 4; },
                                                       [](const V& l) { return 63 - l; },
                                                       [](const V& l) { return l / 4 * 64 + l % 4; },
                                                       [](const V& l) { return (l * l) & 63; },
                                                       [](const V& l) { return l * 0 + 5; },
                                                       [](const V& l) { return l % 4 * 16 + l / 4; }};
  const uint32_t n = lanes * kGroups;
  for (const size_t p : {0u, 1u, 3u, 5u, 7u, 9u}) {  // a driver's compiler takes its time
    const std::string name = "pattern" + std::to_string(p);
    B b(name, lanes, caps);
    Buffer x = buffer("x", f32), g = buffer("g", u32), y = buffer("y", f32, write), h = buffer("h", f32, write),
           c = buffer("c", u32, write);
    const V l = lane(), at = all[p](l) + group() * 64, to = group() * static_cast<int>(lanes) + l;
    for (int mask = 0; mask < 4; ++mask) {
      const auto body = [&] {
        const V row = to + mask * static_cast<int>(n);
        y.store(row, x[at]), h.store(row, x.as(f16)[at]),
            c.store(row, x.as(u8)[at] + bitcast(u32, cast(i32, x.as(i8)[at + 1])) + x.as(u16)[at]);
      };
      if (mask == 0) body();
      if (mask == 1) If(to < dim("n"), body);
      if (mask == 2) If(l < 3, body);
      if (mask == 3) If((g[to] & 1) == 1, body);
    }
    std::vector<std::byte> data((64 * 40 + 64 * kGroups) * 4);
    Random r(p + 1);
    for (auto& d : data) d = static_cast<std::byte>(r.below(120));  // no NaN in any type
    std::vector<uint32_t> bits(n);
    for (auto& v : bits) v = r.next();
    const std::vector<std::byte> rows(n * 4 * 4);
    add(out, name, b.finish(), {data, bytes_of(bits), rows, rows, rows}, {lanes + lanes / 2 + 1}, kGroups);
  }
  for (const size_t p : {0u, 1u, 9u}) {
    const std::string name = "stores" + std::to_string(p);
    B b(name, lanes, caps);
    Buffer x = buffer("x", u32), y = buffer("y", f32, write), h = buffer("h", f16, write), c = buffer("c", i8, write),
           w = buffer("w", u32, write);
    const V l = lane(), from = group() * static_cast<int>(lanes) + l, v = x[from];
    for (int mask = 0; mask < 4; ++mask) {
      const V at = all[p](l) + group() * 256 + mask * 256 * static_cast<int>(kGroups);
      const auto body = [&] {
        y.store(at, cast(f32, v & 1023)), h.store(at, cast(f32, v & 1023)), c.store(at, bitcast(i32, v));
        w.as(f32).store(at, cast(f32, v)), w.store(at + 256 * 4 * static_cast<int>(kGroups), v);
      };
      if (mask == 0) body();
      if (mask == 1) If(from < dim("n"), body);
      if (mask == 2) If(l == 3, body);
      if (mask == 3) If((v & 4) != 0, body);
    }
    std::vector<uint32_t> bits(n);
    Random r(p + 1);
    for (auto& word : bits) word = r.next();
    const size_t places = 256 * 4 * kGroups;
    add(out, name, b.finish(),
        {bytes_of(bits), std::vector<std::byte>(places * 4), std::vector<std::byte>(places * 2),
         std::vector<std::byte>(places), std::vector<std::byte>(places * 8)},
        {lanes + 5}, kGroups);
  }
}

void wide_views(std::vector<TextCase>& out, const Caps& caps, uint32_t lanes) {
  const auto n = static_cast<size_t>(lanes) * kGroups;
  for (int width : {2, 4}) {
    const std::string name = "wide" + std::to_string(width);
    B b(name, lanes, caps);
    Buffer x = buffer("x", f32, read, {width, false}), y = buffer("y", f32, write, {width, false}),
           z = buffer("z", u32, write), h = buffer("h", f16, write, {width, false});
    const V i = group() * static_cast<int>(lanes) + lane();
    If(i < dim("n"), [&] {
      const Parts p = x.load(i);
      std::vector<V> v;
      for (int k = 0; k < width; ++k) v.push_back(p[width - 1 - k] + p[0]);
      y.store(i, v);
      h.store(i, v);
      z.store(i, bitcast(u32, v[0]));
      z.as(u32, 2).store(i + static_cast<int>(n), {bitcast(u32, v[1]), lane()});
    });
    std::vector<float> data(n * static_cast<size_t>(width));
    Random r(3);
    for (float& d : data) d = r.real();
    add(out, name, b.finish(),
        {bytes_of(data), std::vector<std::byte>(data.size() * 4), std::vector<std::byte>(n * 4 * 4),
         std::vector<std::byte>(data.size() * 2)},
        {static_cast<uint32_t>(n) - 3}, kGroups);
  }
}

void workgroup(std::vector<TextCase>& out, const Caps& caps, uint32_t lanes) {
  std::vector<float> data(lanes * kGroups);
  Random r(lanes);
  for (auto& v : data) v = std::floor(r.real() * 64);  // whole numbers: sums are exact in every order
  add(out, "shared", workgroup_kernel(lanes, caps), {bytes_of(data), std::vector<std::byte>(lanes * kGroups * 4)}, {},
      kGroups);
}

// Reductions over whatever subgroups there are, and what a lane knows about its own: whole numbers, as the order is
// open.
void subgroups(std::vector<TextCase>& out, const Caps& caps, uint32_t lanes) {
  const uint32_t n = lanes * kGroups;
  const auto kernel = [&](const std::string& name,
                          const std::function<V(const Buffer&, const Buffer&, const V&)>& body) {
    B b(name, lanes, caps);
    Buffer x = buffer("x", i32), f = buffer("f", f32), y = buffer("y", i32, write);
    const V i = group() * static_cast<int>(lanes) + lane();
    y.store(i, body(x, f, i));
    std::vector<int32_t> data(n);
    std::vector<float> reals(n);
    Random r(lanes);
    for (uint32_t k = 0; k < n; ++k)
      data[k] = static_cast<int32_t>(r.next()), reals[k] = std::floor(r.real() * 64) - 1000.f;
    add(out, name + "_" + std::to_string(lanes), b.finish(),
        {bytes_of(data), bytes_of(reals), std::vector<std::byte>(n * 4)}, {}, kGroups);
  };
  kernel("reduce", [](const Buffer& x, const Buffer& f, const V& i) {
    const V sum = subgroup_add(x[i]), least = subgroup_min(x[i]), most = subgroup_max(bitcast(u32, x[i]));
    return sum ^ least ^ bitcast(i32, most) ^ cast(i32, subgroup_add(f[i])) ^ cast(i32, subgroup_max(f[i])) ^
           cast(i32, subgroup_min(f[i]));
  });
  kernel("subgroup_ids",
         [](const Buffer&, const Buffer&, const V&) { return bitcast(i32, subgroup_id() * 64 + subgroup_count()); });
  kernel("subgroup_lanes", [](const Buffer&, const Buffer&, const V&) { return bitcast(i32, subgroup_lane()); });
}

}  // namespace

std::vector<TextCase> text_cases(const Caps& caps, uint32_t random) {
  std::vector<TextCase> out;
  const uint32_t lanes = std::min(caps.max_lanes, 32u);
  ops(out, caps, lanes);
  if (caps.byte_storage && caps.f16_storage) patterns(out, caps, lanes);
  wide_views(out, caps, lanes);
  add(out, "control", control_kernel(lanes, caps), control_bytes(lanes), {5}, kGroups);
  workgroup(out, caps, lanes);
  if (caps.subgroup.max > 1 && !caps.lockstep) {
    for (const uint32_t count : {8u, 24u, 64u}) {
      if (count <= caps.max_lanes) subgroups(out, caps, count);
    }
  }
  if (!caps.byte_storage || !caps.f16_storage) return out;
  for (uint64_t seed = 1; seed <= random; ++seed) {
    RandomKernel maker(seed, caps);
    if ((maker.lanes() & (maker.lanes() - 1)) != 0) continue;
    auto kernel = maker.make();
    add(out, "random" + std::to_string(seed), std::move(kernel), random_inputs(seed, maker.lanes() * 5),
        {static_cast<uint32_t>(seed % 7)}, 5);
  }
  return out;
}

}  // namespace tern::test
