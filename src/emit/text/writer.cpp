#include "emit/text/writer.h"

#include <bit>
#include <cmath>
#include <cstdio>

#include "emit/entry.h"

namespace tern::emit {

using kir::Op;
using kir::Type;
using kir::type_bytes;

std::string fill(std::string_view pattern, std::initializer_list<Fill> with) {
  std::string out;
  for (size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] != '$' || i + 1 == pattern.size()) {
      out += pattern[i];
      continue;
    }
    ++i;
    for (const Fill& f : with) {
      if (f.letter == pattern[i]) out += f.text;
    }
  }
  return out;
}

Type unsigned_twin(Type t) { return t == kir::i32 ? kir::u32 : t == kir::i64 ? kir::u64 : t; }

std::string c_vector(std::string_view type, int width) { return std::string(type) + std::to_string(width); }

std::unique_ptr<Writer> lane_writer(const Dialect& dialect, const kir::Kernel& kernel) {
  return std::make_unique<Writer>(dialect, kernel);
}
uint32_t lane_work_items(const kir::Kernel& kernel) { return kernel.lanes; }

std::string c_number(Type type, uint64_t bits) {
  char text[40];
  const auto real = [&](double v, int digits, const char* ending) -> std::string {
    std::snprintf(text, sizeof text, "%.*g", digits, v);
    std::string s = text;
    if (s.find_first_of(".e") == std::string::npos) s += ".0";
    return (std::signbit(v) ? "(" + s + ending + ")" : s + ending);
  };
  switch (type) {
    case kir::b1: return bits ? "true" : "false";
    case kir::i32:
      if (bits == 0x80000000u) return "(-2147483647 - 1)";
      std::snprintf(text, sizeof text, static_cast<int32_t>(bits) < 0 ? "(%d)" : "%d", static_cast<int32_t>(bits));
      return text;
    case kir::u32: std::snprintf(text, sizeof text, "%uu", static_cast<unsigned>(bits)); return text;
    case kir::i64: return "(long)" + std::to_string(bits) + "ul";
    case kir::u64: return std::to_string(bits) + "ul";
    case kir::f64: return real(std::bit_cast<double>(bits), 17, "");
    default: return real(static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(bits))), 9, "f");
  }
}

Writer::Writer(const Dialect& dialect, const kir::Kernel& kernel)
    : d_(dialect), k_(kernel), uniform_(kir::uniformity(kernel, kir::Strength::lockstep)), entry_(entry_name(kernel)) {}

Result<std::string> Writer::write() {
  text_ = d_.head(*this);
  block(0);
  text_ += "}\n";
  if (error_) return *error_;
  return std::move(text_);
}

// ---- names and lines

void Writer::line(const std::string& text) { text_ += std::string(static_cast<size_t>(depth_) * 2, ' ') + text + "\n"; }
void Writer::open(const std::string& text) {
  line(text);
  ++depth_;
}
void Writer::close() {
  --depth_;
  line("}");
}
void Writer::refuse(Ref r, std::string_view why) {
  if (error_) return;
  error_ = make_error(
      Code::unsupported, std::string(d_.name) + " " + std::string(why),
      "kernel " + k_.name + ", node " + std::to_string(r) + " (" + std::string(kir::op_info(at(r).op).name) + ")");
}

std::string Writer::type(Type t) const {
  for (const TypeRow& row : d_.types) {
    if (row.type == t) return std::string(row.name);
  }
  return "no_" + std::string(kir::type_name(t));  // compilers refuse it, should caps ever let it through
}

const OpRow* Writer::row(Op op, Type of) const {
  for (const OpRow& row : d_.ops) {
    if (row.op == op && (row.of == Type::none || row.of == of)) return &row;
  }
  return nullptr;
}

bool Writer::uses(Op op) const {
  for (const Node& n : k_.nodes) {
    if (n.op == op) return true;
  }
  return false;
}
bool Writer::uses_subgroups() const {
  for (const Op op :
       {Op::subgroup_id, Op::subgroup_lane, Op::subgroup_count, Op::subgroup_add, Op::subgroup_min, Op::subgroup_max}) {
    if (uses(op)) return true;
  }
  return false;
}
bool Writer::uses(Type type) const {
  for (const Node& n : k_.nodes) {
    if (n.type == type) return true;
  }
  return false;
}

