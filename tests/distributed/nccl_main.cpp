// Ranks on emulated GPUs, with the stand-in for NCCL between them; each has an order of streams of its own.
#include <gtest/gtest.h>

#include "engine/comm/mpi_comm.h"
#include "engine/comm/nccl_comm.h"
#include "engine/cuda/cuda.h"
#include "fake_cuda/fake_cuda.h"
#include "simt/simt.h"
#include "tests/distributed/ranks.h"

namespace gle::test {

namespace {

std::unique_ptr<Comm> ranks;
std::unique_ptr<Backend> backend;
std::unique_ptr<Comm> nccl;

class Watch : public testing::EmptyTestEventListener {
  void OnTestEnd(const testing::TestInfo&) override {
    for (const simt::Report& report : simt::take_reports()) {
      ADD_FAILURE() << simt::name_of(report.kind) << ": " << report.text;
    }
  }
};

}  // namespace

Comm& all_ranks() { return *nccl; }
Backend& rank_backend() { return *backend; }

}  // namespace gle::test

int main(int argc, char** argv) {
  using namespace gle::test;
  testing::InitGoogleTest(&argc, argv);
  ranks = gle::make_mpi_comm();
  const auto seed = static_cast<uint64_t>(ranks->rank()) + 1;
  fake_cuda::reset({.seed = seed});
  simt::set_options({.order = simt::Order::random, .seed = seed, .check = true});
  backend = gle::make_cuda_backend({.deterministic = true});
  nccl = gle::make_nccl_comm(*ranks, *backend);
  testing::UnitTest::GetInstance()->listeners().Append(new Watch);
  run_tests_of(*ranks);
  nccl.reset();
  backend.reset();
  ranks.reset();
  return 0;
}
