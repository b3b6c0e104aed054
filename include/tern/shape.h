// Dimensions: constants or expressions over symbols, and the table that owns the expressions.
//
// Sizes are in elements. A DimTable is append-only and not synchronised: one thread writes; after compile it is shared
// read-only between threads.
#pragma once

#include <compare>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tern/result.h"

namespace tern {

// A constant, or the id of an expression interned in a DimTable. An id never passes for a size: the only way to a
// number without a table is constant().
class Dim {
 public:
  constexpr Dim() = default;  // the constant 0
  constexpr Dim(int64_t constant) : value_(constant) {}
  std::optional<int64_t> constant() const { return expr_ ? std::nullopt : std::optional<int64_t>(value_); }
  bool is_expr() const { return expr_; }
  auto operator<=>(const Dim&) const = default;

 private:
  friend class DimTable;
  int64_t value_ = 0;  // the constant, or the index of an expression
  bool expr_ = false;
};

using Shape = std::vector<Dim>;

// A named unknown of the graph: bound by an input whose axis is exactly this symbol, by the caller, or (late) in
// mid-run.
struct Symbol {
  std::string name;
  int64_t min = 0, max = 0;  // inclusive
  int64_t multiple = 1;
  bool late = false;
};

// Narrows symbols: {T = 1, L <= 1} is one range. Expressions keep their ids, only what can be proved about them
// changes.
struct Bound {
  uint32_t symbol;  // index in the DimTable
  int64_t min, max;
  auto operator<=>(const Bound&) const = default;
};
using Bounds = std::vector<Bound>;

// Where something was written: a node name, a line of printed IR, a key of a model file.
struct Loc {
  std::string text;
};

// a == b, could not be proved at build time and is tested at bind; the error names both sides.
struct Guard {
  Dim a, b;
  std::string what;
  Loc loc;
};

class DimTable {
 public:
  DimTable();
  ~DimTable();
  DimTable(const DimTable&) = delete;
  DimTable& operator=(const DimTable&) = delete;

  // The same name twice gives the same symbol when all fields agree, else an error.
  Result<Dim> symbol(const Symbol& symbol);
  std::optional<uint32_t> find_symbol(std::string_view name) const;
  const std::vector<Symbol>& symbols() const;
  std::optional<uint32_t> as_symbol(Dim dim) const;  // the index, if the dim is exactly one symbol

  Dim add(Dim a, Dim b);
  Dim sub(Dim a, Dim b);
  Dim mul(Dim a, Dim b);
  Dim floordiv(Dim a, Dim b);  // floor; a division that is exact cancels
  Dim ceildiv(Dim a, int64_t b);
  Dim mod(Dim a, Dim b);
  Dim maximum(Dim a, Dim b);
  Dim minimum(Dim a, Dim b);

  std::optional<bool> equal(Dim a, Dim b) const;                                // nullopt: not provable
  std::optional<bool> divisible(Dim a, int64_t by) const;                       // nullopt: not provable
  std::pair<int64_t, int64_t> range(Dim dim, const Bounds& bounds = {}) const;  // inclusive, saturating
  // Value at bound symbols (index = symbol index). Overflow and division by zero are errors, never wrapped numbers.
  Result<int64_t> eval(Dim dim, std::span<const int64_t> symbols) const;
  // Replaces symbols that a bound pins to one value and simplifies again.
  Dim substitute(Dim dim, const Bounds& bounds);
  // "past + T", "4*B*T", "floordiv(T, 2)". Parses back to the same id.
  std::string text(Dim dim) const;
  Result<Dim> parse(std::string_view text);
  // The symbols that occur in the dim, ascending.
  std::vector<uint32_t> symbols_of(Dim dim) const;

  struct Impl;  // src/core/dim

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace tern
