#include "base/utf8.h"

#include <cstdint>

namespace tern {
namespace {

uint8_t at(std::string_view text, size_t i) { return i < text.size() ? static_cast<uint8_t>(text[i]) : 0; }
bool in(uint8_t byte, uint8_t low, uint8_t high) { return byte >= low && byte <= high; }
bool tail(uint8_t byte) { return in(byte, 0x80, 0xBF); }

// The lead byte narrows the range of the second byte; that excludes overlong forms and surrogates.
bool second_ok(uint8_t lead, uint8_t second) {
  if (lead == 0xE0) return in(second, 0xA0, 0xBF);
  if (lead == 0xED) return in(second, 0x80, 0x9F);
  if (lead == 0xF0) return in(second, 0x90, 0xBF);
  if (lead == 0xF4) return in(second, 0x80, 0x8F);
  return tail(second);
}

size_t wanted(uint8_t lead) {
  if (lead < 0x80) return 1;
  if (in(lead, 0xC2, 0xDF)) return 2;
  if (in(lead, 0xE0, 0xEF)) return 3;
  if (in(lead, 0xF0, 0xF4)) return 4;
  return 0;
}

// How many bytes of an ill-formed piece one U+FFFD stands for.
size_t bad_piece(std::string_view text) {
  const size_t want = wanted(at(text, 0));
  if (want < 2 || text.size() < 2 || !second_ok(at(text, 0), at(text, 1))) return 1;
  size_t n = 2;
  while (n < want && n < text.size() && tail(at(text, n))) ++n;
  return n;
}

void append_escaped(std::string& out, std::string_view piece) {
  static constexpr char kHex[] = "0123456789abcdef";
  const uint8_t c = at(piece, 0);
  const bool c1 = piece.size() == 2 && c == 0xC2 && at(piece, 1) < 0xA0;
  if (c == '\n')
    out += "\\n";
  else if (c == '\t')
    out += "\\t";
  else if (c == '"' || c == '\\')
    (out += '\\') += static_cast<char>(c);
  else if (c < 0x20 || c == 0x7F || c1) {
    const uint8_t code = c1 ? at(piece, 1) : c;
    ((out += "\\x") += kHex[code >> 4]) += kHex[code & 15];
  } else
    out += piece;
}

}  // namespace

size_t utf8_sequence(std::string_view text) {
  if (text.empty()) return 0;
  const size_t want = wanted(at(text, 0));
  if (want == 0 || want > text.size()) return 0;
  if (want > 1 && !second_ok(at(text, 0), at(text, 1))) return 0;
  for (size_t i = 2; i < want; ++i)
    if (!tail(at(text, i))) return 0;
  return want;
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const size_t n = utf8_sequence(text);
    if (n == 0) return false;
    text.remove_prefix(n);
  }
  return true;
}

std::string utf8_lossy(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    size_t n = utf8_sequence(text);
    if (n != 0) {
      out += text.substr(0, n);
    } else {
      out += "\xEF\xBF\xBD";
      n = bad_piece(text);
    }
    text.remove_prefix(n);
  }
  return out;
}

std::string printable(std::string_view text, size_t max_bytes) {
  std::string out;
  while (!text.empty()) {
    if (out.size() >= max_bytes) return out + "...";
    size_t n = utf8_sequence(text);
    if (n != 0) {
      append_escaped(out, text.substr(0, n));
    } else {
      out += "\xEF\xBF\xBD";
      n = bad_piece(text);
    }
    text.remove_prefix(n);
  }
  return out;
}

}  // namespace tern
