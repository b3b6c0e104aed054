// OpenCL C for devices of type CPU: a work-item is a workgroup, its lanes are vectors of up to 16. Values that are
// equal in all lanes stay scalar; where lanes differ in control, those that are off keep their variables, load from the
// buffer's first element and store nothing. Barriers vanish, workgroup memory is an array of the work-item.
#include <functional>
#include <map>

#include "emit/text/dialects/opencl.h"
#include "kir/eval.h"

namespace tern::emit {
namespace {

using kir::Op;
using kir::Type;

constexpr uint32_t kPadding = 16;  // elements behind an array that a vector may reach

std::string list(uint32_t n, const std::function<std::string(uint32_t)>& item, const char* between = ", ") {
  std::string out;
  for (uint32_t i = 0; i < n; ++i) out += (i == 0 ? "" : between) + item(i);
  return out;
}
std::string lane_of(const std::string& v, uint32_t i) { return v + ".s" + "0123456789abcdef"[i]; }

class LaneVectors final : public Writer {
 public:
  LaneVectors(const Dialect& d, const kir::Kernel& k)
      : Writer(d, k), width_(std::min(k.lanes, 16u)), chunks_(k.lanes / width_) {}

 private:
  // Where a varying u32 is a uniform base and known distances from it.
  struct Pattern {
    std::string base;
    std::vector<uint64_t> lanes;
    bool grows = true;  // no subtraction: what lies before a lane that is on is there too
  };
  struct Mask {
    std::vector<std::string> lanes, all, any;  // by chunk; empty: every lane is on
    std::vector<uint64_t> known;               // by lane, where it does not depend on data
  };

  bool varies(Ref r) const { return !uniform_.uniform(r); }
  std::string part(Ref r, uint32_t c) const { return name(r) + "_" + std::to_string(c); }

  // ---- spellings over vectors, while a statement is written for one chunk
  std::string vector(std::string_view word) const { return c_vector(word, static_cast<int>(width_)); }
  std::string typed(Type t) const override { return !wide_ ? type(t) : vector(type(t == kir::b1 ? kir::i32 : t)); }
  std::string constant(Type t, uint64_t bits) const override {
    if (!wide_) return number(t, bits);
    return "(" + typed(t) + ")(" + (t == kir::b1 ? std::string(bits ? "-1" : "0") : number(t, bits)) + ")";
  }
  std::string cast(Type to, Type from, const std::string& a) const override {
    if (!wide_ || from == kir::b1) return Writer::cast(to, from, a);
    if (to == from) return a;
    if (!kir::is_float(from) || !kir::is_int(to)) return "convert_" + typed(to) + "(" + a + ")";
    return "convert_" + typed(to) + "_sat(select((" + typed(from) + ")(0), " + a + ", " + a + " == " + a + "))";
  }
  std::string select(Type t, const std::string& a, const std::string& b, const std::string& c) const override {
    if (!wide_) return Writer::select(t, a, b, c);
    return "select(" + c + ", " + b + ", " + (kir::is_wide64(t) ? "convert_" + vector("long") + "(" + a + ")" : a) +
           ")";
  }
  std::string compare(std::string_view op, Type of, const std::string& a, const std::string& b) const override {
    const std::string text = Writer::compare(op, of, a, b);
    return wide_ && kir::is_wide64(of) ? "convert_" + vector("int") + "(" + text + ")" : text;
  }
  std::string logic(Op op, const std::string& a, const std::string& b) const override {
    if (!wide_) return Writer::logic(op, a, b);
    const std::string_view word = op == Op::bit_and ? " & " : op == Op::bit_or ? " | " : " ^ ";
    if (op == Op::logic_not) return "~" + a;
    return op == Op::eq ? "~(" + a + " ^ " + b + ")" : a + std::string(word) + b;
  }
  std::string splat(Ref r) const {
    const Node& n = at(r);
    if (n.op == Op::constant) return constant(n.type, n.imm);
    return "(" + typed(n.type) + ")(" + (n.type == kir::b1 ? "-(int)" : "") + value(r) + ")";
  }
  std::string chunk(Ref r, uint32_t c) const {
    if (r == kir::kNone) return {};
    if (!varies(r)) return splat(r);
    if (at(r).op == Op::lane || at(r).op == Op::subgroup_lane)
      return "(" + vector("uint") + ")(" + list(width_, [&](uint32_t i) { return number(kir::u32, c * width_ + i); }) +
             ")";
    return part(r, c);
  }
  void set(Ref r, uint32_t c, const std::string& text, std::string_view how) {
    line(fill(how, {{'t', typed(at(r).type)}, {'n', part(r, c)}, {'a', text}}));
  }
  template <class F>
  void each(Ref r, F&& text) {
    wide_ = true;
    for (uint32_t c = 0; c < chunks_; ++c) set(r, c, text(c), d_.constant);
    wide_ = false;
  }

