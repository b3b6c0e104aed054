// Loads and stores: every storage type in terms of what the caps can address.
#include <string>
#include <vector>

#include "kir/make/state.h"

namespace tern::kir {

uint32_t B::State::view(uint32_t binding, Type type, int width) {
  const View wanted{binding, type, static_cast<uint8_t>(width)};
  for (uint32_t i = 0; i < k.views.size(); ++i) {
    if (k.views[i] == wanted) return i;
  }
  k.views.push_back(wanted);
  return static_cast<uint32_t>(k.views.size() - 1);
}

namespace {

bool good_width(Type type, int width) {
  if (width == 1) return true;
  if (width == 2) return type_bytes(type) == 4 || type_bytes(type) == 2;
  return width == 4 && type_bytes(type) <= 4;
}

// A small element from raw bits whose low bits are it; `junk` says whether others may be set.
V decode(Type type, const V& raw, bool junk) {
  switch (type) {
    case f16: return half_to_f32(raw);
    case bf16: return bf16_to_f32(raw);
    case i16: return sign_extend(raw, 16);
    case u16: return junk ? raw & 0xffff : raw;
    case i8: return sign_extend(raw, 8);
    case u8: return junk ? raw & 0xff : raw;
    default: return (junk ? raw & 0xff : raw) != 0;
  }
}

// The low bits of a value as it is stored; the rest is 0.
V encode(Type type, const V& v) {
  B& b = B::current();
  switch (type) {
    case f16: return f32_to_half(v);
    case bf16: return f32_to_bf16(v);
    case i16: return bitcast(u32, b.typed(v, i32)) & 0xffff;
    case u16: return b.typed(v, u32) & 0xffff;
    case i8: return bitcast(u32, b.typed(v, i32)) & 0xff;
    case u8: return b.typed(v, u32) & 0xff;
    default: return cast(u32, b.typed(v, b1));
  }
}

}  // namespace

Buffer B::buffer(std::string_view name, Type type, Access access, BufferOptions options) {
  Buffer out;
  if (s_->k.binding(name) != kNone) fail("two buffers are called " + std::string(name));
  if (type == Type::none || type == b1)
    fail("buffer " + std::string(name) + " of " + std::string(type_name(type)) + "; b8 holds bools");
  if (!good_width(type, options.width)) {
    fail("buffer " + std::string(name) + ": " + std::string(type_name(type)) + " elements are not read " +
         std::to_string(options.width) + " at once");
  }
  out.binding_ = static_cast<uint32_t>(s_->k.bindings.size());
  out.type_ = type;
  out.width_ = static_cast<uint8_t>(options.width);
  s_->k.bindings.push_back({std::string(name), type, out.width_, access, options.streaming});
  return out;
}

Buffer Buffer::as(Type type, int width) const {
  Buffer out = *this;
  out.offset_ = V();
  out.type_ = type;
  out.width_ = static_cast<uint8_t>(width);
  if (type == Type::none || type == b1 || !good_width(type, width)) {
    B::current().fail("a view of " + std::string(type_name(type)) + " " + std::to_string(width) + " wide");
    out.type_ = f32;
    out.width_ = 1;
  }
  return out;
}

Buffer Buffer::at(const V& elements) const {
  Buffer out = *this;
  const V e = B::current().typed(elements, u32);
  out.offset_ = offset_.valid() ? offset_ + e : e;
  return out;
}

V Buffer::operator[](const V& index) const {
  if (width_ != 1) B::current().fail("operator[] on a view " + std::to_string(width_) + " wide; use load()");
  return load(index)[0];
}

Parts Buffer::load(const V& index) const {
  B& b = B::current();
  const Caps& caps = b.caps();
  Parts out;
  out.width_ = width_;
  const Type value = type_info(type_).loaded;
  out.v_.fill(V(0));
  if (binding_ == kNone) b.fail("a load from a buffer that was never declared");
  V i = b.typed(index, u32);
  if (offset_.valid()) i = i + offset_;
  if (b.failed()) {
    out.v_.fill(b.value(0, value));
    return out;
  }
  const auto words = [&](Type type, int width, const V& at) {  // a plain load, `width` scalars
    const uint32_t view = b.s_->view(binding_, type, width);
    std::vector<V> parts;
    const Type t = type_info(type).loaded;
    if (width == 1) return parts.push_back(b.emit(Op::load, t, at, {}, {}, view)), parts;
    Node node{.op = Op::load, .type = t, .width = static_cast<uint8_t>(width), .a = at.ref(), .imm = view};
    const bool fixed = b.s_->k.bindings[binding_].access == Access::read;
    const V wide = b.value(fixed ? b.s_->numbered(node) : b.s_->append(node), t);
    for (int p = 0; p < width; ++p) parts.push_back(b.emit(Op::part, t, wide, {}, {}, static_cast<uint64_t>(p)));
    return parts;
  };
  const int bytes = static_cast<int>(type_bytes(type_)), bits = bytes * 8;
  if (bytes >= 4) {
    const auto parts = words(type_, width_, i);
    for (int p = 0; p < width_; ++p) out.v_[p] = parts[p];
  } else if (width_ > 1) {  // whole words
    const int count = width_ * bytes / 4, per_word = 4 / bytes;
    const auto parts = words(u32, count, i);
    for (int p = 0; p < width_; ++p) {
      const int shift = p % per_word * bits;
      out.v_[p] = decode(type_, parts[p / per_word] >> shift, shift + bits < 32);
    }
  } else if (bytes == 2 ? caps.f16_storage : caps.byte_storage) {
    if (type_ == bf16 || type_ == b8) {
      out.v_[0] = decode(type_, words(type_ == b8 ? u8 : u16, 1, i)[0], false);
    } else {
      out.v_[0] = words(type_, 1, i)[0];
    }
  } else {
    const int per_word = 4 / bytes;
    const V word = words(u32, 1, i / per_word)[0];
    out.v_[0] = decode(type_, word >> ((i % per_word) * bits), true);
  }
  return out;
}

void Buffer::prefetch(const V& index) const {
  B& b = B::current();
  if (binding_ == kNone) return b.fail("a prefetch from a buffer that was never declared");
  V i = b.typed(index, u32);
  if (offset_.valid()) i = i + offset_;
  if (b.failed() || !b.caps().lockstep) return;
  // In words: views of smaller elements may not reach an emitter.
  const int bytes = static_cast<int>(type_bytes(type_)) * width_;
  const V word = bytes >= 4 ? i * (bytes / 4) : i / (4 / bytes);
  b.emit(Op::prefetch, Type::none, word, {}, {}, b.s_->view(binding_, u32, 1));
}

void Buffer::store(const V& index, const V& value) const { store(index, std::span(&value, 1)); }

void Buffer::store(const V& index, std::span<const V> values) const {
  B& b = B::current();
  if (binding_ == kNone) return b.fail("a store to a buffer that was never declared");
  const std::string& name = b.s_->k.bindings[binding_].name;
  if (b.s_->k.bindings[binding_].access == Access::read) b.fail("a store to " + name + ", which is bound for reading");
  if (static_cast<int>(values.size()) != width_) {
    b.fail(std::to_string(values.size()) + " values stored to " + name + ", a view " + std::to_string(width_) +
           " wide");
  }
  V i = b.typed(index, u32);
  if (offset_.valid()) i = i + offset_;
  std::vector<V> v;
  for (const V& x : values) v.push_back(b.typed(x, type_info(type_).loaded));
  if (b.failed()) return;
  Type type = type_;
  if (type_bytes(type_) < 4 && width_ > 1) {  // whole words
    const int bytes = static_cast<int>(type_bytes(type_)), per_word = 4 / bytes;
    std::vector<V> packed;
    for (int p = 0; p < width_; ++p) {
      const V part = encode(type_, v[p]) << (p % per_word * bytes * 8);
      if (p % per_word == 0)
        packed.push_back(part);
      else
        packed.back() = packed.back() | part;
    }
    v = std::move(packed);
    type = u32;
  } else if (type_ == bf16 || type_ == b8) {
    v[0] = encode(type_, v[0]);
    type = type_ == b8 ? u8 : u16;
  }
  const uint32_t view = b.s_->view(binding_, type, static_cast<int>(v.size()));
  Ref what = v[0].ref();
  if (v.size() > 1) {
    Node tuple{.op = Op::tuple,
               .type = v[0].type(),
               .width = static_cast<uint8_t>(v.size()),
               .a = v[0].ref(),
               .b = v[1].ref()};
    if (v.size() == 4) tuple.c = v[2].ref(), tuple.d = v[3].ref();
    what = b.s_->append(tuple);
  }
  b.s_->append({.op = Op::store, .a = i.ref(), .b = what, .imm = view});
}

// ---- workgroup memory

Shared B::shared(std::string_view name, Type type, uint32_t count) {
  Shared out;
  if (!type_info(type).value || type == b1 || count == 0) {
    fail("workgroup array " + std::string(name) + ": " + std::to_string(count) + " of " + std::string(type_name(type)));
  }
  out.array_ = static_cast<uint32_t>(s_->k.arrays.size());
  out.count_ = count;
  out.type_ = type;
  s_->k.arrays.push_back({std::string(name), type, count});
  return out;
}

V Shared::operator[](const V& index) const {
  B& b = B::current();
  if (array_ == kNone) b.fail("a workgroup array that was never declared");
  const V i = b.typed(index, u32);
  return b.emit(Op::wg_load, type_ == Type::none ? f32 : type_, i, {}, {}, array_);
}

void Shared::store(const V& index, const V& value) const {
  B& b = B::current();
  if (array_ == kNone) return b.fail("a workgroup array that was never declared");
  const V i = b.typed(index, u32), v = b.typed(value, type_);
  b.emit(Op::wg_store, Type::none, i, v, {}, array_);
}

}  // namespace tern::kir
