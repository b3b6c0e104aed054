#include "graph/attrs.h"

#include "graph/text/text.h"

namespace tern {

std::string_view attr_kind_name(AttrKind kind) {
  static constexpr std::string_view kNames[] = {"boolean",  "integer", "real",  "text",    "dtype",
                                                "integers", "dim",     "shape", "constant"};
  return kNames[static_cast<size_t>(kind)];
}

Attr default_attr(const AttrSpec& spec) {
  switch (spec.kind) {
    case AttrKind::boolean: return spec.number != 0;
    case AttrKind::integer: return static_cast<int64_t>(spec.number);
    case AttrKind::real: return spec.number;
    case AttrKind::text: return std::string(spec.text);
    case AttrKind::dtype: return dtype_from_name(spec.text).value_or(static_cast<DType>(static_cast<int>(spec.number)));
    case AttrKind::ints: return std::vector<int64_t>{};
    case AttrKind::dim: return Dim(static_cast<int64_t>(spec.number));
    case AttrKind::shape: return Shape{};
    case AttrKind::constant: return Const{};
  }
  return false;
}

namespace {

Error attr_error(const OpDef& op, const AttrSpec& spec, const std::string& what) {
  return make_error(Code::invalid, std::string(op.name) + ": attribute " + std::string(spec.name) + " " + what);
}

void widen(Attr& attr, AttrKind kind) {
  if (const auto* i = std::get_if<int64_t>(&attr)) {
    const int64_t v = *i;
    if (kind == AttrKind::real) attr = static_cast<double>(v);
    if (kind == AttrKind::dim) attr = Dim(v);
  } else if (const auto* list = std::get_if<std::vector<int64_t>>(&attr); list && kind == AttrKind::shape) {
    attr = Shape(list->begin(), list->end());
  }
}

Status check_const(const OpDef& op, const AttrSpec& spec, const Const& c) {
  TERN_TRY(const uint64_t bytes, dense_bytes(c.dtype, nullptr, c.shape));
  const uint64_t have = c.data ? c.data->size() : 0;
  if (!c.data && spec.optional) return ok();
  if (!c.data || have != bytes) {
    return attr_error(op, spec, "holds " + std::to_string(have) + " bytes, its type wants " + std::to_string(bytes));
  }
  return ok();
}

}  // namespace

Status complete_attrs(const OpDef& op, std::vector<Attr>& attrs) {
  if (attrs.size() > op.attrs.size()) {
    return make_error(Code::invalid, std::string(op.name) + ": takes " + std::to_string(op.attrs.size()) +
                                         " attributes, got " + std::to_string(attrs.size()));
  }
  for (size_t i = 0; i < op.attrs.size(); ++i) {
    const AttrSpec& spec = op.attrs[i];
    if (i >= attrs.size()) {
      if (!spec.optional) return attr_error(op, spec, "is missing");
      attrs.push_back(default_attr(spec));
      continue;
    }
    widen(attrs[i], spec.kind);
    const auto kind = static_cast<AttrKind>(attrs[i].index());
    if (kind != spec.kind) {
      return attr_error(
          op, spec,
          "is of kind " + std::string(attr_kind_name(kind)) + ", wants " + std::string(attr_kind_name(spec.kind)));
    }
    if (spec.kind == AttrKind::constant) TERN_OK(check_const(op, spec, std::get<Const>(attrs[i])));
  }
  return ok();
}

bool same_type(const DimTable& dims, const TensorType& a, const TensorType& b) {
  if (a.dtype != b.dtype || a.format != b.format || a.shape.size() != b.shape.size()) return false;
  for (size_t i = 0; i < a.shape.size(); ++i) {
    if (dims.equal(a.shape[i], b.shape[i]) != true) return false;
  }
  return true;
}

Status check_type(const DimTable& dims, const TensorType& type) {
  std::vector<int64_t> constants;
  for (size_t i = 0; i < type.shape.size(); ++i) {
    const Dim d = type.shape[i];
    if (dims.range(d).second < 0) {
      return make_error(Code::invalid, type_text(dims, type) + ": axis " + std::to_string(i) + " is negative");
    }
    if (auto c = d.constant()) constants.push_back(*c);
  }
  if (constants.size() == type.shape.size()) TERN_OK(dense_bytes(type.dtype, type.format, constants));
  if (!type.format) return ok();
  for (size_t back = 0; back < 2; ++back) {
    const uint32_t block = type.format->block[1 - back];
    if (block <= 1) continue;
    if (type.shape.size() <= back || dims.divisible(type.shape[type.shape.size() - 1 - back], block) != true) {
      return make_error(Code::invalid, type_text(dims, type) + ": the axis of the blocks of " +
                                           std::string(type.format->name) + " is not known to be a multiple of " +
                                           std::to_string(block));
    }
  }
  return ok();
}

}  // namespace tern