std::string Writer::value(Ref r) const {
  const Node& n = at(r);
  switch (n.op) {
    case Op::constant: return number(n.type, n.imm);
    case Op::dim: return "d" + std::to_string(n.imm);
    case Op::lane:
    case Op::group:
    case Op::subgroup_id:
    case Op::subgroup_lane:
    case Op::subgroup_count: return std::string(kir::op_info(n.op).name);
    default: return name(r);
  }
}

void Writer::declare(Ref r, const std::string& text) {
  line(fill(d_.constant, {{'t', typed(at(r).type)}, {'n', name(r)}, {'a', text}}));
}

// ---- statements

void Writer::block(uint32_t index) {
  for (const Ref r : k_.blocks[index]) statement(r);
}

void Writer::statement(Ref r) {
  const Node& n = at(r);
  switch (kir::op_info(n.op).cls) {
    case kir::OpClass::leaf: return;
    case kir::OpClass::memory: return memory(r);
    case kir::OpClass::var: return variable(r);
    case kir::OpClass::control:
      open(n.op == Op::branch
               ? "if (" + value(n.a) + ") {"
               : fill(d_.loop, {{'t', type(n.type)}, {'n', name(r)}, {'a', value(n.a)}, {'b', value(n.b)}}));
      block(n.body);
      return close();
    case kir::OpClass::group: {
      const OpRow* how = row(n.op, n.type);
      if (how == nullptr) return refuse(r, "has no word for this");
      if (n.op == Op::barrier) return line(std::string(how->text));
      return declare(r, fill(how->text, {{'a', value(n.a)}}));
    }
    case kir::OpClass::pure: break;
  }
  if (n.op == Op::part) return declare(r, name(n.a) + "." + "xyzw"[n.imm]);
  if (n.op == Op::tuple) {
    std::string all;
    kir::each_operand(n, [&](Ref o) { all += (all.empty() ? "" : ", ") + value(o); });
    const std::string t = d_.vector(type(n.type), n.width);
    return line(fill(d_.constant, {{'t', t}, {'n', name(r)}, {'a', fill(d_.tuple, {{'t', t}, {'a', all}})}}));
  }
  declare(r, pure(r, value(n.a), n.b == kir::kNone ? "" : value(n.b), n.c == kir::kNone ? "" : value(n.c)));
}

void Writer::variable(Ref r) {
  const Node& n = at(r);
  if (n.op == Op::var) return line(fill(d_.variable, {{'t', typed(n.type)}, {'n', name(r)}, {'a', value(n.a)}}));
  if (n.op == Op::get) return declare(r, name(n.a));
  line(name(n.a) + " = " + value(n.b) + ";");
}

void Writer::memory(Ref r) {
  const Node& n = at(r);
  const std::string array = "s" + std::to_string(n.imm) + "[" + value(n.a) + "]";
  switch (n.op) {
    case Op::wg_load: return declare(r, array);
    case Op::wg_store: return line(array + " = " + value(n.b) + ";");
    case Op::load:
      if (n.width == 1) return declare(r, loaded(n));
      return line(fill(d_.constant, {{'t', d_.vector(type(n.type), n.width)}, {'n', name(r)}, {'a', loaded(n)}}));
    case Op::store: return line(stored(n));
    default: return;  // a prefetch is a hint
  }
}

// ---- values

std::string Writer::cast(Type to, Type from, const std::string& a) const {
  if (from == kir::b1)
    return select(to, a,
                  constant(to, to == kir::f32   ? 0x3f800000u
                               : to == kir::f64 ? 0x3ff0000000000000u
                                                : 1),
                  constant(to, 0));
  const bool saturates = kir::is_float(from) && kir::is_int(to);
  return fill(saturates ? d_.saturate : d_.cast, {{'t', typed(to)}, {'a', a}});
}
std::string Writer::select(Type, const std::string& a, const std::string& b, const std::string& c) const {
  return fill(d_.select, {{'a', a}, {'b', b}, {'c', c}});
}
std::string Writer::reinterpret(Type to, Type from, const std::string& a) const {
  return to == from ? a : fill(d_.reinterpret, {{'t', typed(to)}, {'a', a}});
}
std::string Writer::compare(std::string_view op, Type, const std::string& a, const std::string& b) const {
  return a + " " + std::string(op) + " " + b;
}
std::string Writer::logic(Op op, const std::string& a, const std::string& b) const {
  switch (op) {
    case Op::logic_not: return "!" + a;
    case Op::bit_and: return a + " && " + b;
    case Op::bit_or: return a + " || " + b;
    case Op::eq: return a + " == " + b;
    default: return a + " != " + b;
  }
}

