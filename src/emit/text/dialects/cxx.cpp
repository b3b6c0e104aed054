#include "emit/text/dialects/cxx.h"

namespace tern::emit {

std::string cxx_number(kir::Type type, uint64_t bits) {
  if (type == kir::f32 && (bits & 0x7f800000u) == 0x7f800000u)
    return "tern_as<float>(" + c_number(kir::u32, bits) + ")";
  if (type == kir::f64 && (bits >> 52 & 0x7ff) == 0x7ff) return "tern_as<double>(" + std::to_string(bits) + "ull)";
  if (type == kir::u64) return std::to_string(bits) + "ull";
  if (type == kir::i64) return "(long long)" + std::to_string(bits) + "ull";
  return c_number(type, bits);
}

std::string cxx_vector(std::string_view type, int width) {
  return c_vector(type == "unsigned int" ? "uint" : type, width);
}

std::string cxx_prelude(std::string_view words, std::string_view more) {
  constexpr std::string_view kText = R"(#ifndef TERN_PRELUDE
#define TERN_PRELUDE
$a
template <class T, class F> $t T tern_as(F v) { union { F from; T to; } u; u.from = v; return u.to; }
template <class T, class F> $t T tern_cut(F v) {
  const bool plus = (T)-1 > (T)0, wide = sizeof(T) == 8;
  const F top = plus ? (wide ? (F)18446744073709551616.0f : (F)4294967296.0f) : wide ? (F)9223372036854775808.0f : (F)2147483648.0f;
  const T least = plus ? (T)0 : (T)((T)1 << (sizeof(T) * 8 - 1)), most = ~least;
  return v != v ? (T)0 : v >= top ? most : v < (plus ? (F)0 : -top) ? least : (T)v;
}
#endif
)";
  return fill(kText, {{'a', more}, {'t', words}});
}

std::string cxx_arguments(const Writer& w, std::string_view restrict) {
  const kir::Kernel& k = w.kernel();
  std::string text;
  for (uint32_t i = 0; i < k.bindings.size(); ++i) {
    text += (text.empty() ? "" : ", ") + w.pointer_to(i, w.type(w.storage(i).type)) + std::string(restrict) + " p" +
            std::to_string(i);
  }
  for (size_t i = 0; i < k.dims.size(); ++i)
    text += (text.empty() ? "" : ", ") + w.type(kir::u32) + " d" + std::to_string(i);
  return text;
}

std::string cxx_arrays(const Writer& w, std::string_view shared) {
  std::string text;
  for (size_t i = 0; i < w.kernel().arrays.size(); ++i) {
    const kir::Array& a = w.kernel().arrays[i];
    text += "  " + std::string(shared) + " " + w.type(a.type) + " s" + std::to_string(i) + "[" +
            std::to_string(a.count) + "];\n";
  }
  return text;
}

}  // namespace tern::emit
