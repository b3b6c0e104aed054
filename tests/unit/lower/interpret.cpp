#include "interpret.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "graph/reference.h"

namespace tern::test {
namespace {

struct Num {
  double f = 0;
  int64_t i = 0;
};
bool floats(DType t) { return is_float(t); }

template <class T>
T get(const std::byte* p, int64_t n) {
  T v;
  std::memcpy(&v, p + n * static_cast<int64_t>(sizeof(T)), sizeof(T));
  return v;
}
template <class T>
void put(std::byte* p, int64_t n, T v) {
  std::memcpy(p + n * static_cast<int64_t>(sizeof(T)), &v, sizeof(T));
}

Num read(DType t, const std::byte* p, int64_t n) {
  switch (t) {
    case DType::f64: return {get<double>(p, n), 0};
    case DType::f32: return {get<float>(p, n), 0};
    case DType::f16: return {f16_to_f32(get<uint16_t>(p, n)), 0};
    case DType::i64: return {0, get<int64_t>(p, n)};
    case DType::i32: return {0, get<int32_t>(p, n)};
    case DType::u32: return {0, get<uint32_t>(p, n)};
    case DType::boolean: return {0, get<uint8_t>(p, n)};
    default: return {};
  }
}
void write(DType t, std::byte* p, int64_t n, Num v) {
  switch (t) {
    case DType::f64: return put(p, n, v.f);
    case DType::f32: return put(p, n, static_cast<float>(v.f));
    case DType::f16: return put(p, n, f32_to_f16(static_cast<float>(v.f)));
    case DType::i64: return put(p, n, v.i);
    case DType::i32: return put(p, n, static_cast<int32_t>(v.i));
    case DType::u32: return put(p, n, static_cast<uint32_t>(v.i));
    case DType::boolean: return put(p, n, static_cast<uint8_t>(v.i != 0));
    default: return;
  }
}

Num cast_to(Num v, DType from, DType to) {
  if (floats(from) == floats(to)) return floats(to) ? v : Num{0, wrap_to(to, v.i)};
  if (floats(to)) return {static_cast<double>(v.i), 0};
  if (to == DType::boolean) return {0, v.f != 0};
  if (std::isnan(v.f)) return {};
  const DTypeInfo& info = dtype_info(to);
  return {0, static_cast<int64_t>(std::clamp(std::trunc(v.f), info.lowest, std::min(info.highest, 9.2e18)))};
}

class Interpreter {
 public:
  Interpreter(const Problem& p, const DimTable& dims, std::span<const int64_t> symbols,
              std::span<std::byte* const> buffers)
      : p_(p), dims_(dims), symbols_(symbols), buffers_(buffers) {
    for (const Dim d : p.extent) extent_.push_back(size(d));
  }

  Status run() {
    for (const Operand& o : p_.operands) {
      if (!o.layout) return make_error(Code::internal, "an operand without layout");
    }
    switch (p_.family) {
      case Family::region: return region();
      case Family::reduce: return reduce();
      case Family::arg_reduce: return arg_reduce();
      case Family::norm: return norm();
      case Family::matmul: return matmul();
      case Family::gather: return gather();
      case Family::store: return store();
      case Family::convert: return convert();
      default: return make_error(Code::unsupported, "no such paper kernel");
    }
  }