  // ---- addresses
  const std::optional<Pattern>& pattern(Ref r) {
    if (const auto known = patterns_.find(r); known != patterns_.end()) return known->second;
    auto found = find_pattern(r);
    return patterns_[r] = std::move(found);
  }
  std::optional<Pattern> find_pattern(Ref r) {
    const Node& n = at(r);
    if (n.op == Op::lane || n.op == Op::subgroup_lane) return own([](uint64_t l) { return l; });
    if (n.op == Op::constant) return own([&](uint64_t) { return n.imm; });
    if (!varies(r)) return Pattern{value(r), std::vector<uint64_t>(k_.lanes, 0)};
    if ((n.type != kir::u32 && n.type != kir::b1) || kir::op_info(n.op).cls != kir::OpClass::pure || n.op == Op::part ||
        n.b == kir::kNone || n.c != kir::kNone)
      return std::nullopt;
    const std::optional<Pattern> a = pattern(n.a), b = pattern(n.b);
    if (!a || !b) return std::nullopt;
    Pattern out = *a;
    out.grows = a->grows && b->grows && n.op != Op::sub;
    for (size_t l = 0; l < out.lanes.size(); ++l) {
      if (!kir::eval(n.op, n.type, at(n.a).type, a->lanes[l], b->lanes[l], 0, &out.lanes[l])) return std::nullopt;
    }
    if (a->base.empty() && b->base.empty()) return out;
    if (n.type != kir::u32) return std::nullopt;
    const std::string left = a->base.empty() ? "0u" : a->base, right = b->base.empty() ? "0u" : b->base;
    if (n.op == Op::add || n.op == Op::sub) {
      out.base = b->base.empty() ? left : "(" + left + (n.op == Op::add ? " + " : " - ") + right + ")";
      return out;
    }
    const bool by_constant = at(n.b).op == Op::constant, of_constant = at(n.a).op == Op::constant;
    if (n.op == Op::shl && by_constant)
      out.base = "(" + left + " << " + value(n.b) + ")";
    else if (n.op == Op::mul && (by_constant || of_constant))
      out.base = "(" + (by_constant ? left : right) + " * " + value(by_constant ? n.b : n.a) + ")";
    else
      return std::nullopt;
    return out;
  }
  Pattern own(const std::function<uint64_t(uint64_t)>& f) const {
    Pattern p;
    for (uint32_t l = 0; l < k_.lanes; ++l) p.lanes.push_back(f(l));
    return p;
  }
  // The distance of a chunk's first lane, where its lanes are neighbours.
  std::optional<std::string> run(const std::optional<Pattern>& p, uint32_t c) const {
    if (!p) return std::nullopt;
    for (uint32_t i = 1; i < width_; ++i) {
      if (p->lanes[c * width_ + i] != p->lanes[c * width_] + i) return std::nullopt;
    }
    return (p->base.empty() ? "" : p->base + " + ") + number(kir::u32, p->lanes[c * width_]);
  }
  struct Memory {
    std::string pointer;           // to elements
    Type held;                     // as declared: words may be seen as another type of their size
    uint32_t step = 1, first = 0;  // elements of a wide one
  };
  Memory memory(const Node& n) const {
    if (n.op == Op::wg_load || n.op == Op::wg_store) return {"s" + std::to_string(n.imm), k_.arrays[n.imm].type};
    const kir::View& v = k_.views[n.imm];
    const Type declared = storage(v.binding).type,
               held = kir::type_bytes(v.type) == 4 && kir::type_bytes(declared) == 4 ? declared : v.type;
    std::string p = "p" + std::to_string(v.binding);
    if (held != declared) p = "((" + pointer_to(v.binding, type(held)) + ")" + p + ")";
    return {std::move(p), held, v.width, 0};
  }
  // Indices of a chunk: a vector; of lanes that are off 0, which is always there.
  std::string indices(const Memory& m, Ref index, uint32_t c) const {
    std::string i = chunk(index, c);
    if (m.step > 1) i = "(" + i + " * " + number(kir::u32, m.step) + " + " + number(kir::u32, m.first) + ")";
    return mask_.lanes.empty() ? i : "select((" + vector("uint") + ")(0u), " + i + ", " + mask_.lanes[c] + ")";
  }
  // Elements as they lie to values, and back; halves are values already.
  std::string convert(Type from, Type to, const std::string& v) const {
    if (from == kir::f16 || to == kir::f16 || from == to) return v;
    return (kir::type_bytes(from) == kir::type_bytes(to) ? "as_" : "convert_") + vector(type(to)) + "(" + v + ")";
  }
  // Neighbours are loaded together, also where some of them are off: behind what a lane that is on may read lies memory
  // of the same buffer or array.
  std::string load_chunk(const Node& n, const Memory& m, uint32_t c) {
    const bool half = m.held == kir::f16;
    const std::string values = vector(half ? "float" : type(m.held)), w = std::to_string(width_);
    const std::optional<Pattern>& p = pattern(n.a);
    const auto many = m.step == 1 && (mask_.lanes.empty() || (p && p->grows)) ? run(p, c) : std::nullopt;
    if (many) {
      const std::string together = (half ? "vload_half" : "vload") + w + "(0, " + m.pointer + " + (" + *many + "))";
      return convert(m.held, n.type,
                     mask_.lanes.empty() ? together : mask_.any[c] + " ? " + together + " : (" + values + ")(0)");
    }
    const std::string i = "i" + std::to_string(serial_++);
    line("const " + vector("uint") + " " + i + " = " + indices(m, n.a, c) + ";");
    const auto one = [&](uint32_t l) {
      return half ? "vload_half(" + lane_of(i, l) + ", " + m.pointer + ")" : m.pointer + "[" + lane_of(i, l) + "]";
    };
    return convert(m.held, n.type, "(" + values + ")(" + list(width_, one) + ")");
  }
  void load(Ref r) {
    const Node& n = at(r);
    if (!varies(r)) return Writer::statement(r);
    Memory m = memory(n);
    for (uint32_t p = 0; p < n.width; ++p) {
      m.first = p;
      wide_ = true;
      for (uint32_t c = 0; c < chunks_; ++c) {
        const std::string text = load_chunk(n, m, c);
        line(fill(
            d_.constant,
            {{'t', typed(n.type)}, {'n', part(r, c) + (n.width > 1 ? "_" + std::to_string(p) : "")}, {'a', text}}));
      }
      wide_ = false;
    }
  }
  void store_chunk(const Node& n, const Memory& m, Ref what, uint32_t c) {
    const bool half = m.held == kir::f16;
    const auto many = m.step == 1 ? run(pattern(n.a), c) : std::nullopt;
    const std::string id = std::to_string(serial_++), x = "x" + id, i = "i" + id, w = std::to_string(width_),
                      scalar = half ? "float" : type(m.held);
    const std::string place = many ? m.pointer + " + (" + *many + ")" : "";
    line("const " + vector(scalar) + " " + x + " = " + convert(at(what).type, m.held, chunk(what, c)) + ";");
    if (many && n.op == Op::wg_store) {
      const std::string old = "vload" + w + "(0, " + place + ")";
      return line("vstore" + w + "(" + (mask_.lanes.empty() ? x : select(at(what).type, mask_.lanes[c], x, old)) +
                  ", 0, " + place + ");");
    }
    const std::string together = (half ? "vstore_half" + w + "_rte(" : "vstore" + w + "(") + x + ", 0, " + place + ");";
    if (many && mask_.lanes.empty()) return line(together);
    const auto one = [&](const std::string& value, const std::string& index) {
      return half ? "vstore_half_rte(" + value + ", " + index + ", " + m.pointer + ");"
                  : m.pointer + "[" + index + "] = " + value + ";";
    };
    if (!mask_.known.empty()) return store_known(one, x, indices(m, n.a, c), i, c);
    if (many) line("if (" + mask_.all[c] + ") " + together);
    line(std::string(many ? "else " : "") + "{");
    line("  " + scalar + " t" + x + "[" + w + "]; uint t" + i + "[" + w + "];");
    line("  vstore" + w + "(" + x + ", 0, t" + x + "); vstore" + w + "(" + indices(m, n.a, c) + ", 0, t" + i + ");");
    if (!mask_.lanes.empty()) line("  int t[" + w + "]; vstore" + w + "(" + mask_.lanes[c] + ", 0, t);");
    text_ += "#pragma nounroll\n";
    line("  for (int l = 0; l < " + w + "; ++l) " + (mask_.lanes.empty() ? "" : "if (t[l]) ") +
         one("t" + x + "[l]", "t" + i + "[l]"));
    line("}");
  }
  void store_known(const std::function<std::string(const std::string&, const std::string&)>& one, const std::string& x,
                   const std::string& indices, const std::string& i, uint32_t c) {
    bool any = false;
    for (uint32_t l = 0; l < width_; ++l) {
      if (mask_.known[c * width_ + l] == 0) continue;
      if (!any) line("const " + vector("uint") + " " + i + " = " + indices + ";");
      any = true;
      line(one(lane_of(x, l), lane_of(i, l)));
    }
  }
  void store(Ref r) {
    const Node& n = at(r);
    const Node& what = at(n.b);
    if (!varies(n.a) && !varies(n.b)) return Writer::statement(r);
    Memory m = memory(n);
    wide_ = true;
    for (uint32_t c = 0; c < chunks_; ++c) {
      m.first = 0;
      if (what.op != Op::tuple)
        store_chunk(n, m, n.b, c);
      else
        kir::each_operand(what, [&](Ref o) { store_chunk(n, m, o, c), ++m.first; });
    }
    wide_ = false;
  }

