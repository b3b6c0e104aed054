#include "compare.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <random>

#include "graph/reference.h"
#include "machine.h"
#include "ops/reference.h"

namespace tern::test {
namespace {

RefTensor random_tensor(DType dtype, std::vector<int64_t> shape, std::mt19937& rng) {
  RefTensor t = ref_zeros(dtype, std::move(shape));
  for (double& f : t.f) f = round_to(dtype, std::normal_distribution<double>()(rng));
  for (int64_t& i : t.i)
    i = dtype == DType::boolean ? static_cast<int64_t>(rng() % 2)
                                : static_cast<int64_t>(rng() % 11) - (dtype == DType::u32 ? 0 : 1);
  return t;
}

void expect_near(const RefTensor& got, const RefTensor& want, double tolerance, const std::string& name) {
  ASSERT_EQ(got.shape, want.shape) << name;
  EXPECT_EQ(got.i, want.i) << name;
  ASSERT_EQ(got.f.size(), want.f.size()) << name;
  for (size_t n = 0; n < got.f.size(); ++n) {
    const double w = round_to(want.dtype, want.f[n]);
    if (std::isnan(w) && std::isnan(got.f[n])) continue;
    if (std::isinf(w) && got.f[n] == w) continue;
    ASSERT_NEAR(got.f[n], w, tolerance * (1 + std::fabs(w))) << name << " element " << n;
  }
}

}  // namespace

void expect_same(const Graph& graph, const std::map<std::string, int64_t>& given, uint32_t seed,
                 const LowerOptions& options, const Caps& caps, double tolerance) {
  const auto program = lower(graph, plain_candidates(), caps, options);
  ASSERT_TRUE(program.ok()) << program.error().message() << "\n" << print(graph);
  std::mt19937 rng(seed);
  Machine machine(*program);
  machine.rng.seed(seed);
  std::map<std::string, RefLeaf> leaves;
  std::vector<int64_t> symbols;
  for (const Symbol& s : graph.dims->symbols()) symbols.push_back(given.contains(s.name) ? given.at(s.name) : s.max);
  const auto fill = [&](bool states) {
    for (const Port& port : graph.ports()) {
      if (!states && port.kind != PortKind::input) continue;
      std::vector<int64_t> shape;
      for (const Dim d : graph.type(port.value).shape) shape.push_back(*graph.dims->eval(d, symbols));
      const RefTensor t = random_tensor(graph.type(port.value).dtype, shape, rng);
      leaves[port.name] = t;
      ASSERT_TRUE(machine.set(port.name, t).ok());
    }
  };
  for (int run = 0; run < 2; ++run) {
    fill(run == 0);
    const auto want = evaluate(graph, leaves, symbols);
    ASSERT_TRUE(want.ok()) << want.error().message();
    const auto done = machine.run(symbols);
    ASSERT_TRUE(done.ok()) << done.error().message() << "\n" << program_text(*program);
    const std::string context = "\n" + print(graph) + program_text(*program);
    const auto check = [&](const std::map<std::string, RefTensor>& all) {
      for (const auto& [name, value] : all) {
        const auto got = machine.get(name, symbols);
        ASSERT_TRUE(got.ok()) << got.error().message();
        expect_near(*got, value, tolerance, name + " in run " + std::to_string(run) + context);
      }
    };
    check(want->outputs);
    check(want->states);
    if (testing::Test::HasFatalFailure()) return;
    for (const auto& [name, value] : want->states) {
      RefTensor t = value;  // as the state stores it
      for (double& f : t.f) f = round_to(t.dtype, f);
      leaves[name] = t;
    }
  }
}

}  // namespace tern::test
