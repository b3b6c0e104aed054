#include "kir/verify.h"

#include <string>
#include <vector>

#include "kir/uniformity.h"

namespace tern::kir {

namespace {

class Verifier {
 public:
  Verifier(const Kernel& k, const Caps& caps, const VerifyOptions& options) : k_(k), caps_(caps), options_(options) {}

  Status run() {
    TERN_OK(tables());
    TERN_OK(leaves());
    visible_.assign(k_.nodes.size(), 0);
    placed_.assign(k_.nodes.size(), 0);
    block_seen_.assign(k_.blocks.size(), 0);
    TERN_OK(block(0, 0));
    for (Ref r = 0; r < k_.nodes.size(); ++r) {
      if (op_info(k_.nodes[r].op).cls != OpClass::leaf && !placed_[r]) return bad(r, "stands in no statement list");
    }
    const uint32_t count = k_.statements();
    if (options_.check_budget && count > k_.node_budget) {
      return fail(Code::limit, std::to_string(count) + " statements, the budget is " + std::to_string(k_.node_budget) +
                                   "; unroll less, use For, or raise B::node_budget");
    }
    return control();
  }

 private:
  static constexpr int kMaxDepth = 64;

  std::string where(Ref r = kNone) const {
    std::string text = "kernel " + k_.name;
    if (r != kNone) text += ", node " + std::to_string(r) + " (" + std::string(op_info(k_.nodes[r].op).name) + ")";
    return text;
  }
  Error fail(Code code, std::string why, Ref r = kNone) const { return make_error(code, std::move(why), where(r)); }
  Error bad(Ref r, std::string why) const { return fail(Code::invalid, std::move(why), r); }

  // ---- tables against caps

  Status tables() {
    if (k_.lanes == 0 || k_.lanes > caps_.max_lanes) {
      return fail(Code::unsupported,
                  std::to_string(k_.lanes) + " lanes; the device takes 1 to " + std::to_string(caps_.max_lanes));
    }
    if (k_.blocks.empty()) return fail(Code::invalid, "no statement list");
    if (k_.bindings.size() > caps_.max_bindings) {
      return fail(Code::unsupported, std::to_string(k_.bindings.size()) + " bindings; the device takes " +
                                         std::to_string(caps_.max_bindings));
    }
    for (const View& v : k_.views) TERN_OK(view(v));
    uint64_t bytes = 0;
    for (const Array& a : k_.arrays) {
      if (!type_info(a.type).value || a.type == b1 || a.count == 0)
        return fail(Code::invalid, "workgroup array " + a.name + " holds no value type or nothing");
      TERN_OK(type(a.type, kNone));
      bytes += uint64_t{a.count} * type_bytes(a.type);
    }
    if (bytes > caps_.workgroup_bytes) {
      return fail(Code::limit, std::to_string(bytes) + " bytes of workgroup memory; the device has " +
                                   std::to_string(caps_.workgroup_bytes));
    }
    const SubgroupCaps& s = caps_.subgroup;
    const bool fixed = s.min == s.max && k_.subgroup == s.max;
    if (k_.subgroup != 0 && !fixed && !(s.can_pin && k_.subgroup >= s.min && k_.subgroup <= s.max)) {
      return fail(Code::unsupported, "the device cannot give subgroups of " + std::to_string(k_.subgroup));
    }
    return ok();
  }

  Status view(const View& v) {
    if (v.binding >= k_.bindings.size()) return fail(Code::invalid, "a view of a binding that is not there");
    const std::string name = k_.bindings[v.binding].name;
    if (v.type == Type::none || v.type == b1)
      return fail(Code::invalid, "a view of " + name + " without a storage type");
    if (v.type == bf16 || v.type == b8)
      return fail(Code::invalid,
                  "a view of " + name + " as " + std::string(type_name(v.type)) + ", which the builder rewrites");
    if (v.width != 1 && !((v.width == 2 || v.width == 4) && type_bytes(v.type) == 4)) {
      return fail(Code::invalid,
                  "a view of " + name + " " + std::to_string(v.width) + " wide over " + std::string(type_name(v.type)));
    }
    if (type_bytes(v.type) == 2 && !caps_.f16_storage) {
      return fail(Code::unsupported,
                  std::string(type_name(v.type)) + " elements of " + name +
                      ": the device has no 16-bit loads and stores; store pairs through a view 2 wide");
    }
    if (type_bytes(v.type) == 1 && !caps_.byte_storage) {
      return fail(Code::unsupported,
                  std::string(type_name(v.type)) + " elements of " + name +
                      ": the device has no 8-bit loads and stores; store four through a view 4 wide");
    }
    return type(v.type, kNone);
  }

  Status type(Type t, Ref r) {
    if ((t == i64 || t == u64) && !caps_.i64) return fail(Code::unsupported, "the device has no 64-bit integers", r);
    if (t == f64 && !caps_.f64) return fail(Code::unsupported, "the device has no f64", r);
    return ok();
  }

