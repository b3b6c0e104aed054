// The reference evaluation of whole graphs: f64 for floats, exact integers, rounding only where a cast or a stored type
// rounds. It is the oracle behind verify and behind folding's and lowering's tests; it streams, so a model needs one
// layer at a time.
//
// Not thread-safe for one Evaluator's callbacks; different evaluations may run side by side on a shared graph.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "graph/op.h"
#include "graph/reference.h"

namespace tern {

// A leaf's value: numbers, or stored bytes (dense or blocks) that live until the evaluation is done with the leaf.
using RefLeaf = std::variant<RefTensor, TensorView>;

struct RefOptions {
  // Asked once for each param, state or input that `leaves` lacks, when its first reader is due.
  std::function<Result<RefLeaf>(const Port&)> leaf;
  // Told when the last reader of such a leaf is done: its bytes are not looked at again.
  std::function<void(const Port&)> done;
  // Told every value as it is made (taps, progress); an error ends the evaluation.
  std::function<Status(Value, const RefTensor&)> made;
};

struct RefResults {
  std::map<std::string, RefTensor> outputs;  // by name
  std::map<std::string, RefTensor> states;   // the new value of every updated state
};

// Values of all symbols by index: those given by name, the others from the axes of the inputs that are exactly a
// symbol; axes that disagree, values outside a symbol's bounds, and symbols nobody binds are errors that name input and
// symbol.
Result<std::vector<int64_t>> bind_symbols(const Graph& graph, const std::map<std::string, RefLeaf>& leaves,
                                          const std::map<std::string, int64_t>& given = {});

// Runs the graph. Guards and the shapes of all leaves are tested first or when they are loaded; errors name the node or
// the leaf.
Result<RefResults> evaluate(const Graph& graph, const std::map<std::string, RefLeaf>& leaves,
                            std::span<const int64_t> symbols, const RefOptions& options = {});

}  // namespace tern
