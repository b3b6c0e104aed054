// ScalarExpr as kir: region bodies, prologues and epilogues.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "kernels/common/launch.h"

namespace tern::kernels {

// Whether kir and the device can compute the expression, or the instruction that they cannot.
OrRefuse<Unit> check_expr(const ScalarExpr& expr, const Caps& caps);

// Where an expression finds what it reads. Coordinates are u32, one an axis of the maps.
struct ExprInputs {
  std::span<const kir::V> axes;
  std::function<kir::V(const ScalarExpr::Load&)> load;  // null: dense operands through their maps
  std::function<kir::V(uint16_t which)> accumulator;
  std::function<kir::V(uint16_t axis)> index;  // null: axes
  size_t lane_axes = 0;                        // as in map_index
};

// The values of all instructions, in value types.
std::vector<kir::V> emit_expr(Launcher& l, const ScalarExpr& expr, const ExprInputs& in);

// offset + sum(stride * axis), u32. Coordinates of axes before lane_axes are equal in all lanes: their strides stay
// arguments of the kernel.
kir::V map_index(Launcher& l, const IndexMap& map, std::span<const kir::V> axes, size_t lane_axes = 0);
// The map, or row-major over the shape of extents where the map has no strides.
IndexMap map_or_dense(DimTable& dims, const IndexMap& map, std::span<const Dim> extents);
// A value of one type as another, as a store or a mixed operand wants it.
kir::V convert(const kir::V& v, kir::Type to);
// FLOP an element, for estimates.
double expr_flop(const ScalarExpr& expr);

}  // namespace tern::kernels
