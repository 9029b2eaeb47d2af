#include <gtest/gtest.h>

#include <iostream>
#include <set>

#include "op_names.h"
#include "tests/kernel_test.h"
#include "tests/machines.h"

namespace gle::test {

namespace {

// An op without a test fails the suite; so does a test without an op.
TEST(KernelRegistry, HoldsEveryKernelOfTheBackend) {
  std::set<std::string> tested;
  for (const Kernel& kernel : all_kernels()) {
    EXPECT_TRUE(tested.insert(kernel.name).second) << kernel.name << " has two entries";
    EXPECT_TRUE(!kernel.cases.empty() || kernel.check) << kernel.name << " has no cases";
  }
  EXPECT_EQ(tested, std::set<std::string>(std::begin(kKernelNames), std::end(kKernelNames)));
}

class KernelTest : public testing::TestWithParam<Kernel> {};

TEST_P(KernelTest, EqualsItsReference) {
  const Kernel& kernel = GetParam();
  if (machines().empty()) {
    GTEST_SKIP();
  }
  if (kernel.check) {
    for (const Machine& machine : machines()) {
      SCOPED_TRACE(name_of(machine));
      kernel.check(backend_of(machine, 2));
    }
  }
  int runs = 0;
  for (const KernelCase& c : kernel.cases) {
    runs += check_case(c);
    if (HasFailure()) {
      return;
    }
  }
  EXPECT_TRUE(runs > 0 || kernel.cases.empty()) << "all cases are too large";
  std::cout << "             " << kernel.cases.size() << " cases, " << runs << " runs\n";
}

INSTANTIATE_TEST_SUITE_P(All, KernelTest, testing::ValuesIn(all_kernels()),
                         [](const auto& info) { return info.param.name; });

}  // namespace

void PrintTo(const Kernel& kernel, std::ostream* out) { *out << kernel.name; }

}  // namespace gle::test
