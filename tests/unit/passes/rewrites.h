// Before and after, as printed graphs.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "passes/passes.h"

namespace tern {

// Bodies without the braces, one statement a line; the pass runs once, then dead nodes are dropped.
inline std::string after(Status (*pass)(Graph&, const Target&), const std::string& body, const Target& target = {}) {
  auto g = parse_graph("graph {\n" + body + "}\n");
  if (!g) return "before: " + g.error().message();
  if (auto s = pass(*g, target); !s) return "pass: " + s.error().message();
  if (auto s = g->verify(); !s) return "after: " + s.error().message();
  g->compact();
  std::string text = print(*g);
  text = text.substr(8, text.size() - 10);
  return text;
}

}  // namespace tern