  // ---- statements
  void branch(Ref r) {
    const Node& n = at(r);
    if (!varies(n.a)) return Writer::statement(r);
    const Mask before = mask_;
    Mask inner;
    if (const auto& lanes = pattern(n.a); lanes && (before.lanes.empty() || !before.known.empty())) {
      inner.known = lanes->lanes;
      for (size_t l = 0; l < before.known.size(); ++l) inner.known[l] &= before.known[l];
    }
    const std::string id = std::to_string(serial_++);
    wide_ = true;
    for (uint32_t c = 0; c < chunks_; ++c) {
      const std::string own = id + "_" + std::to_string(c);
      inner.lanes.push_back("m" + own), inner.all.push_back("f" + own), inner.any.push_back("a" + own);
      line("const " + vector("int") + " m" + own + " = " + chunk(n.a, c) +
           (before.lanes.empty() ? "" : " & " + before.lanes[c]) + ";");
      line("const int f" + own + " = all(m" + own + "), a" + own + " = any(m" + own + ");");
    }
    wide_ = false;
    open("if (" + list(chunks_, [&](uint32_t c) { return inner.any[c]; }, " || ") + ") {");
    mask_ = std::move(inner);
    block(n.body);
    mask_ = before;
    close();
  }
  // In the order of ir.h: the upper half onto the lower one.
  std::string halved(Ref r) {
    const Node& n = at(r);
    const auto join = [&](const std::string& a, const std::string& b, uint32_t w) {
      const std::string v = "x" + std::to_string(serial_++), t = type(n.type) + (w == 1 ? "" : std::to_string(w));
      const std::string test = "(" + a + (n.op == Op::subgroup_min ? " < " : " > ") + b + ")";
      line("const " + t + " " + v + " = " +
           (n.op == Op::subgroup_add ? a + " + " + b
            : w == 1                 ? test + " ? " + a + " : " + b
                                     : "select(" + b + ", " + a + ", " + test + ")") +
           ";");
      return v;
    };
    std::vector<std::string> v;
    wide_ = true;
    for (uint32_t c = 0; c < chunks_; ++c) v.push_back("(" + chunk(n.a, c) + ")");
    wide_ = false;
    for (; v.size() > 1; v.resize(v.size() / 2)) {
      for (size_t i = 0; i < v.size() / 2; ++i) v[i] = join(v[i], v[i + v.size() / 2], width_);
    }
    for (uint32_t w = width_; w > 1; w /= 2) v[0] = join(v[0] + ".lo", v[0] + ".hi", w / 2);
    return v[0];
  }
  void statement(Ref r) override {
    const Node& n = at(r);
    switch (n.op) {
      case Op::branch: return branch(r);
      case Op::load:
      case Op::wg_load: return load(r);
      case Op::store:
      case Op::wg_store: return store(r);
      case Op::barrier: return;
      case Op::subgroup_add:
      case Op::subgroup_min:
      case Op::subgroup_max: {
        const std::string all = halved(r);
        return declare(r, all);
      }
      default: break;
    }
    if (n.op == Op::set && varies(n.a)) {
      wide_ = true;
      for (uint32_t c = 0; c < chunks_; ++c) {
        const std::string v = chunk(n.b, c), old = part(n.a, c);
        line(old + " = " + (mask_.lanes.empty() ? v : select(at(n.b).type, mask_.lanes[c], v, old)) + ";");
      }
      wide_ = false;
      return;
    }
    if (!varies(r) || n.op == Op::tuple || kir::op_info(n.op).cls == kir::OpClass::control) return tuple_or(r);
    if (n.op == Op::part) return each(r, [&](uint32_t c) { return part(n.a, c) + "_" + std::to_string(n.imm); });
    if (n.op == Op::var) {
      wide_ = true;
      for (uint32_t c = 0; c < chunks_; ++c) set(r, c, chunk(n.a, c), d_.variable);
      wide_ = false;
      return;
    }
    if (n.op == Op::get) return each(r, [&](uint32_t c) { return part(n.a, c); });
    if (n.op == Op::dot4)  // mostly of codes that differ between lanes and activations that do not
      return each(r, [&](uint32_t c) {
        return "tern_dot4x" + std::to_string(width_) + "(" + chunk(n.a, c) + ", " + chunk(n.b, c) + ", " +
               chunk(n.c, c) + ")";
      });
    if (n.op == Op::half_to_f32 || n.op == Op::f32_to_half)
      return each(r, [&](uint32_t c) {
        return (n.op == Op::half_to_f32 ? "tern_f32x" : "tern_halfx") + std::to_string(width_) + "(" + chunk(n.a, c) +
               ")";
      });
    each(r, [&](uint32_t c) { return pure(r, chunk(n.a, c), divisor(n, c), chunk(n.c, c)); });
  }
  // A tuple of varying values is written by its store.
  void tuple_or(Ref r) {
    bool any = false;
    if (at(r).op == Op::tuple) kir::each_operand(at(r), [&](Ref o) { any = any || varies(o); });
    if (!any) Writer::statement(r);
  }
  // Lanes that are off do not divide.
  std::string divisor(const Node& n, uint32_t c) const {
    std::string b = n.op == Op::shl || n.op == Op::shr ? shift(n, c) : chunk(n.b, c);
    if ((n.op != Op::div && n.op != Op::rem) || kir::is_float(n.type) || mask_.lanes.empty() ||
        at(n.b).op == Op::constant)
      return b;
    return "(" + select(n.type, mask_.lanes[c], b, constant(n.type, 1)) + ")";
  }
  std::string shift(const Node& n, uint32_t c) const {
    return kir::is_wide64(n.type) ? "convert_" + typed(kir::u64) + "(" + chunk(n.b, c) + ")" : chunk(n.b, c);
  }

