// Ranks on the CPU. One whose tests fail ends the others, which might wait for it.
#include <gtest/gtest.h>

#include "engine/comm/mpi_comm.h"
#include "engine/cpu/cpu.h"
#include "tests/distributed/ranks.h"

namespace gle::test {

namespace {
std::unique_ptr<Comm> ranks;
std::unique_ptr<Backend> backend;
}  // namespace

Comm& all_ranks() { return *ranks; }
Backend& rank_backend() { return *backend; }

}  // namespace gle::test

int main(int argc, char** argv) {
  using namespace gle::test;
  testing::InitGoogleTest(&argc, argv);
  ranks = gle::make_mpi_comm();
  backend = gle::make_cpu_backend({.threads = 1, .library = false});
  if (ranks->rank() != 0) {
    testing::TestEventListeners& listeners = testing::UnitTest::GetInstance()->listeners();
    delete listeners.Release(listeners.default_result_printer());
  }
  const int failed = RUN_ALL_TESTS();
  if (failed) {
    ranks->abort(failed);
  }
  backend.reset();
  ranks.reset();
  return 0;
}
