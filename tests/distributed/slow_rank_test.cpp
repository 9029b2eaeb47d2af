#include "training/slow_rank.h"

#include <gtest/gtest.h>

#include <thread>

#include "tests/distributed/ranks.h"

namespace gle::test {
namespace {

constexpr int64_t kSteps = 10;

// Steps of two epochs, in which one rank or none comes late; what was said in them.
std::vector<std::string> said(int late) {
  Comm& comm = all_ranks();
  SlowRank slow(comm, kSteps);
  std::vector<std::string> texts;
  for (int64_t step = 0; step < 4 * kSteps + 2; ++step) {
    std::this_thread::sleep_for(std::chrono::milliseconds(comm.rank() == late ? 60 : 10));
    comm.barrier();
    const std::string text = slow.after_step(step / (2 * kSteps + 1));
    if (!text.empty()) {
      texts.push_back(text);
    }
  }
  return texts;
}

TEST(SlowRank, IsNamedOnceAnEpoch) {
  const int late = all_ranks().size() - 1;
  const std::vector<std::string> texts = said(late);
  ASSERT_EQ(texts.size(), 2U);
  EXPECT_EQ(
      texts[0].find("rank " + std::to_string(late) + " on " + all_ranks().host_of(late) + " is slow: over 10 steps"),
      0U)
      << texts[0];
}

// A step of the first rank that took long because of something else is left out.
TEST(SlowRank, IsNotWhoWroteACheckpoint) {
  Comm& comm = all_ranks();
  SlowRank slow(comm, kSteps);
  for (int64_t step = 0; step < 4 * kSteps; ++step) {
    if (step % 10 == 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(comm.rank() == 0 ? 500 : 0));
      slow.leave_out_step();
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    comm.barrier();
    EXPECT_EQ(slow.after_step(step), "");
  }
}

}  // namespace
}  // namespace gle::test
