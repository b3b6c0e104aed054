// Attribute lists against their specification.
#pragma once

#include <string>
#include <vector>

#include "graph/op.h"

namespace tern {

std::string_view attr_kind_name(AttrKind kind);
// The value that an optional attribute has where it is left out.
Attr default_attr(const AttrSpec& spec);
// Fills in defaults at the end, widens integers to reals and dims, checks number, kinds and constants.
Status complete_attrs(const OpDef& op, std::vector<Attr>& attrs);

// Equal, or dims provably so.
bool same_type(const DimTable& dims, const TensorType& a, const TensorType& b);
// A leaf's or result's own sanity: extents not negative, sizes countable, blocks fit.
Status check_type(const DimTable& dims, const TensorType& type);

}  // namespace tern
