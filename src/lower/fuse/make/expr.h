// Turns a tree of elementwise nodes and views into a ScalarExpr over stored values.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "lower/groups.h"

namespace tern::lowering {

// Which values have memory of their own; grows while fuse looks at regions.
struct Stored {
  std::vector<std::vector<bool>> of;  // [node][result]
  bool operator()(Value v) const { return of[v.node][v.out]; }
  void mark(Value v) { of[v.node][v.out] = true; }
};

struct ExprLoad {
  Value value;
  IndexMap map;  // over the region's axes
};
// One region before operands are numbered: loads refer to `loads` by index.
struct Expr {
  ScalarExpr code;  // code.loads[i].operand = index in loads
  std::vector<ExprLoad> loads;
  uint16_t result = 0;
};

class ExprBuilder {
 public:
  ExprBuilder(const Graph& graph, const Stored& stored, const Shape& axes)
      : graph_(graph), dims_(*graph.dims), stored_(stored), axes_(axes) {}

  // expand: the value itself is computed even when it is stored. On failure `must_store` names the value that has to
  // get memory first.
  bool build(Value root, bool expand, Expr& out, std::optional<Value>& must_store);

 private:
  using Chain = std::vector<uint32_t>;  // view nodes, innermost first
  std::optional<uint16_t> emit(Value v, const Chain& chain, bool expand);
  std::optional<uint16_t> load(Value v, const Chain& chain);
  std::optional<uint16_t> operands(const Node& node, const Chain& chain);
  std::optional<uint16_t> listed(const Node& node, Value v, const Chain& chain);
  uint16_t index(const IndexMap& map);
  std::optional<uint16_t> affine(const Node& node, Value v, const Chain& chain);
  std::optional<IndexMap> through(IndexMap map, TensorType type, const Chain& chain);
  static void drop_unused(Expr& out);
  uint16_t push(ScalarExpr::Ins ins);
  uint16_t constant(DType type, double f, int64_t i);
  uint16_t size(Dim d, DType type);
  DType index_type(const IndexMap& map) const;

  const Graph& graph_;
  DimTable& dims_;
  const Stored& stored_;
  const Shape& axes_;
  Expr* out_ = nullptr;
  std::map<std::pair<Value, Chain>, uint16_t> done_;
  std::optional<Value> must_store_;
};

// A scalar constant's number.
ScalarExpr::Number number_of(const Const& value);
bool is_scalar_constant(const Node& node);
bool is_generator(const Node& node);  // iota, dim, dims: no memory, an expression of the index

}  // namespace tern::lowering
