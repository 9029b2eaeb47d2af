// A rank whose tests fail ends the others, which might wait for it.
#include <gtest/gtest.h>

#include "engine/comm/mpi_comm.h"
#include "tests/distributed/ranks.h"

namespace gle {

namespace {
std::unique_ptr<Comm> ranks;
}

Comm& all_ranks() { return *ranks; }

}  // namespace gle

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  gle::ranks = gle::make_mpi_comm();
  if (gle::ranks->rank() != 0) {
    delete testing::UnitTest::GetInstance()->listeners().Release(
        testing::UnitTest::GetInstance()->listeners().default_result_printer());
  }
  const int failed = RUN_ALL_TESTS();
  if (failed) {
    gle::ranks->abort(failed);
  }
  gle::ranks.reset();
  return 0;
}
