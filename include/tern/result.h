// Results and refusals: how tern says that something went wrong.
// Two kinds of wrong exist. The world's faults (files, drivers, users, memory) come back as Result<T>; a programming
// fault inside tern stops at TERN_CHECK (src/base/check.h). Nothing throws across this interface, but for
// std::bad_alloc out of functions that return neither a Status nor a Result.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>

namespace tern {

enum class Code : uint8_t {
  invalid,        // the caller asked for something that makes no sense
  malformed,      // bytes that are not what they claim to be
  unsupported,    // well formed, but not something this build or device does
  not_found,      // a name, file or device that is not there
  out_of_memory,  // need/have hold bytes
  device_lost,
  io,
  cancelled,
  limit,     // a configured or physical limit other than memory
  internal,  // a fault of tern itself that could be reported instead of stopping the process
};

// The stable lower-case name that the command line and the C ABI print ("malformed", "out_of_memory", ...).
std::string_view code_name(Code code);

struct Error {
  Code code = Code::internal;
  std::string text;   // one sentence that names the thing and the cure
  std::string where;  // "blk.3.attn_q.weight @0x1f40", "node 17 (dot_general)"; may be empty
  uint64_t need = 0;  // bytes, where the error is about memory or sizes
  uint64_t have = 0;

  // "text (where)"; what a program shows to a person.
  std::string message() const;
};

// A value or an Error. Thread-compatible like a plain value.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : v_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : v_(std::in_place_index<1>, std::make_unique<Error>(std::move(error))) {}
  template <class U>
    requires(std::is_convertible_v<U &&, T> && !std::is_same_v<std::remove_cvref_t<U>, T> &&
             !std::is_same_v<std::remove_cvref_t<U>, Error> && !std::is_same_v<std::remove_cvref_t<U>, Result>)
  Result(U&& value) : v_(std::in_place_index<0>, std::forward<U>(value)) {}

  bool ok() const { return v_.index() == 0; }
  explicit operator bool() const { return ok(); }
  T& operator*() & { return *std::get_if<0>(&v_); }
  const T& operator*() const& { return *std::get_if<0>(&v_); }
  T&& operator*() && { return std::move(*std::get_if<0>(&v_)); }
  T* operator->() { return std::get_if<0>(&v_); }
  const T* operator->() const { return std::get_if<0>(&v_); }
  const Error& error() const { return **std::get_if<1>(&v_); }
  Error take_error() { return std::move(**std::get_if<1>(&v_)); }

 private:
  std::variant<T, std::unique_ptr<Error>> v_;
};

using Unit = std::monostate;
using Status = Result<Unit>;
inline Status ok() { return Status(Unit{}); }

inline Error make_error(Code code, std::string text, std::string where = {}) {
  return Error{code, std::move(text), std::move(where), 0, 0};
}

// A refusal is an answer, not an error: "k = 96, wants a multiple of 128". Refusals are collected and shown by explain.
struct Refusal {
  std::string why;
};
inline Refusal refuse(std::string why) { return Refusal{std::move(why)}; }

template <class T>
class [[nodiscard]] OrRefuse {
 public:
  OrRefuse(T value) : v_(std::in_place_index<0>, std::move(value)) {}
  OrRefuse(Refusal refusal) : v_(std::in_place_index<1>, std::move(refusal)) {}

  bool ok() const { return v_.index() == 0; }
  explicit operator bool() const { return ok(); }
  T& operator*() & { return *std::get_if<0>(&v_); }
  const T& operator*() const& { return *std::get_if<0>(&v_); }
  T&& operator*() && { return std::move(*std::get_if<0>(&v_)); }
  T* operator->() { return std::get_if<0>(&v_); }
  const T* operator->() const { return std::get_if<0>(&v_); }
  const std::string& why() const { return std::get_if<1>(&v_)->why; }

 private:
  std::variant<T, Refusal> v_;
};

}  // namespace tern

#define TERN_CONCAT_(a, b) a##b
#define TERN_CONCAT(a, b) TERN_CONCAT_(a, b)
#define TERN_TRY_(tmp, decl, expr)     \
  auto tmp = (expr);                   \
  if (!tmp) return (tmp).take_error(); \
  decl = std::move(*tmp)
// TERN_TRY(auto x, f()) leaves the function with f's error, or declares x.
#define TERN_TRY(decl, ...) TERN_TRY_(TERN_CONCAT(tern_try_, __LINE__), decl, (__VA_ARGS__))
// TERN_OK(f()) leaves the function with f's error and drops the value.
#define TERN_OK(...)                                     \
  do {                                                   \
    auto tern_status_ = (__VA_ARGS__);                   \
    if (!tern_status_) return tern_status_.take_error(); \
  } while (0)
// TERN_ACCEPT(auto x, f()) leaves the function with f's refusal, or declares x.
#define TERN_ACCEPT_(tmp, decl, expr)           \
  auto tmp = (expr);                            \
  if (!tmp) return ::tern::refuse((tmp).why()); \
  decl = std::move(*tmp)
#define TERN_ACCEPT(decl, ...) TERN_ACCEPT_(TERN_CONCAT(tern_accept_, __LINE__), decl, (__VA_ARGS__))