  Status leaves() {
    for (Ref r = 0; r < k_.nodes.size(); ++r) {
      const Node& n = k_.nodes[r];
      if (n.type != Type::none && !type_info(n.type).value)
        return bad(r, "has the storage type " + std::string(type_name(n.type)));
      TERN_OK(type(n.type, r));
      if (op_info(n.op).cls != OpClass::leaf) continue;
      if (n.op == Op::constant) {
        const uint64_t limit = n.type == b1 ? 1 : is_wide64(n.type) ? ~uint64_t{0} : 0xffffffffu;
        if (n.type == Type::none || n.imm > limit) return bad(r, "has bits beyond its type");
      } else if (n.type != u32) {
        return bad(r, "is u32");
      }
      if (n.op == Op::dim && n.imm >= k_.dims.size()) return bad(r, "names a dim that is not there");
    }
    return ok();
  }

  // ---- statements

  Status block(uint32_t index, int depth) {
    if (index >= k_.blocks.size()) return fail(Code::invalid, "a statement list that is not there");
    if (block_seen_[index]++) return fail(Code::invalid, "a statement list is used twice");
    if (depth > kMaxDepth) return fail(Code::limit, "control nested deeper than " + std::to_string(kMaxDepth));
    std::vector<Ref> here;
    for (Ref r : k_.blocks[index]) {
      if (r >= k_.nodes.size()) return fail(Code::invalid, "a statement that is no node");
      if (op_info(k_.nodes[r].op).cls == OpClass::leaf) return bad(r, "is a leaf and no statement");
      if (placed_[r]++) return bad(r, "stands twice");
      TERN_OK(operands(r));
      TERN_OK(statement(r));
      visible_[r] = 1;
      here.push_back(r);
      if (k_.nodes[r].body != kNone) TERN_OK(block(k_.nodes[r].body, depth + 1));
      if (k_.nodes[r].op == Op::loop) visible_[r] = 0;  // the index ends with its body
    }
    for (Ref r : here) visible_[r] = 0;
    return ok();
  }

  Status operands(Ref r) {
    const Node& n = k_.nodes[r];
    if (n.width != 1 && n.op != Op::load && n.op != Op::tuple) return bad(r, "is no wide op");
    if (n.op == Op::tuple && n.width != 2 && n.width != 4) return bad(r, "is 2 or 4 wide");
    Status status = ok();
    int position = 0;
    each_operand(n, [&](Ref o) {
      const int at = position++;
      if (!status) return;
      if (o >= k_.nodes.size()) {
        status = bad(r, "operand " + std::to_string(at) + " is no node");
      } else if (op_info(k_.nodes[o].op).cls != OpClass::leaf && !visible_[o]) {
        status = bad(r, "operand " + std::to_string(at) + " (node " + std::to_string(o) + ") is not visible here");
      } else if (k_.nodes[o].type == Type::none) {
        status = bad(r, "operand " + std::to_string(at) + " has no value");
      } else if ((k_.nodes[o].op == Op::var) != ((n.op == Op::get || n.op == Op::set) && at == 0)) {
        status = bad(r, "a variable is used by get and set only");
      } else if ((k_.nodes[o].width > 1) != (n.op == Op::part || (n.op == Op::store && at == 1 && wide_store(n)))) {
        status = bad(r, "a wide value is used by part and store only");
      }
    });
    const bool control = n.op == Op::branch || n.op == Op::loop;
    if (status && control != (n.body != kNone)) return bad(r, control ? "has no body" : "has a body");
    return status;
  }

  bool wide_store(const Node& n) const { return n.imm < k_.views.size() && k_.views[n.imm].width > 1; }
  Type of(Ref r) const { return k_.nodes[r].type; }

  Status expect(Ref r, bool holds, std::string_view wanted) {
    if (holds) return ok();
    return bad(r, "wants " + std::string(wanted));
  }

  Status statement(Ref r) {
    const Node& n = k_.nodes[r];
    switch (op_info(n.op).cls) {
      case OpClass::pure: return pure(r, n);
      case OpClass::memory: return memory(r, n);
      case OpClass::var:
        if (n.op == Op::set)
          return expect(r, n.type == Type::none && of(n.a) == of(n.b), "a value of the variable's type");
        return expect(r, n.type == of(n.a), "one type");
      case OpClass::control:
        if (n.op == Op::branch) return expect(r, of(n.a) == b1 && n.type == Type::none, "b1");
        return expect(r, (n.type == i32 || n.type == u32) && of(n.a) == n.type && of(n.b) == n.type,
                      "i32 or u32 bounds of its type");
      case OpClass::group:
        if (n.op == Op::barrier) return expect(r, n.type == Type::none, "no value");
        if (!caps_.lockstep && caps_.subgroup.max <= 1)
          return fail(Code::unsupported, "the device has no subgroups; use wg_add", r);
        return expect(r, of(n.a) == n.type && (n.type == f32 || n.type == i32 || n.type == u32), "f32, i32 or u32");
      case OpClass::leaf: break;
    }
    return bad(r, "is no statement");
  }

