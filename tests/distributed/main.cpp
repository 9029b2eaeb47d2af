// Ranks on the CPU.
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
  run_tests_of(*ranks);
  backend.reset();
  ranks.reset();
  return 0;
}
