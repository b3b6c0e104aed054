#include "rewrites.h"

namespace tern {
namespace {

// What `expression` over %x, %y, %z : f32[4], %i, %j : i32[4], %b, %c : bool[4] and the given constants becomes.
std::string simplified(const std::string& expression) {
  const std::string leaves = R"(  %x = input "x" : f32[4]
  %y = input "y" : f32[4]
  %i = input "i" : i32[4]
  %j = input "j" : i32[4]
  %b = input "b" : bool[4]
  %h = input "h" : f16[4]
  %zero = constant() {value = f32[4] {0, 0, 0, 0}} : f32[4]
  %nzero = constant() {value = f32[4] {-0, -0, -0, -0}} : f32[4]
  %one = constant() {value = f32[4] {1, 1, 1, 1}} : f32[4]
  %izero = constant() {value = i32[4] {0, 0, 0, 0}} : i32[4]
  %ione = constant() {value = i32[4] {1, 1, 1, 1}} : i32[4]
  %iall = constant() {value = i32[4] {-1, -1, -1, -1}} : i32[4]
  %mixed = constant() {value = i32[4] {0, 0, 0, 1}} : i32[4]
  %true = constant() {value = bool[4] {1, 1, 1, 1}} : bool[4]
)";
  std::string text = after(simplify, leaves + expression + "  output \"o\" %o\n");
  // Only what follows the leaves is of interest.
  return text.find("%h = ") == std::string::npos ? text : text.substr(text.find('\n', text.find("%h = ")) + 1);
}

constexpr const char* kX = "  output \"o\" %x\n";
constexpr const char* kI = "  output \"o\" %i\n";

TEST(Simplify, FloatIdentitiesAreExact) {
  EXPECT_EQ(simplified("  %o = mul(%x, %one) : f32[4]\n"), kX);
  EXPECT_EQ(simplified("  %o = div(%x, %one) : f32[4]\n"), kX);
  EXPECT_EQ(simplified("  %o = sub(%x, %zero) : f32[4]\n"), kX);
  EXPECT_EQ(simplified("  %o = add(%x, %nzero) : f32[4]\n"), kX);
  EXPECT_EQ(simplified("  %o = pow(%x, %one) : f32[4]\n"), kX);
  // -0 + 0 is 0, NaN * 0 is NaN, -0 - -0 is 0: these stay.
  for (const char* stays : {"add(%x, %zero)", "mul(%x, %zero)", "sub(%x, %nzero)", "sub(%x, %x)", "div(%x, %x)"}) {
    EXPECT_NE(simplified(std::string("  %o = ") + stays + " : f32[4]\n").find(std::string(stays).substr(0, 3)),
              std::string::npos)
        << stays;
  }
}

TEST(Simplify, IntegerIdentities) {
  EXPECT_EQ(simplified("  %o = add(%i, %izero) : i32[4]\n"), kI);
  EXPECT_EQ(simplified("  %o = mul(%i, %ione) : i32[4]\n"), kI);
  EXPECT_EQ(simplified("  %o = bit_and(%i, %iall) : i32[4]\n"), kI);
  EXPECT_EQ(simplified("  %o = bit_or(%i, %izero) : i32[4]\n"), kI);
  EXPECT_EQ(simplified("  %o = shift_left(%i, %izero) : i32[4]\n"), kI);
  EXPECT_EQ(simplified("  %o = mul(%i, %izero) : i32[4]\n"),
            "  %0 = constant() {value = i32[4] {0, 0, 0, 0}} : i32[4]\n  output \"o\" %0\n");
  EXPECT_NE(simplified("  %o = add(%i, %mixed) : i32[4]\n").find("add"), std::string::npos);
  EXPECT_EQ(simplified("  %o = bit_and(%b, %true) : bool[4]\n"), "  output \"o\" %b\n");
}

TEST(Simplify, SignsAndRepetition) {
  EXPECT_EQ(simplified("  %n = neg(%x) : f32[4]\n  %o = neg(%n) : f32[4]\n"), kX);
  EXPECT_EQ(simplified("  %n = neg(%x) : f32[4]\n  %o = abs(%n) : f32[4]\n"),
            "  %0 = abs(%x) : f32[4]\n  output \"o\" %0\n");
  EXPECT_EQ(simplified("  %n = neg(%y) : f32[4]\n  %o = add(%x, %n) : f32[4]\n"),
            "  %0 = sub(%x, %y) : f32[4]\n  output \"o\" %0\n");
  EXPECT_EQ(simplified("  %n = neg(%y) : f32[4]\n  %o = sub(%x, %n) : f32[4]\n"),
            "  %0 = add(%x, %y) : f32[4]\n  output \"o\" %0\n");
  EXPECT_EQ(simplified("  %n = relu(%x) : f32[4]\n  %o = relu(%n) : f32[4]\n"),
            "  %0 = relu(%x) : f32[4]\n  output \"o\" %0\n");
  EXPECT_EQ(simplified("  %n = floor(%x) : f32[4]\n  %o = round(%n) : f32[4]\n"),
            "  %0 = floor(%x) : f32[4]\n  output \"o\" %0\n");
  EXPECT_EQ(simplified("  %o = max(%x, %x) : f32[4]\n"), kX);
  EXPECT_NE(simplified("  %n = exp(%x) : f32[4]\n  %o = log(%n) : f32[4]\n").find("log"), std::string::npos);
}

TEST(Simplify, Select) {
  EXPECT_EQ(simplified("  %o = select(%true, %x, %y) : f32[4]\n"), kX);
  EXPECT_EQ(simplified("  %o = select(%b, %x, %x) : f32[4]\n"), kX);
  EXPECT_EQ(simplified("  %n = logical_not(%b) : bool[4]\n  %o = select(%n, %y, %x) : f32[4]\n"),
            "  %0 = select(%b, %x, %y) : f32[4]\n  output \"o\" %0\n");
}

TEST(Simplify, Casts) {
  EXPECT_EQ(simplified("  %o = cast(%x) {to = f32} : f32[4]\n"), kX);
  EXPECT_EQ(simplified("  %w = cast(%h) {to = f32} : f32[4]\n  %o = cast(%w) {to = bf16} : bf16[4]\n"),
            "  %0 = cast(%h) {to = bf16} : bf16[4]\n  output \"o\" %0\n");
  EXPECT_EQ(simplified("  %w = cast(%h) {to = f64} : f64[4]\n  %o = cast(%w) {to = f16} : f16[4]\n"),
            "  output \"o\" %h\n");
  EXPECT_EQ(simplified("  %w = cast(%i) {to = i64} : i64[4]\n  %o = cast(%w) {to = i32} : i32[4]\n"), kI);
  // The first cast rounds: both stay.
  EXPECT_NE(simplified("  %w = cast(%x) {to = f16} : f16[4]\n  %o = cast(%w) {to = f32} : f32[4]\n").find("cast(%0)"),
            std::string::npos);
  EXPECT_NE(simplified("  %w = cast(%i) {to = f32} : f32[4]\n  %o = cast(%w) {to = f64} : f64[4]\n").find("cast(%0)"),
            std::string::npos);
  // Exact, but integers wrap where floats do not.
  EXPECT_NE(simplified("  %w = cast(%i) {to = f64} : f64[4]\n  %o = cast(%w) {to = u8} : u8[4]\n").find("cast(%0)"),
            std::string::npos);
}

TEST(Simplify, MovementThatMovesNothing) {
  EXPECT_EQ(simplified("  %o = reshape(%x) {shape = [4]} : f32[4]\n"), kX);
  EXPECT_EQ(simplified("  %o = transpose(%x) {perm = [0]} : f32[4]\n"), kX);
  EXPECT_EQ(simplified("  %o = slice(%x) {start = [0], limit = [4], step = [1]} : f32[4]\n"), kX);
  EXPECT_EQ(simplified("  %o = broadcast(%x) {shape = [4], axes = [0]} : f32[4]\n"), kX);
  EXPECT_EQ(simplified("  %o = concat(%x) {axis = 0} : f32[4]\n"), kX);
  EXPECT_EQ(simplified("  %n = slice(%x) {start = [2], limit = [2], step = [1]} : f32[0]\n  %o = concat(%x, %n) {axis "
                       "= 0} : f32[4]\n"),
            kX);
  EXPECT_NE(simplified("  %o = slice(%x) {start = [3], limit = [-1], step = [-1]} : f32[4]\n").find("slice"),
            std::string::npos);
}

TEST(Simplify, ASquareTransposeIsNoIdentity) {
  const std::string body =
      "  %x = input \"x\" : f32[4, 4]\n  %0 = transpose(%x) {perm = [1, 0]} : f32[4, 4]\n  output \"o\" %0\n";
  EXPECT_EQ(after(simplify, body), body);
  EXPECT_EQ(after(simplify,
                  "  symbol T in [1, 9]\n  %x = input \"x\" : f32[1, T]\n  %0 = transpose(%x) {perm = [0, 1]} : f32[1, "
                  "T]\n  output \"o\" %0\n"),
            "  symbol T in [1, 9]\n  %x = input \"x\" : f32[1, T]\n  output \"o\" %x\n");
}

// Through broadcasts, and with outputs and updates as users.
TEST(Simplify, UniformConstantsAreSeenThroughViews) {
  EXPECT_EQ(after(simplify, R"(  symbol T in [1, 9]
  %x = input "x" : f32[T, 3]
  %s = state "s" : f32[T, 3]
  %0 = constant() {value = f32[] {1}} : f32[]
  %1 = broadcast(%0) {shape = [T, 3], axes = []} : f32[T, 3]
  %2 = mul(%x, %1) : f32[T, 3]
  output "o" %2
  update "s" %2
)"),
            "  symbol T in [1, 9]\n  %x = input \"x\" : f32[T, 3]\n  %s = state \"s\" : f32[T, 3]\n  output \"o\" %x\n "
            " update \"s\" %x\n");
}

}  // namespace
}  // namespace tern
