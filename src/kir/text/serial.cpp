#include "kir/serial.h"

#include <cstring>
#include <string>
#include <utility>

namespace tern::kir {

namespace {

constexpr char kMagic[4] = {'k', 'i', 'r', '\n'};

class Writer {
 public:
  void byte(uint64_t v) { out.push_back(static_cast<std::byte>(v)); }
  void number(uint64_t v) {  // seven bits a byte, low first
    for (; v >= 0x80; v >>= 7) byte((v & 0x7f) | 0x80);
    byte(v);
  }
  void text(const std::string& s) {
    number(s.size());
    for (char c : s) byte(static_cast<unsigned char>(c));
  }
  void ref(uint32_t r) { number(r == kNone ? 0 : uint64_t{r} + 1); }

  std::vector<std::byte> out;
};

class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  bool good() const { return error_.empty(); }
  Error error() const { return make_error(Code::malformed, error_, "kernel bytes @" + std::to_string(at_)); }
  void fail(std::string why) {
    if (error_.empty()) error_ = std::move(why);
  }
  bool end() const { return at_ == bytes_.size(); }

  uint64_t byte() {
    if (!good()) return 0;
    if (at_ >= bytes_.size()) return fail("the bytes end early"), 0;
    return static_cast<uint64_t>(bytes_[at_++]);
  }
  uint64_t number() {
    uint64_t v = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const uint64_t b = byte();
      if (shift == 63 && b > 1) break;
      v |= (b & 0x7f) << shift;
      if (b < 0x80) return v;
    }
    return fail("a number longer than 64 bits"), 0;
  }
  uint32_t u32_number() {
    const uint64_t v = number();
    if (v > 0xffffffffu) return fail("a number above 32 bits"), 0;
    return static_cast<uint32_t>(v);
  }
  // A count of things that take at least one byte each.
  size_t count() {
    const uint64_t v = number();
    if (v > bytes_.size() - at_) return fail("a count above the bytes that are left"), 0;
    return static_cast<size_t>(v);
  }
  std::string text() {
    std::string s(count(), '\0');
    for (char& c : s) c = static_cast<char>(byte());
    return s;
  }
  template <class E>
  E one_of(uint32_t limit, std::string_view what) {
    const uint64_t v = byte();
    if (v >= limit) return fail(std::string(what) + " " + std::to_string(v) + " is unknown"), E{};
    return static_cast<E>(v);
  }
  Ref ref(size_t limit) {
    const uint64_t v = number();
    if (v > limit) return fail("node " + std::to_string(v - 1) + " is not there"), kNone;
    return v == 0 ? kNone : static_cast<Ref>(v - 1);
  }

 private:
  std::span<const std::byte> bytes_;
  size_t at_ = 0;
  std::string error_;
};

Type read_type(Reader& in) { return in.one_of<Type>(kTypeCount, "type"); }

void read_tables(Reader& in, Kernel& k) {
  k.name = in.text();
  k.lanes = in.u32_number();
  k.subgroup = in.u32_number();
  k.node_budget = in.u32_number();
  k.bindings.resize(in.count());
  for (Binding& b : k.bindings) {
    b.name = in.text();
    b.type = read_type(in);
    b.width = static_cast<uint8_t>(in.byte());
    b.access = in.one_of<Access>(3, "access");
    b.streaming = in.one_of<uint8_t>(2, "flag") != 0;
  }
  k.views.resize(in.count());
  for (View& v : k.views) {
    v.binding = in.u32_number();
    v.type = read_type(in);
    v.width = static_cast<uint8_t>(in.byte());
    if (v.binding >= k.bindings.size()) in.fail("binding " + std::to_string(v.binding) + " is not there");
  }
  k.dims.resize(in.count());
  for (std::string& d : k.dims) d = in.text();
  k.arrays.resize(in.count());
  for (Array& a : k.arrays) {
    a.name = in.text();
    a.type = read_type(in);
    a.count = in.u32_number();
  }
}

}  // namespace

std::vector<std::byte> serialize(const Kernel& k) {
  Writer w;
  for (char c : kMagic) w.byte(static_cast<unsigned char>(c));
  w.number(kSerialVersion);
  w.text(k.name);
  w.number(k.lanes);
  w.number(k.subgroup);
  w.number(k.node_budget);
  w.number(k.bindings.size());
  for (const Binding& b : k.bindings) {
    w.text(b.name);
    w.byte(static_cast<uint64_t>(b.type));
    w.byte(b.width);
    w.byte(static_cast<uint64_t>(b.access));
    w.byte(b.streaming);
  }
  w.number(k.views.size());
  for (const View& v : k.views) {
    w.number(v.binding);
    w.byte(static_cast<uint64_t>(v.type));
    w.byte(v.width);
  }
  w.number(k.dims.size());
  for (const std::string& d : k.dims) w.text(d);
  w.number(k.arrays.size());
  for (const Array& a : k.arrays) {
    w.text(a.name);
    w.byte(static_cast<uint64_t>(a.type));
    w.number(a.count);
  }
  w.number(k.nodes.size());
  for (const Node& n : k.nodes) {
    w.byte(static_cast<uint64_t>(n.op));
    w.byte(static_cast<uint64_t>(n.type));
    w.byte(n.width);
    each_operand(n, [&](Ref r) { w.ref(r); });
    w.number(n.imm);
    w.ref(n.body);
  }
  w.number(k.blocks.size());
  for (const auto& block : k.blocks) {
    w.number(block.size());
    for (Ref r : block) w.number(r);
  }
  return std::move(w.out);
}

Result<Kernel> deserialize(std::span<const std::byte> bytes) {
  Reader in(bytes);
  for (char c : kMagic) {
    if (in.byte() != static_cast<unsigned char>(c)) in.fail("no kernel: the magic is missing");
  }
  if (const uint64_t version = in.number(); in.good() && version != kSerialVersion) {
    in.fail("kernel form " + std::to_string(version) + "; this build reads " + std::to_string(kSerialVersion));
  }
  Kernel k;
  if (in.good()) read_tables(in, k);
  const size_t nodes = in.count();
  k.nodes.resize(nodes);
  for (Node& n : k.nodes) {
    if (!in.good()) break;
    n.op = in.one_of<Op>(static_cast<uint32_t>(Op::count_), "op");
    n.type = read_type(in);
    n.width = static_cast<uint8_t>(in.byte());
    if (n.width != 1 && n.width != 2 && n.width != 4) in.fail("width " + std::to_string(n.width));
    if (!in.good()) break;
    const int operands = n.op == Op::tuple ? n.width : op_info(n.op).operands;
    Ref* all[4] = {&n.a, &n.b, &n.c, &n.d};
    for (int i = 0; i < operands; ++i) *all[i] = in.ref(nodes);
    n.imm = in.number();
    n.body = in.ref(nodes + 1);
  }
  k.blocks.resize(in.count());
  for (auto& block : k.blocks) {
    if (!in.good()) break;
    block.resize(in.count());
    for (Ref& r : block) {
      r = in.u32_number();
      if (r >= nodes) in.fail("node " + std::to_string(r) + " is not there");
    }
  }
  for (const Node& n : k.nodes) {
    if (n.body != kNone && n.body >= k.blocks.size())
      in.fail("statement list " + std::to_string(n.body) + " is not there");
  }
  if (in.good() && !in.end()) in.fail("bytes behind the kernel");
  if (!in.good()) return in.error();
  return k;
}

Hash kernel_hash(const Kernel& kernel) { return Hasher().bytes(serialize(kernel)).done(); }

}  // namespace tern::kir
