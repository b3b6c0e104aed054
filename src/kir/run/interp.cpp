#include "kir/interp.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "kir/eval.h"
#include "kir/run/shadow.h"

namespace tern::kir {

namespace {

float as_f32(uint64_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits)); }
uint64_t bits_of(float v) { return std::bit_cast<uint32_t>(v); }

// Statement by statement over all lanes of a group, lanes in order: for programs without races this is every order.
class Interp {
 public:
  Interp(const Kernel& k, std::span<const InterpBuffer> buffers, std::span<const uint32_t> dims,
         const InterpOptions& options)
      : k_(k), buffers_(buffers), dims_(dims), options_(options), lanes_(k.lanes) {}

  Status prepare() {
    if (buffers_.size() != k_.bindings.size()) {
      return make_error(
          Code::invalid,
          std::to_string(buffers_.size()) + " buffers for " + std::to_string(k_.bindings.size()) + " bindings", name());
    }
    if (dims_.size() != k_.dims.size()) {
      return make_error(Code::invalid,
                        std::to_string(dims_.size()) + " scalars for " + std::to_string(k_.dims.size()) + " dims",
                        name());
    }
    subgroup_ = options_.subgroup ? options_.subgroup : k_.subgroup ? k_.subgroup : lanes_;
    size_t total = 0;
    for (const Node& n : k_.nodes) {
      slot_.push_back(total);
      total += size_t{n.width} * lanes_;
    }
    values_.assign(total, 0);
    for (const Array& a : k_.arrays) {
      arrays_.emplace_back(size_t{a.count}, 0);
      array_shadow_.emplace_back(a.count);
    }
    granule_.assign(k_.bindings.size(), 4);
    for (const View& v : k_.views) granule_[v.binding] = std::min(granule_[v.binding], type_bytes(v.type));
    for (size_t b = 0; b < buffers_.size(); ++b) {
      if (buffers_[b].bytes != 0 && buffers_[b].data == nullptr) {
        return make_error(Code::invalid, "buffer " + k_.bindings[b].name + " has no address", name());
      }
      const bool watched = options_.detect_races && k_.bindings[b].access != Access::read;
      shadow_.emplace_back(watched ? buffers_[b].bytes / granule_[b] : 0);
    }
    fixed_leaves();
    return ok();
  }

  Status run(uint32_t group) {
    group_ = group;
    ++epoch_;
    for (Ref r = 0; r < k_.nodes.size(); ++r) {
      if (k_.nodes[r].op == Op::group) std::fill_n(at(r), lanes_, uint64_t{group});
    }
    for (Shadow& s : array_shadow_) s.clear();
    const std::vector<uint8_t> all(lanes_, 1);
    if (!block(0, all)) return *error_;
    return ok();
  }

 private:
  std::string name() const { return "kernel " + k_.name; }
  uint64_t* at(Ref r) { return values_.data() + slot_[r]; }

  bool fail(Ref r, std::string why) {
    error_ = make_error(Code::invalid, std::move(why),
                        name() + ", node " + std::to_string(r) + " (" + std::string(op_info(k_.nodes[r].op).name) +
                            "), group " + std::to_string(group_));
    return false;
  }

  void fixed_leaves() {
    for (Ref r = 0; r < k_.nodes.size(); ++r) {
      const Node& n = k_.nodes[r];
      if (op_info(n.op).cls != OpClass::leaf) continue;
      for (uint32_t l = 0; l < lanes_; ++l) {
        uint64_t& v = at(r)[l];
        switch (n.op) {
          case Op::constant: v = n.imm; break;
          case Op::lane: v = l; break;
          case Op::dim: v = dims_[n.imm]; break;
          case Op::subgroup_id: v = l / subgroup_; break;
          case Op::subgroup_lane: v = l % subgroup_; break;
          case Op::subgroup_count: v = (lanes_ + subgroup_ - 1) / subgroup_; break;
          default: break;
        }
      }
    }
  }

