#include "emit/spirv/module.h"

namespace tern::emit {

using namespace spv;

void SpirvModule::put(Words& to, Op op, const Words& operands) {
  to.push_back((static_cast<uint32_t>(operands.size()) + 1) << 16 | op);
  to.insert(to.end(), operands.begin(), operands.end());
}

// Low byte first, ended by a zero.
SpirvModule::Words SpirvModule::text(std::string_view text) {
  Words out(text.size() / 4 + 1);
  for (size_t i = 0; i < text.size(); ++i)
    out[i / 4] |= static_cast<uint32_t>(static_cast<unsigned char>(text[i])) << (i % 4 * 8);
  return out;
}

void SpirvModule::capability(Capability name) {
  if (known_.emplace(Words{OpCapability, name}, 0).second) put(capabilities_, OpCapability, {name});
}

void SpirvModule::extension(std::string_view name) {
  const Words words = text(name);
  Words key = {OpExtension};
  key.insert(key.end(), words.begin(), words.end());
  if (known_.emplace(key, 0).second) put(extensions_, OpExtension, words);
}

SpirvModule::Id SpirvModule::extended_instructions() {
  if (extended_ != 0) return extended_;
  extended_ = fresh();
  Words operands = {extended_};
  const Words name = text("GLSL.std.450");
  operands.insert(operands.end(), name.begin(), name.end());
  put(imports_, OpExtInstImport, operands);
  return extended_;
}

void SpirvModule::decorate(Id what, Decoration how, Operands values) {
  Words operands = {what, how};
  operands.insert(operands.end(), values);
  put(decorations_, OpDecorate, operands);
}

void SpirvModule::decorate_member(Id what, uint32_t member, Decoration how, Operands values) {
  Words operands = {what, member, how};
  operands.insert(operands.end(), values);
  put(decorations_, OpMemberDecorate, operands);
}

void SpirvModule::mode(Id entry, ExecutionMode mode, Operands values) {
  Words operands = {entry, mode};
  operands.insert(operands.end(), values);
  put(modes_, OpExecutionMode, operands);
}

SpirvModule::Id SpirvModule::global(Op op, Id type, const Words& operands) {
  Words key = {op, type};
  key.insert(key.end(), operands.begin(), operands.end());
  const auto [place, added] = known_.emplace(std::move(key), next_);
  if (!added) return place->second;
  Words words;
  if (type != 0) words.push_back(type);
  words.push_back(fresh());
  words.insert(words.end(), operands.begin(), operands.end());
  put(globals_, op, words);
  return place->second;
}

SpirvModule::Id SpirvModule::distinct_type(Op op, Operands operands) {
  Words words = {fresh()};
  words.insert(words.end(), operands);
  put(globals_, op, words);
  return words[0];
}

SpirvModule::Id SpirvModule::variable(Id pointer_type, StorageClass where) {
  const Id id = fresh();
  put(where == Function ? locals_ : globals_, OpVariable, {pointer_type, id, where});
  return id;
}

SpirvModule::Id SpirvModule::result(Op op, Id type, const Words& operands) {
  Words words = {type, fresh()};
  words.insert(words.end(), operands.begin(), operands.end());
  put(body_, op, words);
  return words[1];
}

void SpirvModule::statement(Op op, const Words& operands) { put(body_, op, operands); }

SpirvModule::Words SpirvModule::finish(std::string_view name, Id entry, const Words& inputs) {
  constexpr uint32_t kLogical = 0, kGlsl450 = 1, kCompute = 5;
  const Id nothing = global(OpTypeVoid, 0, {}), function = global(OpTypeFunction, 0, {nothing}), label = fresh();
  Words point = {kCompute, entry};
  for (const Words& more : {text(name), inputs}) point.insert(point.end(), more.begin(), more.end());
  Words head;
  put(head, OpMemoryModel, {kLogical, kGlsl450});
  put(head, OpEntryPoint, point);
  Words begin, end;
  put(begin, OpFunction, {nothing, entry, 0, function});
  put(begin, OpLabel, {label});
  put(end, OpReturn, {});
  put(end, OpFunctionEnd, {});
  Words out = {kMagic, kVersion, 0, next_, 0};
  for (const Words* part : {&capabilities_, &extensions_, &imports_, &head, &modes_, &decorations_, &globals_, &begin,
                            &locals_, &body_, &end})
    out.insert(out.end(), part->begin(), part->end());
  return out;
}

}  // namespace tern::emit
