#include "engine/memory/caching_allocator.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "tests/expect_error.h"

namespace gle {
namespace {

constexpr size_t kMiB = size_t{1} << 20U;
constexpr size_t kSegment = 32 * kMiB;

// Host memory that counts what it gave, and gives nothing once told to.
struct CountingSource {
  int64_t given = 0, returned = 0;
  size_t bytes_out = 0;
  bool exhausted = false;

  MemorySource source() {
    return {.device = {},
            .allocate = [](void* state, size_t bytes) -> void* {
              auto& self = *static_cast<CountingSource*>(state);
              if (self.exhausted) {
                return nullptr;
              }
              ++self.given;
              self.bytes_out += bytes;
              return std::aligned_alloc(64, (bytes + 63) / 64 * 64);
            },
            .release =
                [](void* state, void* data, size_t bytes) {
                  auto& self = *static_cast<CountingSource*>(state);
                  ++self.returned;
                  self.bytes_out -= bytes;
                  std::free(data);
                },
            .state = this};
  }
};

class CachingAllocatorTest : public testing::Test {
 protected:
  CountingSource source_;
};

TEST_F(CachingAllocatorTest, CountsLiveCachedAndPeaks) {
  CachingAllocator allocator(source_.source());
  Buffer a = allocator.allocate(1000, "a");
  EXPECT_EQ(a.bytes(), 1024U);
  Buffer b = allocator.allocate(1, "b");
  MemoryStatistics s = allocator.statistics();
  EXPECT_EQ(s.live, 1024U + 64U);
  EXPECT_EQ(s.live + s.cached, kSegment);
  EXPECT_EQ(s.peak_reserved, kSegment);
  EXPECT_EQ(s.segments_taken, 1);
  a = Buffer();
  s = allocator.statistics();
  EXPECT_EQ(s.live, 64U);
  EXPECT_EQ(s.peak_live, 1088U);
  allocator.reset_peaks();
  EXPECT_EQ(allocator.statistics().peak_live, 64U);
}

TEST_F(CachingAllocatorTest, AlignsEveryPiece) {
  CachingAllocator allocator(source_.source());
  std::vector<Buffer> buffers;
  for (size_t bytes = 1; bytes < 500; bytes += 37) {
    buffers.push_back(allocator.allocate(bytes, "test"));
    EXPECT_EQ(reinterpret_cast<uintptr_t>(buffers.back().data()) % CachingAllocator::kAlignment, 0U);
    EXPECT_GE(buffers.back().bytes(), bytes);
  }
}

TEST_F(CachingAllocatorTest, TakesTheSmallestPieceThatFits) {
  CachingAllocator allocator(source_.source());
  Buffer large = allocator.allocate(1024, "large");
  const Buffer wall1 = allocator.allocate(64, "wall");
  Buffer small = allocator.allocate(256, "small");
  const Buffer wall2 = allocator.allocate(64, "wall");
  std::byte* const small_place = small.data();
  std::byte* const large_place = large.data();
  large = Buffer();
  small = Buffer();
  EXPECT_EQ(allocator.allocate(200, "test").data(), small_place);
  EXPECT_EQ(allocator.allocate(300, "test").data(), large_place);
}

TEST_F(CachingAllocatorTest, JoinsNeighboursInAnyOrder) {
  for (const auto& order : {std::vector<size_t>{0, 1, 2}, {2, 1, 0}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}}) {
    CachingAllocator allocator(source_.source());
    std::vector<Buffer> parts;
    for (int i = 0; i < 3; ++i) {
      parts.push_back(allocator.allocate(kSegment / 4, "part"));
    }
    const Buffer rest = allocator.allocate(kSegment / 4, "rest");
    std::byte* const first = parts[0].data();
    for (const size_t i : order) {
      parts[i] = Buffer();
    }
    const Buffer whole = allocator.allocate(kSegment / 4 * 3, "whole");
    EXPECT_EQ(whole.data(), first);
    EXPECT_EQ(allocator.statistics().segments_taken, 1);
  }
}

TEST_F(CachingAllocatorTest, CopiesShareAPieceUntilTheLastGoes) {
  CachingAllocator allocator(source_.source());
  Buffer a = allocator.allocate(64, "test");
  Buffer b = a;
  Buffer c = std::move(a);
  b = Buffer();
  EXPECT_EQ(allocator.statistics().live, 64U);
  c = Buffer();
  EXPECT_EQ(allocator.statistics().live, 0U);
}

TEST_F(CachingAllocatorTest, TrimGivesBackSegmentsWithoutLiveBuffers) {
  CachingAllocator allocator(source_.source());
  Buffer a = allocator.allocate(kSegment, "a");
  const Buffer b = allocator.allocate(kSegment, "b");
  EXPECT_EQ(source_.given, 2);
  allocator.trim();
  EXPECT_EQ(source_.returned, 0);
  a = Buffer();
  allocator.trim();
  EXPECT_EQ(source_.returned, 1);
  EXPECT_EQ(allocator.statistics().cached, 0U);
  EXPECT_EQ(allocator.statistics().live, kSegment);
}

TEST_F(CachingAllocatorTest, GivesEverythingBackAtTheEnd) {
  {
    CachingAllocator allocator(source_.source());
    (void)allocator.allocate(3 * kSegment, "a");
    (void)allocator.allocate(5, "b");
  }
  EXPECT_EQ(source_.bytes_out, 0U);
}

TEST_F(CachingAllocatorTest, ErrorNamesTheOpTheBytesAskedAndTheBytesFree) {
  CachingAllocator allocator(source_.source(), 10 * kMiB);
  const Buffer held = allocator.allocate(4 * kMiB, "held");
  EXPECT_ERROR(allocator.allocate(7 * kMiB, "conv2d"), ErrorCode::memory,
               {"conv2d: out of memory on cpu: 7340032 bytes asked, 6291456 free of 10485760", "smaller batch"});
  EXPECT_EQ(allocator.allocate(6 * kMiB, "fits").bytes(), 6 * kMiB);
}

TEST_F(CachingAllocatorTest, NeverHoldsMoreThanItsLimit) {
  CachingAllocator allocator(source_.source(), 100 * kMiB);
  std::mt19937 random(1);
  std::vector<Buffer> buffers(8);
  int refused = 0;
  for (int i = 0; i < 2000; ++i) {
    Buffer& buffer = buffers[random() % buffers.size()];
    buffer = Buffer();
    try {
      buffer = allocator.allocate(random() % (40 * kMiB), "test");
    } catch (const Error& error) {
      ASSERT_EQ(error.code(), ErrorCode::memory);
      ++refused;
    }
    ASSERT_LE(source_.bytes_out, 100 * kMiB);
    const MemoryStatistics s = allocator.statistics();
    ASSERT_EQ(s.live + s.cached, source_.bytes_out);
  }
  EXPECT_GT(refused, 0);
  EXPECT_LT(refused, 1900);
}

TEST_F(CachingAllocatorTest, SmallPiecesShareWhatIsLeftOfTheLimit) {
  CachingAllocator allocator(source_.source(), 33 * kMiB);
  const Buffer most = allocator.allocate(32 * kMiB, "most");
  std::vector<Buffer> small(1024);
  for (Buffer& buffer : small) {
    buffer = allocator.allocate(1024, "small");
  }
  EXPECT_EQ(source_.given, 2);
}

TEST_F(CachingAllocatorTest, ReleasesUnusedSegmentsBeforeItRefuses) {
  CachingAllocator allocator(source_.source(), 100 * kMiB);
  for (int i = 0; i < 2; ++i) {
    (void)allocator.allocate(40 * kMiB, "early");
    (void)allocator.allocate(90 * kMiB, "late");
  }
  EXPECT_LE(source_.bytes_out, 100 * kMiB);
  EXPECT_GE(source_.returned, 1);
}

TEST_F(CachingAllocatorTest, SourceWithoutMemoryIsAnErrorToo) {
  CachingAllocator allocator(source_.source());
  (void)allocator.allocate(10, "first");
  source_.exhausted = true;
  EXPECT_ERROR(allocator.allocate(2 * kSegment, "second"), ErrorCode::memory, {"second", "67108864 bytes asked"});
  source_.exhausted = false;
  EXPECT_TRUE(allocator.allocate(2 * kSegment, "third"));
}

TEST_F(CachingAllocatorTest, AbsurdSizesAreAnError) {
  CachingAllocator allocator(source_.source(), kSegment);
  EXPECT_ERROR(allocator.allocate(SIZE_MAX, "test"), ErrorCode::memory, {"test", "18446744073709551615 bytes asked"});
  EXPECT_ERROR(allocator.allocate(SIZE_MAX - 100, "test"), ErrorCode::memory, {"test"});
}

TEST_F(CachingAllocatorTest, LimitCanBeLoweredToWhatIsLive) {
  CachingAllocator allocator(source_.source());
  const Buffer held = allocator.allocate(kSegment, "held");
  (void)allocator.allocate(kSegment, "gone");
  allocator.set_limit(kSegment);
  EXPECT_EQ(allocator.limit(), kSegment);
  EXPECT_EQ(source_.bytes_out, kSegment);
  EXPECT_ERROR(allocator.set_limit(kMiB), ErrorCode::memory, {"memory limit", "1048576", "33554432"});
}

TEST_F(CachingAllocatorTest, SteadyUseTakesNoNewSegment) {
  CachingAllocator allocator(source_.source());
  int64_t after_first = 0;
  for (int round = 0; round < 5; ++round) {
    std::mt19937 random(7);
    std::vector<Buffer> buffers(40);
    for (int i = 0; i < 1000; ++i) {
      Buffer& buffer = buffers[random() % buffers.size()];
      buffer = Buffer();
      buffer = allocator.allocate(random() % (4 * kMiB), "test");
    }
    buffers.clear();
    if (round == 0) {
      after_first = allocator.statistics().segments_taken;
    }
    EXPECT_EQ(allocator.statistics().segments_taken, after_first);
    EXPECT_EQ(allocator.statistics().live, 0U);
  }
}

TEST_F(CachingAllocatorTest, ThreadsGetPiecesThatDoNotOverlap) {
  CachingAllocator allocator(source_.source());
  std::vector<std::thread> threads;
  std::vector<int> torn(4, 0);
  for (size_t t = 0; t < torn.size(); ++t) {
    threads.emplace_back([&, t] {
      std::mt19937 random(static_cast<unsigned>(t));
      std::vector<Buffer> buffers(16);
      for (int i = 0; i < 2000; ++i) {
        Buffer& buffer = buffers[random() % buffers.size()];
        for (size_t k = 0; k < buffer.bytes(); ++k) {
          torn[t] += buffer.data()[k] != std::byte(t) ? 1 : 0;
        }
        buffer = allocator.allocate(1 + random() % 1000, "test");
        std::memset(buffer.data(), static_cast<int>(t), buffer.bytes());
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(torn, std::vector<int>(4, 0));
  EXPECT_EQ(allocator.statistics().live, 0U);
}

TEST(CachingAllocatorDeath, ABufferThatOutlivesItIsOurBug) {
  EXPECT_DEATH(
      {
        Buffer buffer;
        CachingAllocator allocator(host_memory());
        buffer = allocator.allocate(1, "test");
      },
      "outlives");
}

}  // namespace
}  // namespace gle