  bool block(uint32_t index, const std::vector<uint8_t>& on) {
    for (Ref r : k_.blocks[index]) {
      if (!statement(r, on)) return false;
    }
    return true;
  }

  bool statement(Ref r, const std::vector<uint8_t>& on) {
    const Node& n = k_.nodes[r];
    switch (n.op) {
      case Op::part: std::copy_n(at(n.a) + n.imm * lanes_, lanes_, at(r)); return true;
      case Op::tuple: {
        uint32_t p = 0;
        each_operand(n, [&](Ref o) { std::copy_n(at(o), lanes_, at(r) + size_t{p++} * lanes_); });
        return true;
      }
      case Op::prefetch: return true;
      case Op::load:
      case Op::store: return global(r, n, on);
      case Op::wg_load:
      case Op::wg_store: return workgroup(r, n, on);
      case Op::var:
      case Op::get: std::copy_n(at(n.a), lanes_, at(r)); return true;
      case Op::set:
        for (uint32_t l = 0; l < lanes_; ++l) {
          if (on[l]) at(n.a)[l] = at(n.b)[l];
        }
        return true;
      case Op::branch: return branch(n, on);
      case Op::loop: return loop(r, n, on);
      case Op::barrier:
      case Op::subgroup_add:
      case Op::subgroup_min:
      case Op::subgroup_max: return together(r, n, on);
      default: return pure(r, n, on);
    }
  }

  // ---- control

  bool branch(const Node& n, const std::vector<uint8_t>& on) {
    std::vector<uint8_t> inner(lanes_);
    bool any = false;
    for (uint32_t l = 0; l < lanes_; ++l) {
      inner[l] = on[l] && at(n.a)[l];
      any = any || inner[l];
    }
    return !any || block(n.body, inner);
  }

  bool loop(Ref r, const Node& n, const std::vector<uint8_t>& on) {
    const auto first_on = static_cast<size_t>(std::find(on.begin(), on.end(), 1) - on.begin());
    const uint64_t lo = at(n.a)[first_on], hi = at(n.b)[first_on];
    for (uint32_t l = 0; l < lanes_; ++l) {
      if (on[l] && (at(n.a)[l] != lo || at(n.b)[l] != hi))
        return fail(r, "lane " + std::to_string(l) + " has other bounds than lane " + std::to_string(first_on));
    }
    const bool is_signed = n.type == i32;
    const int64_t from = is_signed ? int64_t{static_cast<int32_t>(lo)} : static_cast<int64_t>(lo);
    const int64_t to = is_signed ? int64_t{static_cast<int32_t>(hi)} : static_cast<int64_t>(hi);
    for (int64_t i = from; i < to; ++i) {
      std::fill_n(at(r), lanes_, uint64_t{static_cast<uint32_t>(i)});
      if (!block(n.body, on)) return false;
    }
    return true;
  }

  bool together(Ref r, const Node& n, const std::vector<uint8_t>& on) {
    const auto off = std::find(on.begin(), on.end(), 0);
    if (off != on.end()) return fail(r, "lane " + std::to_string(off - on.begin()) + " does not arrive");
    if (n.op == Op::barrier) {
      ++epoch_;
      return true;
    }
    const Op op = n.op == Op::subgroup_add ? Op::add : n.op == Op::subgroup_min ? Op::min : Op::max;
    for (uint32_t first = 0; first < lanes_; first += subgroup_) {
      const uint32_t count = std::min(subgroup_, lanes_ - first);
      std::vector<uint64_t> v(at(n.a) + first, at(n.a) + first + count);
      for (uint32_t left = count; left > 1; left = (left + 1) / 2) {
        const uint32_t half = (left + 1) / 2;
        for (uint32_t l = 0; l < left - half; ++l) eval(op, n.type, n.type, v[l], v[l + half], 0, &v[l]);
      }
      std::fill_n(at(r) + first, count, v[0]);
    }
    return true;
  }