  Status memory(Ref r, const Node& n) {
    const bool writes = n.op == Op::store || n.op == Op::wg_store, global = has_view(n);
    if (n.imm >= (global ? k_.views.size() : k_.arrays.size()))
      return bad(r, global ? "names a view that is not there" : "names an array that is not there");
    TERN_OK(expect(r, of(n.a) == u32, "a u32 index"));
    if (n.op == Op::prefetch) return expect(r, n.type == Type::none, "no value");
    const Type held = global ? type_info(k_.views[n.imm].type).loaded : k_.arrays[n.imm].type;
    const uint8_t width = global ? k_.views[n.imm].width : 1;
    if (writes) {
      TERN_OK(expect(r, n.type == Type::none && of(n.b) == held && k_.nodes[n.b].width == width, type_name(held)));
    } else {
      TERN_OK(expect(r, n.type == held && n.width == width, type_name(held)));
    }
    if (!global) return ok();
    const Binding& b = k_.bindings[k_.views[n.imm].binding];
    if (writes && b.access == Access::read) return bad(r, "stores to " + b.name + ", which is bound for reading");
    if (!writes && b.access == Access::write)
      return bad(r, "loads from " + b.name + ", which is bound for writing; bind it for update");
    return ok();
  }

  bool is_table(Ref r) const { return r != kNone && k_.nodes[r].op == Op::constant && k_.nodes[r].type == u64; }

  Status pure(Ref r, const Node& n) {
    const Type a = of(n.a), b = n.b == kNone ? Type::none : of(n.b), c = n.c == kNone ? Type::none : of(n.c),
               t = n.type;
    const bool number = is_int(a) || is_float(a);
    switch (n.op) {
      case Op::neg:
      case Op::abs: return expect(r, number && t == a, "a number");
      case Op::logic_not: return expect(r, a == b1 && t == b1, "b1");
      case Op::floor:
      case Op::round:
      case Op::sqrt: return expect(r, is_float(a) && t == a, "a float");
      case Op::cast:
        return expect(r, (number || a == b1) && (is_int(t) || is_float(t)), "a number or b1, and a number to make");
      case Op::bitcast:
        return expect(r, number && (is_int(t) || is_float(t)) && type_bytes(a) == type_bytes(t), "equal sizes");
      case Op::half_to_f32: return expect(r, a == u32 && t == f32, "u32");
      case Op::f32_to_half: return expect(r, a == f32 && t == u32, "f32");
      case Op::part:
        return expect(r, k_.nodes[n.a].op == Op::load && n.imm < k_.nodes[n.a].width && t == a,
                      "an element of a wide load");
      case Op::add:
      case Op::sub:
      case Op::mul:
      case Op::div:
      case Op::rem:
      case Op::min:
      case Op::max: return expect(r, number && a == b && t == a, "two numbers of one type");
      case Op::bit_and:
      case Op::bit_or:
      case Op::bit_xor: return expect(r, (is_int(a) || a == b1) && a == b && t == a, "two integers or b1 of one type");
      case Op::shl:
      case Op::shr: return expect(r, is_int(a) && b == u32 && t == a, "an integer and a u32 count");
      case Op::lt:
      case Op::le: return expect(r, number && a == b && t == b1, "two numbers of one type");
      case Op::eq:
      case Op::ne: return expect(r, (number || a == b1) && a == b && t == b1, "two values of one type");
      case Op::fma:
        if (!caps_.fma) return fail(Code::unsupported, "the device has no fused multiply-add", r);
        return expect(r, is_float(a) && a == b && b == c && t == a, "three floats of one type");
      case Op::select: return expect(r, a == b1 && b == c && t == b, "b1 and two values of one type");
      case Op::dot4:
        if (caps_.dot4 == Dot4::none) return fail(Code::unsupported, "the device has no dot4", r);
        return expect(r, a == i32 && b == u32 && c == u32 && t == i32, "i32, u32, u32");
      case Op::lookup:
        if (!caps_.byte_lookup) return fail(Code::unsupported, "the device looks up no bytes", r);
        return expect(r, a == u32 && t == u32 && is_table(n.b) && is_table(n.c), "u32 and two u64 constants");
      case Op::tuple: {
        bool same = true;
        each_operand(n, [&](Ref o) { same = same && of(o) == t; });
        return expect(r, same, "values of one type");
      }
      default: return bad(r, "has no rule");
    }
  }

  // ---- uniform control

  Status control() {
    const Uniformity u = uniformity(k_, options_.strict ? Strength::strict : Strength::lockstep);
    for (uint32_t b = 0; b < k_.blocks.size(); ++b) {
      for (Ref r : k_.blocks[b]) {
        const Node& n = k_.nodes[r];
        if (n.op == Op::loop && (u.varying[n.a] || u.varying[n.b]))
          return bad(r, "has a bound that differs between lanes");
        if (op_info(n.op).cls == OpClass::group && u.varying_block[b])
          return bad(r, "stands under control that differs between lanes");
      }
    }
    return ok();
  }

  const Kernel& k_;
  const Caps& caps_;
  const VerifyOptions& options_;
  std::vector<uint8_t> visible_, placed_, block_seen_;
};

}  // namespace

Status verify(const Kernel& kernel, const Caps& caps, const VerifyOptions& options) {
  return Verifier(kernel, caps, options).run();
}

}  // namespace tern::kir
