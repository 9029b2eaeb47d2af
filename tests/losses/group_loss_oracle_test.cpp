// The Group Loss against known answers in double precision, on every instruction set.
#include <gtest/gtest.h>

#include "tests/machines.h"
#include "tools/doctor_oracle.h"

namespace gle::test {

namespace {

TEST(GroupLossOracle, EveryFileOnEveryMachine) {
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(GLE_ORACLE)) {
    ++files;
    for (const Machine& machine : machines()) {
      SCOPED_TRACE(entry.path().filename().string() + ", " + name_of(machine));
      const doctor::OracleResult r = doctor::check_oracle(backend_of(machine, 2), entry.path());
      EXPECT_TRUE(r.good()) << "W " << r.similarities << ", X " << r.iterates << ", F " << r.functional << ", loss "
                            << r.loss << ", dE " << r.dembeddings << ", dZ " << r.dlogits;
    }
  }
  EXPECT_GE(files, 11);
}

}  // namespace

}  // namespace gle::test
