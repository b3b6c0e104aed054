// The graph IR, which is also what users build: nodes with several results, states as pure SSA, regions, symbolic dims.
//
// A Graph is a value-semantics DAG; nodes are addressed by id, values by (node, result). Not synchronised.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "tern/result.h"
#include "tern/shape.h"
#include "tern/tensor.h"

namespace tern {

struct OpDef;  // src/graph/op.h

struct Value {
  uint32_t node = ~0u;
  uint16_t out = 0;
  auto operator<=>(const Value&) const = default;
  bool valid() const { return node != ~0u; }
};

using Attr = std::variant<bool, int64_t, double, std::string, DType, std::vector<int64_t>, Dim, Shape, Const>;

class Graph;

struct Node {
  const OpDef* op = nullptr;
  std::vector<Value> in;
  std::vector<TensorType> out;
  std::vector<Attr> attrs;                      // in the order of op->attrs
  std::vector<std::unique_ptr<Graph>> regions;  // sees its own arguments only, shares the DimTable
  Loc loc;
};

enum class PortKind : uint8_t { input, param, state };

// A named leaf of the graph.
struct Port {
  std::string name;
  PortKind kind;
  Value value;
  bool resident = true;  // states: in-place update is wanted, compile fails where it cannot be
};
struct OutputPort {
  std::string name;
  Value value;
};
struct StateUpdate {
  std::string state;
  Value next;
};

class Graph {
 public:
  Graph();
  explicit Graph(std::shared_ptr<DimTable> dims);  // a region
  Graph(Graph&&) noexcept;
  Graph& operator=(Graph&&) noexcept;
  ~Graph();
  Graph clone() const;  // shares the DimTable

  std::shared_ptr<DimTable> dims;
  std::vector<Guard> guards;

  // Leaves. Names are unique over inputs, params and states.
  Result<Value> input(std::string name, TensorType type, Loc loc = {});
  Result<Value> param(std::string name, TensorType type, Loc loc = {});
  Result<Value> state(std::string name, TensorType type, Loc loc = {});
  // Names a result; the same value may leave under several names.
  Status output(std::string name, Value value);
  // The value that replaces the state at the end of a run. A state without update is read-only in this graph.
  Status update(std::string_view state, Value next);
  // States are resident unless said otherwise.
  Status set_resident(std::string_view state, bool resident);

  // Infers and checks; the error names op, operand and location. Attributes left out at the end take their defaults; an
  // integer stands for a real or a dim, integers for a shape. Regions share this graph's DimTable and have no leaves
  // but inputs.
  Result<std::vector<Value>> add(const OpDef& op, std::vector<Value> in, std::vector<Attr> attrs, Loc loc = {},
                                 std::vector<std::unique_ptr<Graph>> regions = {});

  const Node& at(Value value) const { return nodes_[value.node]; }
  const Node& node(uint32_t id) const { return nodes_[id]; }
  uint32_t node_count() const { return static_cast<uint32_t>(nodes_.size()); }
  const TensorType& type(Value value) const { return nodes_[value.node].out[value.out]; }
  const std::vector<Port>& ports() const { return ports_; }
  const std::vector<OutputPort>& outputs() const { return outputs_; }
  const std::vector<StateUpdate>& updates() const { return updates_; }
  bool holds(Value value) const;  // it is a result of one of the nodes
  const Port* port(std::string_view name) const;
  const Port* port_of(Value value) const;  // null: not a leaf

  // Live nodes in topological order: the named leaves, then depth first from the outputs and updates. It follows from
  // the structure alone; ids are no order once something was replaced.
  std::vector<uint32_t> order() const;
  // For every node id the live nodes that read it, each once, ascending; outputs and updates are not counted.
  std::vector<std::vector<uint32_t>> users() const;
  // Every use of `from`, outputs and updates included, becomes `to`; only the node of `to` itself still reads `from`,
  // so that a value can be wrapped. Types must be equal (dims provably so).
  void replace(Value from, Value to);
  // Drops what no output or update needs and renumbers; leaves stay.
  void compact();
  Status verify() const;

 private:
  std::vector<Node> nodes_;
  std::vector<Port> ports_;
  std::vector<OutputPort> outputs_;
  std::vector<StateUpdate> updates_;
  Result<Value> leaf(PortKind kind, std::string name, TensorType type, Loc loc);
};

// The text form: prints equal graphs equally, and parses back to an equal graph.
std::string print(const Graph& graph);
Result<Graph> parse_graph(std::string_view text);

// Builds a graph; the first error sticks, later calls are harmless and return an invalid Value, so models read as
// formulas.
class Builder {
 public:
  Builder();
  ~Builder();
  Builder(Builder&&) noexcept;
  // Continues an existing graph (passes and decompositions); the graph must outlive the builder, finish() is not
  // called.
  explicit Builder(Graph& graph);

  Graph& graph();
  DimTable& dims();
  Dim symbol(std::string name, int64_t min, int64_t max, int64_t multiple = 1);

  Value input(std::string name, DType dtype, Shape shape);
  Value param(std::string name, DType dtype, Shape shape, const Format* format = nullptr);
  Value state(std::string name, DType dtype, Shape shape);
  Value constant(Const value);
  Value constant(DType dtype, double value);  // a scalar
  void output(std::string name, Value value);
  void update(std::string_view state, Value next);

  // One-result ops; ops with several results go through ops().
  Value op(std::string_view name, std::vector<Value> in, std::vector<Attr> attrs = {}, Loc loc = {});
  std::vector<Value> ops(std::string_view name, std::vector<Value> in, std::vector<Attr> attrs = {}, Loc loc = {},
                         std::vector<std::unique_ptr<Graph>> regions = {});
  const TensorType& type(Value value) const;  // of an invalid value: an empty f32 scalar
  Dim dim(Value value, int axis) const;       // negative axes count from the end
  // A prefix for the locations of what follows ("blk.3"); replaces the one before.
  void scope(std::string prefix);

  bool failed() const;
  const Error* error() const;
  void fail(Error error);  // sticks, if it is the first
  // Verifies the whole graph and hands it over.
  Result<Graph> finish();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tern
