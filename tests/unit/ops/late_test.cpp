// Late sizes in the reference evaluation.
#include "run.h"

namespace tern {
namespace {

using In = std::map<std::string, Value>;

TEST(Late, Nonzero) {
  const auto find = [](Builder& b, In& in) { return nonzero(b, in["x"]); };
  expect_whole(run({{"x", reals({2, 3}, {0, 5, 0, kNan, 0, -0.0})}}, find), {2, 2}, {0, 1, 1, 0});
  expect_whole(run({{"x", whole({4}, {0, 0, 0, 0})}}, find), {0, 1}, {});
  expect_whole(run({{"x", whole({0, 2}, {})}}, find), {0, 2}, {});
  expect_whole(run({{"x", whole({2, 1, 2}, {1, 0, 1, 1}, DType::boolean)}}, find), {3, 3}, {0, 0, 0, 1, 0, 0, 1, 0, 1});
  expect_error(run({{"x", whole({}, {1})}}, find), "wants at least one axis");
}

TEST(Late, Cumsum) {
  expect_whole(run({{"x", whole({2, 3}, {1, 2, 3, 250, 5, 6}, DType::u8)}},
                   [](Builder& b, In& in) { return cumsum(b, in["x"], 1); }),
               {2, 3}, {1, 3, 6, 250, 255, 5});
  expect_whole(
      run({{"x", whole({2, 3}, {1, 2, 3, 4, 5, 6})}}, [](Builder& b, In& in) { return cumsum(b, in["x"], 0); }), {2, 3},
      {1, 2, 3, 5, 7, 9});
}

TEST(Late, ValuesAndGuardsAreTestedWhenKnown) {
  const auto rows = [](Builder& b, In& in) {
    const Dim r = late_size(b, in["n"], "n", 0, 6);
    return reshape(b, in["x"], Shape{r, 2});
  };
  const RefTensor x = whole({6}, {1, 2, 3, 4, 5, 6});
  expect_whole(run({{"x", x}, {"n", whole({}, {3})}}, rows), {3, 2}, {1, 2, 3, 4, 5, 6});
  expect_error(run({{"x", x}, {"n", whole({}, {2})}}, rows),
               "reshape: element count: 6 is not 2*n = 4; n = 2 by a node");
  expect_error(run({{"x", x}, {"n", whole({}, {7})}}, rows), "n is 7 by node");
  expect_error(
      run({{"n", reals({}, {3})}}, [](Builder& b, In& in) { return late_size(b, in["n"], "n", 0, 6), in["n"]; }),
      "a size is i32 or i64");
}

}  // namespace
}  // namespace tern
