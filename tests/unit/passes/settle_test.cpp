// settle: shape arithmetic that something else than a size reads.
#include "rewrites.h"

namespace tern {
namespace {

constexpr const char* kHead =
    "  symbol B in [1, 64]\n"
    "  symbol T in [0, 512]\n"
    "  %x = input \"x\" : f32[B, T]\n";

TEST(Settle, ArithmeticBecomesWhatItSays) {
  EXPECT_EQ(after(settle, std::string(kHead) + "  %s = dims() {values = [B, T]} : i64[2]\n"
                                               "  %one = constant() {value = i64[] {1}} : i64[]\n"
                                               "  %t = gather(%s, %one) : i64[]\n"
                                               "  %two = mul(%t, %t) : i64[]\n"
                                               "  %c = concat(%s, %s) {axis = 0} : i64[4]\n"
                                               "  %m = reshape(%c) {shape = [2, 2]} : i64[2, 2]\n"
                                               "  %n = cast(%s) {to = i32} : i32[2]\n"
                                               "  output \"two\" %two\n"
                                               "  output \"n\" %n\n"
                                               "  output \"m\" %m\n"),
            std::string(kHead) +
                "  %0 = dim() {value = T*T} : i64[]\n"
                "  %1 = dims() {values = [B, T], dtype = i32} : i32[2]\n"
                "  %2 = dims() {values = [B, T, B, T]} : i64[4]\n"
                "  %3 = reshape(%2) {shape = [2, 2]} : i64[2, 2]\n"
                "  output \"two\" %0\n"
                "  output \"n\" %1\n"
                "  output \"m\" %3\n");
  // A number for all sizes is a constant.
  EXPECT_EQ(after(settle, std::string(kHead) + "  %s = dims() {values = [B, T]} : i64[2]\n"
                                               "  %z = constant() {value = i64[] {0}} : i64[]\n"
                                               "  %lt = lt(%s, %z) : bool[2]\n"
                                               "  output \"lt\" %lt\n"),
            std::string(kHead) +
                "  %0 = constant() {value = bool[2] {0, 0}} : bool[2]\n"
                "  output \"lt\" %0\n");
}

// An index and a number are cheaper than a list of sums, and what a float says is no size.
TEST(Settle, LeavesWhatIsCheaperAsItStands) {
  const std::string body = std::string(kHead) +
                           "  %0 = iota() {shape = [3], axis = 0} : i32[3]\n"
                           "  %1 = dim() {value = T, dtype = i32} : i32[]\n"
                           "  %2 = add(%0, %1) : i32[3]\n"
                           "  %3 = cast(%2) {to = f32} : f32[3]\n"
                           "  output \"y\" %3\n";
  EXPECT_EQ(after(settle, body), body);
  const std::string numbers = "{value = i32[9] {0, 1, 2, 3, 4, 5, 6, 7, 9}} : i32[9]\n";
  const std::string many = std::string(kHead) +
                           "  %0 = dim() {value = T, dtype = i32} : i32[]\n"
                           "  %1 = constant() " +
                           numbers +
                           "  %2 = add(%0, %1) : i32[9]\n"
                           "  output \"y\" %2\n";
  EXPECT_EQ(after(settle, many), many);
}

}  // namespace
}  // namespace tern
