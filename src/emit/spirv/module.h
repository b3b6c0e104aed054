// A SPIR-V module in the making: sections in their order, ids, and each type and constant once.
#pragma once

#include <initializer_list>
#include <map>
#include <string_view>
#include <vector>

#include "emit/spirv/words.h"

namespace tern::emit {

class SpirvModule {
 public:
  using Id = uint32_t;
  using Words = std::vector<uint32_t>;
  using Operands = std::initializer_list<uint32_t>;

  Id fresh() { return next_++; }

  void capability(spv::Capability name);  // once
  void extension(std::string_view name);  // once
  // Of GLSL.std.450.
  Id extended_instructions();
  void decorate(Id what, spv::Decoration how, Operands values = {});
  void decorate_member(Id what, uint32_t member, spv::Decoration how, Operands values = {});
  void mode(Id entry, spv::ExecutionMode mode, Operands values);

  // A type or a constant; equal ones have one id. `type` is the type of a constant, 0 for types.
  Id global(spv::Op op, Id type, const Words& operands);
  // A type of its own, which may be decorated.
  Id distinct_type(spv::Op op, Operands operands);
  // A variable of the module, or of the function where the class says so.
  Id variable(Id pointer_type, spv::StorageClass where);

  // Into the function's body.
  Id result(spv::Op op, Id type, const Words& operands);
  void statement(spv::Op op, const Words& operands);

  // entry: a function of no arguments. inputs: variables of the interface.
  Words finish(std::string_view name, Id entry, const Words& inputs);

 private:
  static void put(Words& to, spv::Op op, const Words& operands);
  static Words text(std::string_view text);

  Id next_ = 1, extended_ = 0;
  Words capabilities_, extensions_, imports_, modes_, decorations_, globals_, locals_, body_;
  std::map<Words, Id> known_;
};

}  // namespace tern::emit
