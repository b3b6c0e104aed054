// A language of kernels as data: a table of spellings, and hooks for what no spelling says.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "kir/ir.h"

namespace tern::emit {

class Writer;
struct Dialect;

// How an op is written where the base's own operators do not serve. In spellings $a $b $c stand for the operands, $t
// for the type of the result, $u for its unsigned twin, $n for a name.
struct OpRow {
  kir::Op op;
  kir::Type of;  // of the (first) operand; none: of any type
  std::string_view text;
};
struct TypeRow {
  kir::Type type;
  std::string_view name;
};

// What follows the type's name in the C family: float4.
std::string c_vector(std::string_view type, int width);
// A writer that takes a lane's values one by one, and the work-items of that.
std::unique_ptr<Writer> lane_writer(const Dialect& dialect, const kir::Kernel& kernel);
uint32_t lane_work_items(const kir::Kernel& kernel);

// What a row leaves out is written as in C.
struct Dialect {
  std::string_view name;
  std::span<const TypeRow> types;
  std::span<const OpRow> ops;
  std::string_view cast = "($t)($a)";  // $t of $a: between numbers whose values agree, or to the low bits
  std::string_view saturate;           // a float $a to the integer $t: toward zero, NaN gives 0
  std::string_view select = "$a ? $b : $c";
  std::string_view constant = "const $t $n = $a;", variable = "$t $n = $a;";  // $n of type $t with the value $a
  // Over $n of type $t from $a to below $b, and the opening brace.
  std::string_view loop = "for ($t $n = $a; $n < $b; ++$n) {";
  // To $t, with $q before it where nothing is written through it; empty: bindings are arrays.
  std::string_view pointer = {};
  std::string_view half_load = {}, half_store = {};  // the half at $a[$b]; $c into it
  std::string_view reinterpret;                      // the bits of $a, of a type of the same size, as $t
  std::string_view tuple;                            // a vector of type $t out of $a
  bool signed_wraps = false;  // signed integers wrap around; else they are computed as unsigned ones

  std::string (*vector)(std::string_view type, int width) = c_vector;  // a vector type's name
  std::string (*number)(kir::Type type, uint64_t bits);                // a constant
  std::string (*head)(const Writer& w);                                // all before the first statement, with its brace
  std::unique_ptr<Writer> (*writer)(const Dialect& dialect, const kir::Kernel& kernel) = lane_writer;
  uint32_t (*work_items)(const kir::Kernel& kernel) = lane_work_items;
};

// Replaces $x by the texts given: "abctuqn" in pairs of a letter and what it stands for.
struct Fill {
  char letter;
  std::string_view text;
};
std::string fill(std::string_view pattern, std::initializer_list<Fill> with);

#define TERN_DIALECT(name) extern const Dialect name;
#include "emit/dialect_list.inc"
#undef TERN_DIALECT

}  // namespace tern::emit