 private:
  using Axes = std::vector<int64_t>;
  int64_t size(Dim d) const { return *dims_.eval(d, symbols_); }
  int64_t at(const IndexMap& m, const Axes& axes) const {
    int64_t n = size(m.offset);
    for (size_t a = 0; a < m.stride.size() && a < axes.size(); ++a) n += size(m.stride[a]) * axes[a];
    return n;
  }
  int64_t count(const Operand& o) const {
    int64_t n = 1;
    for (const Dim d : o.type.shape) n *= size(d);
    return n;
  }
  Num load(uint16_t operand, int64_t n) const {
    const Operand& o = p_.operands[operand];
    if (o.layout.def != &kActInt8) {
      if (n < 0 || n >= count(o)) return {std::numeric_limits<double>::quiet_NaN(), INT64_MIN};
      return read(o.type.dtype, buffers_[operand], n);
    }
    const int64_t k = size(o.type.shape.back()), row = n / k, c = n % k;
    const std::byte* base = buffers_[operand] + row * (k / 32 * 44);
    return {get<int8_t>(base, c) * static_cast<double>(get<float>(base + k, c / 32)), 0};
  }
  void save(uint16_t operand, int64_t n, Num v) {
    const Operand& o = p_.operands[operand];
    if (o.layout.def == &kActInt8)
      pending_[operand].resize(static_cast<size_t>(count(o))),
          pending_[operand][static_cast<size_t>(n)] = static_cast<float>(v.f);
    else if (n >= 0 && n < count(o))
      write(o.type.dtype, buffers_[operand], n, v);
  }
  // Blocks of 32 are made when a whole value is there.
  void flush() {
    for (uint16_t i = 0; i < pending_.size(); ++i) {
      const std::vector<float>& v = pending_[i];
      if (v.empty()) continue;
      const int64_t k = size(p_.operands[i].type.shape.back());
      for (int64_t b = 0; b < static_cast<int64_t>(v.size()) / 32; ++b) {
        float most = 0;
        for (int64_t j = 0; j < 32; ++j) most = std::max(most, std::fabs(v[static_cast<size_t>(b * 32 + j)]));
        const float scale = most / 127;
        std::byte* base = buffers_[i] + b * 32 / k * (k / 32 * 44);
        int32_t sum = 0, half = 0;
        for (int64_t j = 0; j < 32; ++j) {
          const auto q = static_cast<int8_t>(scale > 0 ? std::lround(v[static_cast<size_t>(b * 32 + j)] / scale) : 0);
          put(base, b * 32 % k + j, q);
          sum += q;
          if (j < 16) half += q;
        }
        put(base + k, b * 32 % k / 32, scale);
        put(base + k + k / 8, b * 32 % k / 32, sum);
        put(base + k + k / 4, b * 32 % k / 32, half);
      }
    }
  }

  std::vector<Num> eval(const ScalarExpr& e, const Axes& axes, std::span<const Num> acc) const {
    std::vector<Num> v;
    for (const ScalarExpr::Ins& i : e.code) {
      using Kind = ScalarExpr::Kind;
      switch (i.kind) {
        case Kind::load: v.push_back(load(e.loads[i.a].operand, at(e.loads[i.a].map, axes))); break;
        case Kind::accumulator: v.push_back(acc[i.a]); break;
        case Kind::constant: v.push_back({e.consts[i.a].f, e.consts[i.a].i}); break;
        case Kind::index: v.push_back(cast_to({0, axes[i.a]}, DType::i64, i.type)); break;
        case Kind::dim: v.push_back(cast_to({0, size(e.dims[i.a])}, DType::i64, i.type)); break;
        case Kind::op: v.push_back(apply(e, i, v)); break;
      }
    }
    return v;
  }
  static Num apply(const ScalarExpr& e, const ScalarExpr::Ins& i, const std::vector<Num>& v) {
    const ScalarRow& row = scalar_row(i.op);
    const DType from = e.code[i.a].type;
    const Num a = v[i.a], b = row.arity > 1 ? v[i.b] : Num{}, c = row.arity > 2 ? v[i.c] : Num{};
    if (i.op == ScalarOp::cast) return cast_to(a, from, i.type);
    if (i.op == ScalarOp::select) return a.i != 0 ? b : c;
    if (!floats(from)) return {0, wrap_to(i.type, row.i64(a.i, b.i, c.i))};
    const double f = row.f64(a.f, b.f, c.f);
    return floats(i.type) ? Num{f, 0} : Num{0, f != 0};
  }

