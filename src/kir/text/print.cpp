#include "kir/print.h"

#include <bit>
#include <charconv>
#include <vector>

namespace tern::kir {

namespace {

template <class T>
std::string shortest(T v) {
  char text[64];
  const auto end = std::to_chars(text, text + sizeof(text), v);
  std::string s(text, end.ptr);
  // A float that prints like an integer gets a point, so that the types read apart.
  if (s.find_first_not_of("-0123456789") == std::string::npos) s += ".0";
  return s;
}

std::string constant_text(const Node& n) {
  switch (n.type) {
    case b1: return n.imm ? "true" : "false";
    case i32: return std::to_string(static_cast<int32_t>(n.imm));
    case i64: return std::to_string(static_cast<int64_t>(n.imm)) + "l";
    case u64: return std::to_string(n.imm) + "ul";
    case f32: return shortest(std::bit_cast<float>(static_cast<uint32_t>(n.imm))) + "f";
    case f64: return shortest(std::bit_cast<double>(n.imm));
    default: return std::to_string(n.imm) + "u";
  }
}

class Printer {
 public:
  explicit Printer(const Kernel& k) : k_(k), number_(k.nodes.size(), kNone) {}

  std::string run() {
    out_ = "kernel " + k_.name + " lanes " + std::to_string(k_.lanes);
    if (k_.subgroup) out_ += " subgroup " + std::to_string(k_.subgroup);
    out_ += "\n";
    for (const Binding& b : k_.bindings) {
      out_ += "  binding " + b.name + ": " + wide(b.type, b.width) + " " + std::string(access_name(b.access)) +
              (b.streaming ? " streaming" : "") + "\n";
    }
    for (const std::string& d : k_.dims) out_ += "  dim " + d + "\n";
    for (const Array& a : k_.arrays)
      out_ += "  workgroup " + a.name + ": " + std::string(type_name(a.type)) + "[" + std::to_string(a.count) + "]\n";
    block(0, 1);
    return std::move(out_);
  }

 private:
  static std::string wide(Type t, int width) {
    return std::string(type_name(t)) + (width > 1 ? "x" + std::to_string(width) : "");
  }

  // Named as its binding; with its type where that is not the declared one.
  std::string view(uint64_t index) const {
    const View& v = k_.views[index];
    const Binding& b = k_.bindings[v.binding];
    return v.type == b.type && v.width == b.width ? b.name : b.name + "." + wide(v.type, v.width);
  }

  std::string value(Ref r) const {
    const Node& n = k_.nodes[r];
    if (n.op == Op::constant) return constant_text(n);
    if (n.op == Op::dim) return "$" + k_.dims[n.imm];
    if (op_info(n.op).cls == OpClass::leaf) return std::string(op_info(n.op).name);
    return "%" + std::to_string(number_[r]);
  }

  void block(uint32_t index, int depth) {
    for (Ref r : k_.blocks[index]) {
      const Node& n = k_.nodes[r];
      out_.append(static_cast<size_t>(depth) * 2, ' ');
      if (n.type != Type::none) {
        number_[r] = next_++;
        out_ += "%" + std::to_string(number_[r]) + " = ";
      }
      line(n);
      out_ += "\n";
      if (n.body == kNone) continue;
      block(n.body, depth + 1);
      out_.append(static_cast<size_t>(depth) * 2, ' ');
      out_ += "}\n";
    }
  }

  void line(const Node& n) {
    switch (n.op) {
      case Op::load: out_ += "load " + wide(n.type, n.width) + " " + view(n.imm) + "[" + value(n.a) + "]"; return;
      case Op::store: out_ += "store " + view(n.imm) + "[" + value(n.a) + "] = " + value(n.b); return;
      case Op::prefetch: out_ += "prefetch " + view(n.imm) + "[" + value(n.a) + "]"; return;
      case Op::wg_load:
        out_ += "wg_load " + std::string(type_name(n.type)) + " " + k_.arrays[n.imm].name + "[" + value(n.a) + "]";
        return;
      case Op::wg_store: out_ += "wg_store " + k_.arrays[n.imm].name + "[" + value(n.a) + "] = " + value(n.b); return;
      case Op::set: out_ += "set " + value(n.a) + " = " + value(n.b); return;
      case Op::branch: out_ += "if " + value(n.a) + " {"; return;
      case Op::loop:
        out_ += "for " + std::string(type_name(n.type)) + " " + value(n.a) + " to " + value(n.b) + " {";
        return;
      default: break;
    }
    out_ += op_info(n.op).name;
    if (n.type != Type::none) out_ += " " + wide(n.type, n.width);
    std::string separator = " ";
    each_operand(n, [&](Ref r) {
      out_ += separator + value(r);
      separator = ", ";
    });
    if (n.op == Op::part) out_ += "." + std::to_string(n.imm);
  }

  const Kernel& k_;
  std::vector<uint32_t> number_;
  uint32_t next_ = 0;
  std::string out_;
};

}  // namespace

std::string print(const Kernel& kernel) { return Printer(kernel).run(); }

}  // namespace tern::kir
