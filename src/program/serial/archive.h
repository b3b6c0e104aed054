// The two ends of a serial form: one description of fields serves writing and reading. Reading never trusts a count.
#pragma once

#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "program/program.h"

namespace tern::serial {

// Numbers are variable-length (seven bits a byte, low ones first), signed ones folded; doubles are eight bytes.
class Writer {
 public:
  static constexpr bool kReads = false;

  void number(uint64_t v) {
    for (; v >= 0x80; v >>= 7) byte(static_cast<uint8_t>(v | 0x80));
    byte(static_cast<uint8_t>(v));
  }
  void signed_number(int64_t v) { number((static_cast<uint64_t>(v) << 1) ^ static_cast<uint64_t>(v >> 63)); }
  template <class T>
  void integer(const T& v) {
    if constexpr (std::is_signed_v<T>)
      signed_number(v);
    else
      number(v);
  }
  template <class E>
  void choice(const E& e, size_t) {
    number(static_cast<uint64_t>(e));
  }
  void flag(const bool& b) { byte(b ? 1 : 0); }
  void real(const double& d) { raw(&d, 8); }
  void text(const std::string& s) { number(s.size()), raw(s.data(), s.size()); }
  void name(std::string_view s) { number(s.size()), raw(s.data(), s.size()); }
  void blob(const std::vector<std::byte>& b) { number(b.size()), raw(b.data(), b.size()); }
  void dim(const Dim& d) {
    const auto [it, fresh] = dims_.try_emplace(d, order_.size());
    if (fresh) order_.push_back(d);
    number(it->second);
  }
  template <class T, class F>
  void list(const std::vector<T>& v, F&& each) {
    number(v.size());
    for (const T& x : v) each(x);
  }

  std::vector<std::byte>& out() { return out_; }
  const std::vector<Dim>& dims() const { return order_; }  // in order of first use

 private:
  void byte(uint8_t b) { out_.push_back(std::byte{b}); }
  void raw(const void* from, size_t n) {
    if (n == 0) return;
    const auto* p = static_cast<const std::byte*>(from);
    out_.insert(out_.end(), p, p + n);
  }
  std::vector<std::byte> out_;
  std::map<Dim, uint64_t> dims_;
  std::vector<Dim> order_;
};

// The first fault sticks; after it every read gives zeros and lists are empty.
class Reader {
 public:
  static constexpr bool kReads = true;
  explicit Reader(std::span<const std::byte> in) : in_(in) {}

  uint64_t number() {
    uint64_t v = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const uint8_t b = byte();
      v |= static_cast<uint64_t>(b & 0x7f) << shift;
      if (b < 0x80) return v;
    }
    fail("a number does not end");
    return 0;
  }
  int64_t signed_number() {
    const uint64_t v = number();
    return static_cast<int64_t>(v >> 1) ^ -static_cast<int64_t>(v & 1);
  }
  template <class T>
  void integer(T& v) {
    if constexpr (std::is_signed_v<T>) {
      const int64_t n = signed_number();
      v = static_cast<T>(n);
      if (v != n) fail("a number does not fit its field");
    } else {
      const uint64_t n = number();
      v = static_cast<T>(n);
      if (v != n) fail("a number does not fit its field");
    }
  }
  template <class E>
  void choice(E& e, size_t count) {
    const uint64_t n = number();
    if (n >= count)
      fail("a choice of " + std::to_string(n) + " among " + std::to_string(count));
    else
      e = static_cast<E>(n);
  }
  void flag(bool& b) {
    const uint8_t v = byte();
    if (v > 1) fail("a flag is neither 0 nor 1");
    b = v == 1;
  }
  void real(double& d) { raw(&d, 8); }
  void text(std::string& s) {
    s.resize(count());
    raw(s.data(), s.size());
  }
  std::string name() {
    std::string s;
    text(s);
    return s;
  }
  void blob(std::vector<std::byte>& b) {
    b.resize(count());
    raw(b.data(), b.size());
  }
  void dim(Dim& d) {
    const uint64_t n = number();
    if (n >= dims.size())
      fail("a dim that is not in the table");
    else
      d = dims[n];
  }
  template <class T, class F>
  void list(std::vector<T>& v, F&& each) {
    const size_t n = count();  // every element takes a byte at least
    v.clear();
    for (size_t i = 0; i < n && !failed_; ++i) {
      v.emplace_back();
      each(v.back());
    }
  }
  size_t count() {
    const uint64_t n = number();
    if (n > in_.size() - at_) {
      fail("a count of " + std::to_string(n) + " exceeds what is left");
      return 0;
    }
    return n;
  }
  void fail(std::string why, Code code = Code::malformed) {
    if (failed_) return;
    failed_ = true;
    error_ = make_error(code, "serial program: " + std::move(why), "@" + std::to_string(at_));
    at_ = in_.size();
  }
  bool failed() const { return failed_; }
  bool at_end() const { return at_ == in_.size(); }
  const Error& error() const { return error_; }

  std::vector<Dim> dims;

 private:
  uint8_t byte() {
    if (at_ >= in_.size()) {
      fail("ends too early");
      return 0;
    }
    return static_cast<uint8_t>(in_[at_++]);
  }
  void raw(void* to, size_t n) {
    if (n > in_.size() - at_) return fail("ends too early");
    if (n > 0) std::memcpy(to, in_.data() + at_, n);
    at_ += n;
  }
  std::span<const std::byte> in_;
  size_t at_ = 0;
  bool failed_ = false;
  Error error_;
};

}  // namespace tern::serial