  template <class F>
  static void walk(const Axes& extent, F&& f) {
    Axes axes(extent.size(), 0);
    if (std::any_of(extent.begin(), extent.end(), [](int64_t n) { return n == 0; })) return;
    for (;;) {
      f(axes);
      size_t a = extent.size();
      while (a > 0 && ++axes[a - 1] == extent[a - 1]) axes[--a] = 0;
      if (a == 0) return;
    }
  }
  IndexMap out_map(const Output& o, const std::vector<Dim>& space) const {
    if (!o.map.stride.empty()) return o.map;
    IndexMap m{o.map.offset, std::vector<Dim>(space.size())};
    int64_t step = 1;
    for (size_t a = space.size(); a-- > 0;) m.stride[a] = step, step *= size(space[a]);
    return m;
  }
  void leave(const Part& part, const Axes& axes, const std::vector<Dim>& space, std::span<const Num> acc) {
    const std::vector<Num> v =
        part.epilogue.empty() ? std::vector<Num>(acc.begin(), acc.end()) : eval(part.epilogue, axes, acc);
    for (const Output& o : part.outs)
      save(o.operand, at(out_map(o, space), axes), v[part.epilogue.empty() ? 0 : o.result]);
  }
  uint16_t role(Role r, int nth = 0) const {
    for (uint16_t i = 0; i < p_.operands.size(); ++i) {
      if (p_.operands[i].role == r && nth-- == 0) return i;
    }
    return 0xffff;
  }

