#include "tests/distributed/ranks.h"

#include <gtest/gtest.h>

namespace gle::test {

void run_tests_of(Comm& ranks) {
  if (ranks.rank() != 0) {
    testing::TestEventListeners& listeners = testing::UnitTest::GetInstance()->listeners();
    delete listeners.Release(listeners.default_result_printer());
  }
  if (const int failed = RUN_ALL_TESTS()) {
    ranks.abort(failed);
  }
}

}  // namespace gle::test