// Signed sums, products and shifts wrap around.
std::string Writer::integer(Ref r, const std::string& a, const std::string& b) {
  const Type t = at(r).type;
  const auto both = [&](const char* op) {
    const Type u = d_.signed_wraps ? t : unsigned_twin(t);
    const std::string right = at(r).op == Op::shl ? b : reinterpret(u, t, b);
    const std::string text = reinterpret(u, t, a) + " " + op + " " + right;
    return u == t ? text : reinterpret(t, u, text);
  };
  switch (at(r).op) {
    case Op::add: return both("+");
    case Op::sub: return both("-");
    case Op::mul: return both("*");
    case Op::shl: return both("<<");
    case Op::shr: return a + " >> " + b;
    case Op::div: return a + " / " + b;
    case Op::rem: return a + " % " + b;
    case Op::bit_and: return a + " & " + b;
    case Op::bit_or: return a + " | " + b;
    case Op::bit_xor: return a + " ^ " + b;
    case Op::neg:
    case Op::abs: {
      const Type u = unsigned_twin(t);
      std::string minus = reinterpret(t, u, constant(u, 0) + " - " + reinterpret(u, t, a));
      if (at(r).op == Op::neg) return minus;
      return u == t ? a : select(t, compare("<", t, a, constant(t, 0)), minus, a);
    }
    default: refuse(r, "has no word for this"); return a;
  }
}

std::string Writer::pure(Ref r, const std::string& a, const std::string& b, const std::string& c) {
  const Node& n = at(r);
  const Type of = at(n.op == Op::select ? n.b : n.a).type;
  if (const OpRow* how = row(n.op, of)) return fill(how->text, {{'a', a}, {'b', b}, {'c', c}, {'t', typed(n.type)}});
  switch (n.op) {
    case Op::cast: return cast(n.type, of, a);
    case Op::bitcast: return reinterpret(n.type, of, a);
    case Op::select: return select(n.type, a, b, c);
    case Op::min: return select(of, compare("<", of, a, b), a, b);
    case Op::max: return select(of, compare(">", of, a, b), a, b);
    default: break;
  }
  if (of == kir::b1) return logic(n.op, a, b);
  switch (n.op) {
    case Op::lt: return compare("<", of, a, b);
    case Op::le: return compare("<=", of, a, b);
    case Op::eq: return compare("==", of, a, b);
    case Op::ne: return compare("!=", of, a, b);
    default: break;
  }
  if (!kir::is_float(of)) return integer(r, a, b);
  switch (n.op) {
    case Op::add: return a + " + " + b;
    case Op::sub: return a + " - " + b;
    case Op::mul: return a + " * " + b;
    case Op::div: return a + " / " + b;
    case Op::neg: return "-" + a;
    default: refuse(r, "has no word for this"); return a;
  }
}

// ---- memory

kir::View Writer::storage(uint32_t binding) const {
  kir::View out{binding, Type::none, 1};
  bool alike = true, words = false;
  for (const kir::View& v : k_.views) {
    if (v.binding != binding) continue;
    if (out.type == Type::none) out = v;
    alike = alike && v == out;
    words = words || type_bytes(v.type) == 4;
  }
  if (alike && out.type != Type::none) return out;
  out.width = 1;
  if (words || out.type == Type::none) out.type = kir::u32;
  return out;
}

std::string Writer::pointer_to(uint32_t binding, std::string_view type) const {
  return fill(d_.pointer, {{'t', type}, {'q', k_.bindings[binding].access == kir::Access::read ? "const " : ""}});
}

// What is equal in all lanes, and the rest, of a sum. Index arithmetic does not wrap, so its parts may be added in any
// order.
void Writer::split(Ref index, std::string& same, std::string& own) const {
  const Node& n = at(index);
  if (n.op == Op::add && !uniform_.uniform(index)) {
    split(n.a, same, own);
    split(n.b, same, own);
    return;
  }
  std::string& part = uniform_.uniform(index) ? same : own;
  part += (part.empty() ? "" : " + ") + value(index);
}