  Status region() {
    walk(extent_, [&](const Axes& axes) {
      const std::vector<Num> v = eval(p_.prologue, axes, {});
      for (const Output& o : p_.parts[0].outs) save(o.operand, at(out_map(o, p_.extent), axes), v[o.result]);
    });
    return done();
  }
  Status reduce() {
    const auto& d = std::get<ReduceDesc>(p_.desc);
    const size_t kept = extent_.size() - d.reduced_axes;
    constexpr ScalarOp kFold[] = {ScalarOp::add, ScalarOp::mul,    ScalarOp::max,
                                  ScalarOp::min, ScalarOp::bit_or, ScalarOp::bit_and};
    const DType type = p_.prologue.code.back().type;
    const ScalarRow& row = scalar_row(kFold[static_cast<size_t>(d.kind)]);
    walk(Axes(extent_.begin(), extent_.begin() + static_cast<std::ptrdiff_t>(kept)), [&](const Axes& outer) {
      Num acc = start(d.kind, type);
      walk(Axes(extent_.begin() + static_cast<std::ptrdiff_t>(kept), extent_.end()), [&](const Axes& inner) {
        Axes axes = outer;
        axes.insert(axes.end(), inner.begin(), inner.end());
        const Num x = eval(p_.prologue, axes, {}).back();
        acc = floats(type) ? Num{row.f64(acc.f, x.f, 0), 0} : Num{0, wrap_to(type, row.i64(acc.i, x.i, 0))};
      });
      leave(p_.parts[0], outer, {p_.extent.begin(), p_.extent.begin() + static_cast<std::ptrdiff_t>(kept)}, {&acc, 1});
    });
    return done();
  }
  static Num start(ReduceKind kind, DType type) {
    const DTypeInfo& info = dtype_info(type);
    switch (kind) {
      case ReduceKind::prod: return {1, 1};
      case ReduceKind::all: return {1, 1};
      case ReduceKind::max: return {-INFINITY, floats(type) ? 0 : static_cast<int64_t>(info.lowest)};
      case ReduceKind::min: return {INFINITY, floats(type) ? 0 : static_cast<int64_t>(info.highest)};
      default: return {};
    }
  }
  Status arg_reduce() {
    const uint16_t x = role(Role::x);
    for (int64_t r = 0; r < extent_[0]; ++r) {
      Num best{0, 0};
      for (int64_t c = 1; c < extent_[1]; ++c) {
        const Num a = load(x, r * extent_[1] + c), b = load(x, r * extent_[1] + best.i);
        const double d = floats(p_.operands[x].type.dtype) ? a.f - b.f : static_cast<double>(a.i - b.i);
        if (std::get<ArgReduceDesc>(p_.desc).largest ? d > 0 : d < 0) best.i = c;
      }
      save(p_.parts[0].outs[0].operand, r, best);
    }
    return done();
  }
  Status norm() {
    const auto& d = std::get<NormDesc>(p_.desc);
    const int64_t n = extent_[1];
    const uint16_t weight = role(Role::weight), bias = role(Role::bias);
    for (int64_t r = 0; r < extent_[0]; ++r) {
      std::vector<double> x;
      for (int64_t c = 0; c < n; ++c)
        x.push_back(p_.prologue.empty() ? load(role(Role::x), r * n + c).f : eval(p_.prologue, {r, c}, {}).back().f);
      double sum = 0, shift = 0;
      if (d.kind == NormKind::layer) {
        for (const double v : x) shift += v / static_cast<double>(n);
      } else if (d.kind != NormKind::rms) {
        shift = *std::max_element(x.begin(), x.end());
      }
      const bool soft = d.kind == NormKind::softmax || d.kind == NormKind::log_softmax;
      for (const double v : x) sum += soft ? std::exp(v - shift) : (v - shift) * (v - shift) / static_cast<double>(n);
      for (int64_t c = 0; c < n; ++c) {
        const double v = x[static_cast<size_t>(c)] - shift;
        Num y{d.kind == NormKind::softmax ? std::exp(v) / sum
              : soft                      ? v - std::log(sum)
                                          : v / std::sqrt(sum + d.eps),
              0};
        if (weight != 0xffff) y.f *= load(weight, c).f;
        if (bias != 0xffff) y.f += load(bias, c).f;
        leave(p_.parts[0], {r, c}, p_.extent, {&y, 1});
      }
    }
    return done();
  }
  Status matmul() {
    const auto& d = std::get<MatmulDesc>(p_.desc);
    const int64_t batch = extent_[0], m = extent_[1], k = extent_[2];
    const uint16_t x = role(Role::x);
    for (const Part& part : p_.parts) {
      const int64_t n = size(part.n);
      walk({batch, m, n}, [&](const Axes& a) {
        std::vector<Num> acc;
        for (const uint16_t w : part.weights) {
          Num s;
          for (int64_t j = 0; j < k; ++j) {
            const int64_t base = d.batched_weight ? a[0] * n * k : 0;
            const Num u = load(x, (a[0] * m + a[1]) * k + j),
                      v = load(w, base + (d.weight_is_kn ? j * n + a[2] : a[2] * k + j));
            s.f += u.f * v.f, s.i += u.i * v.i;
          }
          acc.push_back(s);
        }
        leave(part, a, {p_.extent[0], p_.extent[1], part.n}, acc);
      });
    }
    return done();
  }
  Status gather() {
    const uint16_t data = role(Role::weight), index = role(Role::index), out = p_.parts[0].outs[0].operand;
    const Shape& shape = p_.operands[data].type.shape;
    const int64_t axis = size(shape[shape.size() - 2]);
    walk(extent_, [&](const Axes& a) {
      const int64_t row = load(index, a[1]).i, to = (a[0] * extent_[1] + a[1]) * extent_[2] + a[2];
      save(out, to, row < 0 || row >= axis ? Num{} : load(data, (a[0] * axis + row) * extent_[2] + a[2]));
    });
    return done();
  }
  Status store() {
    const uint16_t index = role(Role::index), x = role(Role::x);
    if (p_.operands[0].access != Access::update) return make_error(Code::internal, "a store does not update");
    const int64_t rows = size(p_.operands[0].type.shape[0]);
    walk(extent_, [&](const Axes& a) {
      const int64_t row = load(index, a[0]).i;
      if (row < 0 || row >= rows) return;
      save(0, row * extent_[1] + a[1],
           p_.prologue.empty() ? load(x, a[0] * extent_[1] + a[1]) : eval(p_.prologue, a, {}).back());
    });
    return done();
  }
  Status convert() {
    walk(extent_, [&](const Axes& a) { save(1, a[0] * extent_[1] + a[1], load(0, a[0] * extent_[1] + a[1])); });
    return done();
  }
  Status done() {
    flush();
    return ok();
  }

  const Problem& p_;
  const DimTable& dims_;
  std::span<const int64_t> symbols_;
  std::span<std::byte* const> buffers_;
  Axes extent_;
  std::vector<std::vector<float>> pending_ = std::vector<std::vector<float>>(p_.operands.size());
};

}  // namespace

Status interpret(const Problem& problem, const DimTable& dims, std::span<const int64_t> symbols,
                 std::span<std::byte* const> buffers) {
  return Interpreter(problem, dims, symbols, buffers).run();
}

}  // namespace tern::test
