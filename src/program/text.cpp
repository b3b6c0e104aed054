#include <string>

#include "program/program.h"

namespace tern {
namespace {

struct StepName {
  const Program& p;
  std::string operator()(const Launch& l) const { return p.kernels[l.kernel].name + " x " + p.dims->text(l.groups); }
  std::string operator()(const Call&) const { return "call"; }
  std::string operator()(const Copy&) const { return "copy"; }
  std::string operator()(const Fill&) const { return "fill"; }
  std::string operator()(const Bind& b) const { return "bind " + p.dims->symbols()[b.late_symbol].name; }
  std::string operator()(const Branch&) const { return "branch"; }
  std::string operator()(const Loop&) const { return "loop"; }
  std::string operator()(const Delegate&) const { return "delegate"; }
  std::string operator()(const Collective&) const { return "collective"; }
};

std::string use_text(const Program& p, const Use& use) {
  std::string s = use.access == Access::read ? "" : use.access == Access::write ? "=" : "+=";
  s += p.buffers[use.ref.id].name;
  if (use.ref.offset != Dim(0)) s += "@" + p.dims->text(use.ref.offset);
  return s;
}

}  // namespace

std::string program_text(const Program& p) {
  std::string out;
  const auto list_text = [&](uint32_t list) {
    for (const Step& step : p.lists[list]) {
      out += "  " + std::to_string(step.phase) + " " + std::visit(StepName{p}, step.what) + " (";
      for (size_t i = 0; i < step.uses.size(); ++i) out += (i ? ", " : "") + use_text(p, step.uses[i]);
      out += ")";
      if (!step.label.empty()) out += "  // " + step.label;
      out += "\n";
    }
  };
  for (const RangeDef& range : p.ranges) {
    out += "range";
    for (const Bound& b : range.when) {
      out += " " + std::to_string(b.min) + "<=" + p.dims->symbols()[b.symbol].name + "<=" + std::to_string(b.max);
    }
    out += "\n";
    list_text(range.list);
  }
  if (p.prepare_list != kNone) {
    out += "prepare\n";
    list_text(p.prepare_list);
  }
  return out;
}

}  // namespace tern
