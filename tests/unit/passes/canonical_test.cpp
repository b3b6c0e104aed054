#include "rewrites.h"

namespace tern {
namespace {

TEST(Canonicalise, ConstantsGoRight) {
  EXPECT_EQ(after(canonicalise, R"(  %x = input "x" : f32[2]
  %0 = constant() {value = f32[2] {3, 4}} : f32[2]
  %1 = mul(%0, %x) : f32[2]
  %2 = lt(%0, %1) : bool[2]
  %3 = sub(%0, %1) : f32[2]
  output "a" %2
  output "b" %3
)"),
            R"(  %x = input "x" : f32[2]
  %0 = constant() {value = f32[2] {3, 4}} : f32[2]
  %1 = mul(%x, %0) : f32[2]
  %2 = gt(%1, %0) : bool[2]
  %3 = sub(%0, %1) : f32[2]
  output "a" %2
  output "b" %3
)");
}

TEST(Canonicalise, DivisionByAPowerOfTwo) {
  EXPECT_EQ(after(canonicalise, R"(  %x = input "x" : f32[2]
  %0 = constant() {value = f32[] {8}} : f32[]
  %1 = broadcast(%0) {shape = [2], axes = []} : f32[2]
  %2 = div(%x, %1) : f32[2]
  output "o" %2
)"),
            R"(  %x = input "x" : f32[2]
  %0 = constant() {value = f32[] {0.125}} : f32[]
  %1 = mul(%x, %0) : f32[2]
  output "o" %1
)");
  for (const char* number : {"3", "1e-40", "1.7014118e+38", "0", "inf"}) {
    const std::string body = std::string("  %x = input \"x\" : f32[]\n  %0 = constant() {value = f32[] {") + number +
                             "}} : f32[]\n  %1 = div(%x, %0) : f32[]\n  output \"o\" %1\n";
    EXPECT_EQ(after(canonicalise, body), body);
  }
}

TEST(Canonicalise, ViewsCompose) {
  EXPECT_EQ(after(canonicalise, R"(  symbol T in [1, 9]
  %x = input "x" : f32[T, 2, 6]
  %0 = transpose(%x) {perm = [2, 0, 1]} : f32[6, T, 2]
  %1 = transpose(%0) {perm = [1, 0, 2]} : f32[T, 6, 2]
  %2 = reshape(%x) {shape = [T, 12]} : f32[T, 12]
  %3 = reshape(%2) {shape = [T, 3, 4]} : f32[T, 3, 4]
  %4 = reshape(%3) {shape = [T, 2, 6]} : f32[T, 2, 6]
  %5 = slice(%x) {start = [0, 0, 1], limit = [T, 2, 6], step = [1, 1, 1]} : f32[T, 2, 5]
  %6 = slice(%5) {start = [0, 1, 4], limit = [T, 2, -1], step = [1, 1, -2]} : f32[T, 1, 3]
  output "a" %1
  output "b" %3
  output "c" %4
  output "d" %6
)"),
            R"(  symbol T in [1, 9]
  %x = input "x" : f32[T, 2, 6]
  %0 = transpose(%x) {perm = [0, 2, 1]} : f32[T, 6, 2]
  %1 = reshape(%x) {shape = [T, 3, 4]} : f32[T, 3, 4]
  %2 = slice(%x) {start = [0, 1, 5], limit = [T, 2, 0], step = [1, 1, -2]} : f32[T, 1, 3]
  output "a" %0
  output "b" %1
  output "c" %x
  output "d" %2
)");
}

TEST(Canonicalise, WorkIsDoneBeforeItIsRepeated) {
  EXPECT_EQ(after(canonicalise, R"(  symbol T in [1, 9]
  %w = param "w" : f32[4]
  %x = input "x" : f32[T, 4]
  %0 = constant() {value = f32[] {1}} : f32[]
  %1 = broadcast(%0) {shape = [T, 4], axes = []} : f32[T, 4]
  %2 = broadcast(%w) {shape = [T, 4], axes = [1]} : f32[T, 4]
  %3 = add(%2, %1) : f32[T, 4]
  %4 = exp(%1) : f32[T, 4]
  %5 = mul(%x, %3) : f32[T, 4]
  %6 = mul(%5, %4) : f32[T, 4]
  output "o" %6
)"),
            R"(  symbol T in [1, 9]
  %w = param "w" : f32[4]
  %x = input "x" : f32[T, 4]
  %0 = constant() {value = f32[] {1}} : f32[]
  %1 = add(%w, %0) : f32[4]
  %2 = broadcast(%1) {shape = [T, 4], axes = [1]} : f32[T, 4]
  %3 = mul(%x, %2) : f32[T, 4]
  %4 = exp(%0) : f32[]
  %5 = mul(%3, %4) : f32[T, 4]
  output "o" %5
)");
}

TEST(Canonicalise, UnlikeBroadcastsStay) {
  const std::string body = R"(  %r = param "r" : f32[3]
  %c = param "c" : f32[4]
  %0 = broadcast(%r) {shape = [3, 4], axes = [0]} : f32[3, 4]
  %1 = broadcast(%c) {shape = [3, 4], axes = [1]} : f32[3, 4]
  %2 = add(%0, %1) : f32[3, 4]
  output "o" %2
)";
  EXPECT_EQ(after(canonicalise, body), body);
}

}  // namespace
}  // namespace tern
