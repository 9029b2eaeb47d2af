#include "engine/thread_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <numeric>
#include <vector>

namespace gle {
namespace {

TEST(ThreadPool, RunsEveryPieceOnce) {
  for (const int threads : {1, 2, 3, 4, 7, 16, 64}) {
    ThreadPool pool(threads);
    EXPECT_EQ(pool.size(), threads);
    for (const int64_t pieces : {0, 1, 2, 3, 5, 64, 1000}) {
      std::vector<std::atomic<int>> runs(static_cast<size_t>(pieces));
      std::atomic<int> strangers = 0;
      pool.parallel_for(pieces, [&](int64_t piece, int thread) {
        ++runs[static_cast<size_t>(piece)];
        strangers += thread < 0 || thread >= threads ? 1 : 0;
      });
      for (const std::atomic<int>& count : runs) {
        ASSERT_EQ(count, 1) << threads << " threads, " << pieces << " pieces";
      }
      EXPECT_EQ(strangers, 0);
    }
  }
}

TEST(ThreadPool, LastsManyRoundsOfAnySize) {
  ThreadPool pool(3);
  std::vector<int64_t> sums(257, 0);
  int64_t expected = 0;
  for (int64_t round = 0; round < 5000; ++round) {
    const int64_t pieces = round % 257;
    pool.parallel_for(pieces, [&](int64_t piece, int) { sums[static_cast<size_t>(piece)] += piece + round; });
    expected += pieces * (pieces - 1) / 2 + pieces * round;
  }
  EXPECT_EQ(std::accumulate(sums.begin(), sums.end(), int64_t{0}), expected);
}

TEST(ThreadPool, SeesWhatWasWrittenBeforeAndShowsWhatItWrote) {
  ThreadPool pool(4);
  std::vector<int> values(64, 1);
  for (int round = 0; round < 1000; ++round) {
    pool.parallel_for(64, [&](int64_t piece, int) { values[static_cast<size_t>(piece)] += round; });
    for (int& value : values) {
      value -= round;
    }
  }
  EXPECT_EQ(values, std::vector<int>(64, 1));
}

TEST(ThreadPool, ThreadNumbersAreNotSharedAtOnce) {
  ThreadPool pool(4);
  std::vector<std::atomic<int>> inside(4);
  std::atomic<int> clashes = 0;
  pool.parallel_for(2000, [&](int64_t, int thread) {
    clashes += inside[static_cast<size_t>(thread)].fetch_add(1) == 0 ? 0 : 1;
    --inside[static_cast<size_t>(thread)];
  });
  EXPECT_EQ(clashes, 0);
}

TEST(ThreadPool, SeveralLiveSideBySide) {
  ThreadPool a(2), b(3);
  std::atomic<int> sum = 0;
  for (int round = 0; round < 200; ++round) {
    a.parallel_for(10, [&](int64_t, int) { ++sum; });
    b.parallel_for(10, [&](int64_t, int) { ++sum; });
  }
  EXPECT_EQ(sum, 4000);
}

}  // namespace
}  // namespace gle
