#include <gtest/gtest.h>

#include <iostream>
#include <set>

#include "op_names.h"
#include "tests/machines.h"
#include "tests/op_test.h"

namespace gle::test {

namespace {

// Finite differences of a larger case take long and show nothing that the others do not.
constexpr int64_t kMostForDifferences = 5000;
constexpr size_t kEmulatedStride = 5;

// An op without a test fails the suite; so does a test without an op.
TEST(OpRegistry, HoldsEveryOp) {
  std::set<std::string> tested;
  for (const Op& op : all_ops()) {
    EXPECT_TRUE(tested.insert(op.name).second) << op.name << " has two entries";
    EXPECT_GE(op.cases.size(), 50U) << op.name;
  }
  EXPECT_EQ(tested, std::set<std::string>(std::begin(kOpNames), std::end(kOpNames)));
}

class OpTest : public testing::TestWithParam<Op> {};

TEST_P(OpTest, ReferenceEqualsFiniteDifferences) {
  int checked = 0;
  for (const OpCase& c : GetParam().cases) {
    if (c.inputs[0].value.size() <= kMostForDifferences) {
      check_reference(c);
      ++checked;
    }
    ASSERT_FALSE(HasFailure());
  }
  EXPECT_GE(checked, 48);
}

TEST_P(OpTest, EqualsItsReference) {
  if (machines().empty()) {
    GTEST_SKIP();
  }
  // On an emulated GPU the kernels' own tests go through all cases.
  const size_t stride = machines().front().emulated() ? kEmulatedStride : 1;
  int passes = 0;
  for (size_t i = 0; i < GetParam().cases.size(); i += stride) {
    passes += check_op(GetParam().cases[i]);
    ASSERT_FALSE(HasFailure());
  }
  EXPECT_GT(passes, 0) << "all cases are too large";
  std::cout << "             " << GetParam().cases.size() << " cases, " << passes << " passes\n";
}

INSTANTIATE_TEST_SUITE_P(All, OpTest, testing::ValuesIn(all_ops()), [](const auto& info) { return info.param.name; });

}  // namespace

void PrintTo(const Op& op, std::ostream* out) { *out << op.name; }

}  // namespace gle::test