  const uint32_t width_, chunks_;
  bool wide_ = false;
  Mask mask_;
  uint32_t serial_ = 0;
  std::map<Ref, std::optional<Pattern>> patterns_;
};

// Halves of a vector, as $ of them.
constexpr std::string_view kHalves = R"(#ifndef TERN_HALF$n
#define TERN_HALF$n
static inline float$n tern_f32x$n(uint$n bits) { ushort$n h = convert_ushort$n(bits); return vload_half$n(0, (const half*)&h); }
static inline uint$n tern_halfx$n(float$n x) { ushort$n h; vstore_half$n_rte(x, 0, (half*)&h); return convert_uint$n(h); }
#endif
)";

constexpr std::string_view kDot4 = R"(#ifndef TERN_DOT4X$n
#define TERN_DOT4X$n
static inline int$n tern_dot4x$n(int$n a, uint$n b, uint$n c) {
  return a + as_int$n(b & 255u) * (as_int$n(c << 24u) >> 24) + as_int$n(b >> 8u & 255u) * (as_int$n(c << 16u) >> 24) +
         as_int$n(b >> 16u & 255u) * (as_int$n(c << 8u) >> 24) + as_int$n(b >> 24u) * (as_int$n(c) >> 24);
}
#endif
)";

std::string head(const Writer& w) {
  const kir::Kernel& k = w.kernel();
  std::string text = "#pragma OPENCL FP_CONTRACT OFF\n";
  const std::string width = std::to_string(std::min(k.lanes, 16u));
  if (w.uses(Op::dot4)) text += fill(kDot4, {{'n', ""}}) + (k.lanes > 1 ? fill(kDot4, {{'n', width}}) : "");
  if (w.uses(Op::half_to_f32) || w.uses(Op::f32_to_half)) {
    text += kOpenclHalf;
    if (k.lanes > 1) text += fill(kHalves, {{'n', width}});
  }
  // A function of its own: PoCL writes each kernel three times over, and what a kernel calls once.
  const OpenclArguments arguments = opencl_arguments(w);
  const std::string comma = arguments.declared.empty() ? "" : ", ";
  const std::string body =
      "static __attribute__((noinline)) void " + w.entry() + "_body(" + arguments.declared + comma + "uint group)";
  text += body + ";\n__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void " + w.entry() + "(" +
          arguments.declared + ") {\n";
  text += "  " + w.entry() + "_body(" + arguments.passed + comma + "(uint)get_group_id(0));\n}\n" + body + " {\n" +
          arguments.moved;
  text += "  const uint lane = 0, subgroup_id = 0, subgroup_lane = 0, subgroup_count = 1;\n";
  for (size_t i = 0; i < k.arrays.size(); ++i) {
    text += "  __attribute__((aligned(64))) " + w.type(k.arrays[i].type) + " s" + std::to_string(i) + "[" +
            std::to_string(k.arrays[i].count + kPadding) + "];\n";
  }
  return text;
}

class Refused final : public Writer {
 public:
  using Writer::Writer;
  void statement(Ref r) override { refuse(r, "takes a power of two of lanes"); }
};

std::unique_ptr<Writer> writer(const Dialect& d, const kir::Kernel& k) {
  if ((k.lanes & (k.lanes - 1)) != 0) return std::make_unique<Refused>(d, k);
  if (k.lanes == 1) return std::make_unique<Writer>(d, k);
  return std::make_unique<LaneVectors>(d, k);
}

// Single values are written as for a lane; a product of bytes has a function of its own here.
std::vector<OpRow> rows() {
  std::vector<OpRow> all(kOpenclDialect.ops.begin(), kOpenclDialect.ops.end());
  all.push_back({Op::dot4, kir::none, "tern_dot4x($a, $b, $c)"});
  return all;
}
const std::vector<OpRow> kRows = rows();

Dialect dialect() {
  Dialect d = kOpenclDialect;
  d.name = "opencl-vectors";
  d.ops = kRows;
  d.head = head;
  d.writer = writer;
  d.work_items = [](const kir::Kernel&) { return 1u; };
  return d;
}

}  // namespace

const Dialect kOpenclVectorsDialect = dialect();

}  // namespace tern::emit