  // ---- memory

  static uint64_t widen(Type type, const std::byte* from) {
    uint64_t raw = 0;
    std::memcpy(&raw, from, type_bytes(type));
    switch (type) {
      case f16: return bits_of(f16_to_f32(static_cast<uint16_t>(raw)));
      case i16: return static_cast<uint32_t>(static_cast<int32_t>(static_cast<int16_t>(raw)));
      case i8: return static_cast<uint32_t>(static_cast<int32_t>(static_cast<int8_t>(raw)));
      default: return raw;
    }
  }
  static void narrow(Type type, uint64_t value, std::byte* to) {
    if (type == f16) value = f32_to_f16(as_f32(value));
    std::memcpy(to, &value, type_bytes(type));
  }

  bool watch(Ref r, Shadow& shadow, uint64_t unit, uint32_t units, bool writes, uint32_t l, const std::string& what,
             uint64_t index) {
    for (uint32_t u = 0; u < units; ++u) {
      const Toucher by{group_, l, epoch_};
      const std::string wrong = writes ? shadow.write(unit + u, by) : shadow.read(unit + u, by);
      if (!wrong.empty()) return fail(r, "race on " + what + "[" + std::to_string(index) + "]: " + wrong);
    }
    return true;
  }

  bool global(Ref r, const Node& n, const std::vector<uint8_t>& on) {
    const View& view = k_.views[n.imm];
    const InterpBuffer& buffer = buffers_[view.binding];
    const bool writes = n.op == Op::store,
               watched = options_.detect_races && k_.bindings[view.binding].access != Access::read;
    const uint32_t bytes = type_bytes(view.type), element = bytes * view.width;
    for (uint32_t l = 0; l < lanes_; ++l) {
      if (!on[l]) continue;
      const uint64_t index = at(n.a)[l], start = index * element;
      if (start + element > buffer.bytes) {
        return fail(r, k_.bindings[view.binding].name + "[" + std::to_string(index) + "] of lane " + std::to_string(l) +
                           " lies outside its " + std::to_string(buffer.bytes / element) + " elements");
      }
      const uint32_t granule = granule_[view.binding];
      if (watched && !watch(r, shadow_[view.binding], start / granule, element / granule, writes, l,
                            k_.bindings[view.binding].name, index))
        return false;
      for (uint32_t p = 0; p < view.width; ++p) {
        std::byte* place = buffer.data + start + p * bytes;
        if (writes)
          narrow(view.type, at(n.b)[size_t{p} * lanes_ + l], place);
        else
          at(r)[size_t{p} * lanes_ + l] = widen(view.type, place);
      }
    }
    return true;
  }

  bool workgroup(Ref r, const Node& n, const std::vector<uint8_t>& on) {
    const Array& array = k_.arrays[n.imm];
    const bool writes = n.op == Op::wg_store;
    for (uint32_t l = 0; l < lanes_; ++l) {
      if (!on[l]) continue;
      const uint64_t index = at(n.a)[l];
      if (index >= array.count) {
        return fail(r, array.name + "[" + std::to_string(index) + "] of lane " + std::to_string(l) +
                           " lies outside its " + std::to_string(array.count) + " elements");
      }
      Shadow& shadow = array_shadow_[n.imm];
      if (options_.detect_races) {
        if (!writes && !shadow.written(index, group_)) {
          return fail(r, "lane " + std::to_string(l) + " reads " + array.name + "[" + std::to_string(index) +
                             "], which nobody wrote");
        }
        if (!watch(r, shadow, index, 1, writes, l, array.name, index)) return false;
      }
      if (writes)
        arrays_[n.imm][index] = at(n.b)[l];
      else
        at(r)[l] = arrays_[n.imm][index];
    }
    return true;
  }

  // ---- values

