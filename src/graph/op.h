// What an op is: a record of plain functions. Declared here, filled by ops/ (one file per op or table of ops).
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/index_map.h"
#include "tern/graph.h"

namespace tern {

enum class AttrKind : uint8_t {
  boolean,
  integer,
  real,
  text,
  dtype,
  ints,
  dim,
  shape,
  constant
};  // order of Attr's alternatives
struct AttrSpec {
  std::string_view name;
  AttrKind kind;
  bool optional = false;  // left out at the end of the list, it becomes the default below
  double number = 0;      // default of boolean, integer and real attributes
  std::string_view text = {};
};

// One node's types, attributes and dims; all checks of a type rule go through it, so that errors read alike.
class InferCtx {
 public:
  std::span<const TensorType> in;
  std::span<const Attr> attrs;
  std::span<const std::unique_ptr<Graph>> regions;
  DimTable& dims;
  std::vector<Guard>& guards;  // where "not provable" goes
  std::string_view op;
  const Loc& loc;

  // Proved, or recorded as a guard, or an error with both sides.
  Status same(Dim a, Dim b, std::string_view what);
  Status divides(int64_t by, Dim dim, std::string_view what);
  Status rank(size_t input, int rank);                // -1 .. accepts any
  Result<int> axis(int64_t axis, size_t rank) const;  // normalises negatives
  Error error(std::string text) const;                // "op: text" with the location

  template <class T>
  const T& attr(size_t i) const {
    return std::get<T>(attrs[i]);
  }
};

// A concrete tensor of the reference evaluation: f64 for floats, i64/u64 for integers and bool, pairs of f64 for
// complex. Row-major. Values are already rounded to `type.dtype` (a float tensor in f64 evaluation keeps f64 unless the
// node is a cast).
struct RefTensor {
  DType dtype = DType::f32;
  std::vector<int64_t> shape;
  std::vector<double> f;   // floating, complex (re, im interleaved)
  std::vector<int64_t> i;  // integers and bool (u64 as its bits)
  int64_t size() const;
};
struct RefTensors {
  std::vector<const RefTensor*> in;  // quantised inputs arrive decoded
  // Where the op reads_stored: float operands may come as their stored bytes, in[i] is null then. Empty or one an
  // operand.
  std::vector<const TensorView*> stored;
  std::vector<RefTensor> out;    // dtype and shape are set, data sized and zero
  std::vector<int64_t> symbols;  // bound values, for dims in attributes
  const DimTable* dims = nullptr;
};

struct Effects {
  bool rng = false;
  int16_t alias_in = -1;  // result 0 may overwrite this input (state update)
  int16_t gives = -1;     // operand 0 is the value of the late symbol that this attribute is
};

// Contents of an integer value: one Dim an element, row-major.
using Contents = std::vector<Dim>;
// What an op's rule of contents sees. Shapes are constant, every operand's contents are known.
struct ContentsCtx {
  const Node& node;
  DimTable& dims;
  std::span<const TensorType> in;
  std::span<const Contents* const> contents;  // one an operand
};

enum class OpKind : uint8_t { leaf, core, composite };

struct OpDef {
  std::string_view name;
  OpKind kind = OpKind::core;
  int8_t min_in = 0, max_in = 0;  // number of operands; max -1: any
  std::span<const AttrSpec> attrs = {};
  Effects fx = {};
  int16_t scalar = -1;  // row of core/scalar_ops.inc: how a region spells this node; -1: not elementwise
  // The result is in[0] read through this map; null: not a view.
  OrRefuse<IndexMap> (*view)(DimTable&, const Node&, const TensorType& in_type, const IndexMap& in) = nullptr;
  Result<std::vector<TensorType>> (*infer)(InferCtx&) = nullptr;  // type rule and verifier in one
  // in: the node's inputs in the new graph; null for core ops.
  Result<std::vector<Value>> (*decompose)(Builder&, const Node&, std::span<const Value> in) = nullptr;
  // f64 or exact integers on concrete shapes.
  Status (*reference)(const Node&, RefTensors&) = nullptr;
  OrRefuse<std::vector<Value>> (*grad)(Builder&, const Node&, std::span<const Value> dy) = nullptr;
  // Symbolic contents of result 0, for ops that shape arithmetic is made of; null: none, unless the op `moves`. Results
  // outside of the type are the caller's matter.
  OrRefuse<Contents> (*contents)(ContentsCtx&) = nullptr;
  // Every element of result 0 is an element of operand 0 (all: of any operand) or a zero, chosen by attributes and by
  // the numbers of the other operands.
  enum class Moves : uint8_t { no, first, all } moves = Moves::no;
  bool reads_stored = false;  // the reference decodes what it needs itself, so that a weight is never whole in f64
};

// The op list: declared here, defined once by ops/ (op_list.inc), so that graph knows no op names but its own leaves.
std::span<const OpDef* const> op_list();
// By name, over the list and the leaves; defined by graph. Null: no such op. Thread-safe.
const OpDef* find_op(std::string_view name);
// The leaves that graph itself owns: "input", "param", "state", "constant".
extern const OpDef kInputOp, kParamOp, kStateOp, kConstantOp;

}  // namespace tern
