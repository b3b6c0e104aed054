// A Problem: plain data between graph and kernels, without graph identity. Equal layers give equal Problems and share
// kernels, timings and cache entries. Authored kernels, native overrides and library calls see this and nothing else.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/hash.h"
#include "core/index_map.h"
#include "core/scalar.h"
#include "program/family.h"
#include "program/layout.h"
#include "tern/tensor.h"

namespace tern {

enum class Origin : uint8_t { param, state, io, temp };
enum class Access : uint8_t { read, write, update };
enum class Role : uint8_t {
  x,
  weight,
  bias,
  extra,
  index,
  stat,
  out,
  q,
  k,
  v,
  mask,
  sinks,
  row_start,
  kv_length,
  pages,
  position,
  history,
  settings,
  seeds
};

inline constexpr uint16_t kNoAlias = 0xffff;
struct Operand {
  TensorType type;
  Role role = Role::x;
  Origin origin = Origin::temp;
  Access access = Access::read;
  Layout layout;  // set: a condition on bids; unset: the bid says
  // An earlier operand that is the same value; both are read. In one layout they are the same memory, and one binding.
  uint16_t alias = kNoAlias;
};

// The body of a region, prologue or epilogue: straight-line code over scalars, last-to-first use of earlier
// instructions only.
struct ScalarExpr {
  enum class Kind : uint8_t { op, load, accumulator, constant, index, dim };
  struct Ins {
    Kind kind = Kind::op;
    ScalarOp op = ScalarOp::add;  // Kind::op
    DType type = DType::f32;      // of the result
    // op: operands (instruction numbers); load: a = index in loads; accumulator: a = which; constant: a = index in
    // consts; index: a = axis of extent (i64 value); dim: a = index in dims.
    uint16_t a = 0, b = 0, c = 0;
    auto operator<=>(const Ins&) const = default;
  };
  struct Load {
    uint16_t operand = 0;  // of the Problem
    IndexMap map;  // over the axes of extent (region, reduce, store), or {batch, m, n} (matmul epilogue), {row, column}
                   // (norm)
    bool operator==(const Load&) const = default;
  };
  struct Number {
    double f = 0;
    int64_t i = 0;  // integer constants, exact
    bool operator==(const Number&) const = default;
  };
  std::vector<Ins> code;
  std::vector<Load> loads;
  std::vector<Number> consts;
  std::vector<Dim> dims;
  bool empty() const { return code.empty(); }
  bool operator==(const ScalarExpr&) const = default;
};

struct Output {
  enum class Kind : uint8_t {
    map,
    row_sum,
    row_max
  };  // row_*: over the part's columns, unfinished partials in fixed order
  uint16_t operand = 0;
  uint16_t result = 0;  // an instruction of the expression
  Kind kind = Kind::map;
  IndexMap map;  // where element (axes) is stored, in elements; empty stride list: dense row-major over the operand
  bool operator==(const Output&) const = default;
};

// One column space of a launch: QKV is three parts; gate/up is one part with two weights.
struct Part {
  Dim n;
  std::vector<uint16_t> weights;  // operand numbers; accumulator i belongs to weights[i]
  ScalarExpr epilogue;            // empty: result 0 is accumulator 0
  std::vector<Output> outs;       // a value may leave in several layouts (float rows and int8 blocks)
  bool operator==(const Part&) const = default;
};

struct Policy {
  bool precise = false;  // no quantised activations, f32 KV
  bool deterministic = false;
  bool operator==(const Policy&) const = default;
};

struct Problem {
  Family family = Family::region;
  std::vector<Operand> operands;
  std::vector<Dim> extent;
  ScalarExpr prologue;
  std::vector<Part> parts;  // families with one output space have exactly one part
  FamilyDesc desc;
  Bounds bounds;  // the range asked about
  Policy policy;
};

// Content hash, equal for equal Problems over tables with the same symbols (dims enter as text). layouts: hash them
// too.
Hash problem_hash(const Problem& problem, const DimTable& dims, bool with_layouts);
// The same much faster, for one table's Problems; keys of one object are comparable, and nothing else.
class ProblemKeys {
 public:
  explicit ProblemKeys(const DimTable& dims) : dims_(dims) {}
  Hash key(const Problem& problem, bool with_layouts);

 private:
  const DimTable& dims_;
  std::map<Dim, uint64_t> ids_;
};
// One line for people: "matmul x[T,576]:f32 w[576,576]:q4_1 -> f32[T,576] T<=1".
std::string problem_text(const Problem& problem, const DimTable& dims);

}  // namespace tern