  template <class F>
  void each(Ref r, const Node& n, F&& f) {
    uint64_t* out = at(r);
    const uint64_t *a = at(n.a), *b = n.b == kNone ? a : at(n.b), *c = n.c == kNone ? a : at(n.c);
    for (uint32_t l = 0; l < lanes_; ++l) out[l] = f(a[l], b[l], c[l]);
  }

  // The ops that most of a kernel's time goes to, as plain loops. False: not one of them.
  bool fast(Ref r, const Node& n, Type operand) {
    if (operand == f32) {
      switch (n.op) {
        case Op::add:
          each(r, n, [](uint64_t a, uint64_t b, uint64_t) { return bits_of(as_f32(a) + as_f32(b)); });
          return true;
        case Op::sub:
          each(r, n, [](uint64_t a, uint64_t b, uint64_t) { return bits_of(as_f32(a) - as_f32(b)); });
          return true;
        case Op::mul:
          each(r, n, [](uint64_t a, uint64_t b, uint64_t) { return bits_of(as_f32(a) * as_f32(b)); });
          return true;
        case Op::fma:
          each(r, n,
               [](uint64_t a, uint64_t b, uint64_t c) { return bits_of(std::fma(as_f32(a), as_f32(b), as_f32(c))); });
          return true;
        default: return false;
      }
    }
    if (operand != u32 && operand != i32) return false;
    switch (n.op) {
      case Op::add: each(r, n, [](uint64_t a, uint64_t b, uint64_t) { return (a + b) & 0xffffffffu; }); return true;
      case Op::sub: each(r, n, [](uint64_t a, uint64_t b, uint64_t) { return (a - b) & 0xffffffffu; }); return true;
      case Op::mul: each(r, n, [](uint64_t a, uint64_t b, uint64_t) { return (a * b) & 0xffffffffu; }); return true;
      case Op::bit_and: each(r, n, [](uint64_t a, uint64_t b, uint64_t) { return a & b; }); return true;
      case Op::shl:
        each(r, n, [](uint64_t a, uint64_t b, uint64_t) { return (a << (b & 31)) & 0xffffffffu; });
        return true;
      default: return false;
    }
  }

  bool pure(Ref r, const Node& n, const std::vector<uint8_t>& on) {
    const Type operand = k_.nodes[n.op == Op::select ? n.b : n.a].type;
    if (fast(r, n, operand)) return true;
    for (uint32_t l = 0; l < lanes_; ++l) {
      if (!on[l]) continue;
      const uint64_t b = n.b == kNone ? 0 : at(n.b)[l], c = n.c == kNone ? 0 : at(n.c)[l];
      if (!eval(n.op, n.type, operand, at(n.a)[l], b, c, &at(r)[l])) {
        return fail(
            r, "lane " + std::to_string(l) + " divides " + std::to_string(at(n.a)[l]) + " by " + std::to_string(b));
      }
    }
    return true;
  }

  const Kernel& k_;
  std::span<const InterpBuffer> buffers_;
  std::span<const uint32_t> dims_;
  const InterpOptions& options_;
  const uint32_t lanes_;
  uint32_t subgroup_ = 1, group_ = 0, epoch_ = 0;
  std::vector<size_t> slot_;
  std::vector<uint64_t> values_;
  std::vector<std::vector<uint64_t>> arrays_;
  std::vector<Shadow> array_shadow_, shadow_;
  std::vector<uint32_t> granule_;
  std::optional<Error> error_;
};

}  // namespace

Status interpret(const Kernel& kernel, std::span<const InterpBuffer> buffers, std::span<const uint32_t> dims,
                 uint32_t group0, uint32_t group1, const InterpOptions& options) {
  Interp interp(kernel, buffers, dims, options);
  TERN_OK(interp.prepare());
  for (uint32_t group = group0; group < group1; ++group) TERN_OK(interp.run(group));
  return ok();
}

}  // namespace tern::kir
