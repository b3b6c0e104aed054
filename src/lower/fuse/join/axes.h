// Matching the axes of a region with those of the result that an anchor makes.
#pragma once

#include <optional>

#include "lower/fuse/fuse.h"

namespace tern::lowering {

// For each axis of `space` the first of the region's axes that it is made of, plus the end: runs of equal products.
// nullopt: they do not match.
std::optional<std::vector<size_t>> match_axes(DimTable& dims, const Shape& region, const Shape& space);
// A map over the region's axes as one over the space's.
std::optional<IndexMap> map_over(DimTable& dims, const IndexMap& map, const Shape& region,
                                 const std::vector<size_t>& first);
// The axis of the space that counts what the region's axis counts.
std::optional<uint16_t> axis_over(const Shape& region, const std::vector<size_t>& first, uint16_t axis);

}  // namespace tern::lowering