// With one sum as an index, a compiler must think that it wraps.
Writer::Place Writer::place(const Node& n, std::string_view word) const {
  const kir::View& view = k_.views[n.imm];
  std::string base = (d_.pointer.empty() ? "b" : "p") + std::to_string(view.binding);
  if (d_.pointer.empty()) return {base, value(n.a)};
  if (word != type(storage(view.binding).type)) base = "((" + pointer_to(view.binding, word) + ")" + base + ")";
  std::string same, own;
  split(n.a, same, own);
  if (own.empty()) return {base, same};
  return {same.empty() ? base : "(" + base + " + (" + same + "))", own};
}

// A wide element where the binding is declared as an array of single ones.
std::string Writer::parts(const kir::View& view, const Place& at) const {
  const kir::View as = storage(view.binding);
  std::string all;
  for (int i = 0; i < view.width; ++i) {
    const std::string one = at.pointer + "[(" + at.index + ") * " + number(kir::u32, view.width) + " + " +
                            number(kir::u32, static_cast<uint64_t>(i)) + "]";
    all += (i == 0 ? "" : ", ") +
           (as.type == view.type ? one : fill(d_.reinterpret, {{'t', type(view.type)}, {'a', one}}));
  }
  return fill(d_.tuple, {{'t', d_.vector(type(view.type), view.width)}, {'a', all}});
}

std::string Writer::loaded(const Node& n) const {
  const kir::View& view = k_.views[n.imm];
  const Type as = storage(view.binding).type;
  if (view.width > 1) {
    const bool whole = storage(view.binding) == view;
    if (d_.pointer.empty() && !whole) return parts(view, place(n, ""));
    const Place at = place(n, d_.vector(type(view.type), view.width));
    return at.pointer + "[" + at.index + "]";
  }
  if (view.type == kir::f16) {
    const Place at = place(n, type(kir::f16));
    return fill(d_.half_load, {{'a', at.pointer}, {'b', at.index}});
  }
  const bool word = type_bytes(view.type) == 4 && type_bytes(as) == 4;
  const Place at = place(n, type(word ? as : view.type));
  const std::string element = at.pointer + "[" + at.index + "]";
  if (word) return as == view.type ? element : fill(d_.reinterpret, {{'t', type(view.type)}, {'a', element}});
  return type_bytes(view.type) < 4 ? fill(d_.cast, {{'t', type(n.type)}, {'a', element}}) : element;
}

std::string Writer::stored(const Node& n) const {
  const kir::View& view = k_.views[n.imm];
  const Type as = storage(view.binding).type;
  const std::string v = value(n.b);
  if (view.width > 1) {
    if (d_.pointer.empty() && storage(view.binding) != view) {
      const Place at = place(n, "");
      std::string all;
      for (int i = 0; i < view.width; ++i) {
        const std::string part = v + "." + "xyzw"[i];
        all += (i == 0 ? "" : " ") + at.pointer + "[(" + at.index + ") * " + number(kir::u32, view.width) + " + " +
               number(kir::u32, static_cast<uint64_t>(i)) +
               "] = " + (as == view.type ? part : fill(d_.reinterpret, {{'t', type(as)}, {'a', part}})) + ";";
      }
      return all;
    }
    const Place at = place(n, d_.vector(type(view.type), view.width));
    return at.pointer + "[" + at.index + "] = " + v + ";";
  }
  if (view.type == kir::f16) {
    const Place at = place(n, type(kir::f16));
    return fill(d_.half_store, {{'a', at.pointer}, {'b', at.index}, {'c', v}});
  }
  const bool word = type_bytes(view.type) == 4 && type_bytes(as) == 4;
  const Place at = place(n, type(word ? as : view.type));
  std::string what = v;
  if (word && as != view.type) what = fill(d_.reinterpret, {{'t', type(as)}, {'a', v}});
  if (type_bytes(view.type) < 4) what = fill(d_.cast, {{'t', type(view.type)}, {'a', v}});
  return at.pointer + "[" + at.index + "] = " + what + ";";
}

}  // namespace tern::emit
