// A small Program to try things on, and ways to make one.
#pragma once

#include "program/program.h"

namespace tern::test {

inline Program empty_program() {
  Program p;
  p.dims = std::make_shared<DimTable>();
  p.lists.emplace_back();
  p.ranges.push_back({{}, 0});
  return p;
}
inline BufferId buffer(Program& p, std::string name, Dim bytes, Origin origin = Origin::temp) {
  p.buffers.push_back({std::move(name), origin, {DType::u8, {bytes}}, {&kDense, {}}, bytes});
  return static_cast<BufferId>(p.buffers.size() - 1);
}
inline Use use(const Program& p, BufferId id, Access access) { return {{id, 0, p.buffers[id].bytes}, access}; }
inline Step copy(const Program& p, BufferId from, BufferId to, std::string label = {}) {
  Step s;
  s.what = Copy{};
  s.uses = {use(p, from, Access::read), use(p, to, Access::write)};
  s.label = std::move(label);
  return s;
}

}  // namespace tern::test
