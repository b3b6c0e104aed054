// Fuzz target of the graph's text: whatever the text is, parsing ends with an error that says where, or with a graph
// that prints to a text which parses back to itself, also after the passes.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "passes/passes.h"

namespace {

void want(bool holds, const char* what, const std::string& text) {
  if (holds) return;
  std::fprintf(stderr, "broken promise: %s\n%s\n", what, text.c_str());
  std::abort();
}

void check_fixed_point(const tern::Graph& graph) {
  const std::string once = tern::print(graph);
  const auto again = tern::parse_graph(once);
  want(again.ok(), "printed text parses", once + (again.ok() ? "" : again.error().message()));
  want(tern::print(*again) == once, "it prints the same again", once);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  auto graph = tern::parse_graph({reinterpret_cast<const char*>(data), size});
  if (!graph) {
    // Errors of the text carry line:column; what verify finds at the end names a node or a leaf.
    want(!graph.error().text.empty(), "an error has a text", "");
    return 0;
  }
  check_fixed_point(*graph);
  tern::PassOptions options;
  options.verify = true;
  // Decompositions refuse what they cannot do; nothing else may fail.
  const auto passes = tern::run_passes(*graph, {}, tern::default_passes(), options);
  if (passes) {
    check_fixed_point(*graph);
  } else {
    want(passes.error().where.starts_with("pass decompose") && passes.error().where.find("verify") == std::string::npos,
         "passes succeed", passes.error().message());
  }
  return 0;
}
