#include "engine/memory/workspace.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include "engine/memory/arena.h"
#include "tests/expect_error.h"

namespace gle {
namespace {

TEST(Workspace, GrowsAndKeepsItsMemory) {
  CachingAllocator allocator(host_memory());
  Workspace workspace(allocator);
  EXPECT_EQ(workspace.bytes(), 0U);
  { const auto lease = workspace.lease(100, "small"); }
  { const auto lease = workspace.lease(1000, "large"); }
  EXPECT_EQ(workspace.bytes(), 1024U);
  const size_t live = allocator.statistics().live;
  EXPECT_EQ(live, 1024U);
  { const auto lease = workspace.lease(50, "small"); }
  EXPECT_EQ(allocator.statistics().live, live);
}

TEST(Workspace, PoisonFillsWithNaN) {
  CachingAllocator allocator(host_memory());
  Workspace workspace(allocator);
  workspace.set_poison(true);
  for (int round = 0; round < 2; ++round) {
    const auto lease = workspace.lease(40, "test");
    for (int i = 0; i < 10; ++i) {
      EXPECT_TRUE(std::isnan(lease.floats()[i]));
      lease.floats()[i] = 1;
    }
  }
}

TEST(Workspace, NamesTheOpWhenThereIsNoMemory) {
  CachingAllocator allocator(host_memory(), 1024);
  Workspace workspace(allocator);
  EXPECT_ERROR(workspace.lease(4096, "conv2d_forward"), ErrorCode::memory, {"conv2d_forward", "4096 bytes asked"});
  const auto lease = workspace.lease(1024, "fits");
  EXPECT_NE(lease.data(), nullptr);
}

TEST(WorkspaceDeath, TwoLeasesAtOnceAreOurBug) {
  CachingAllocator allocator(host_memory());
  Workspace workspace(allocator);
  const auto lease = workspace.lease(10, "first");
  EXPECT_DEATH((void)workspace.lease(10, "second"), "leased already");
}

TEST(Arena, GivesAlignedPiecesThatDoNotOverlap) {
  Arena arena;
  std::vector<std::pair<std::byte*, size_t>> pieces;
  for (size_t i = 1; i < 2000; ++i) {
    const size_t bytes = i * 7 % 300 + 1;
    const size_t alignment = size_t{1} << (i % 5);
    auto* piece = static_cast<std::byte*>(arena.allocate(bytes, alignment));
    EXPECT_EQ(reinterpret_cast<uintptr_t>(piece) % alignment, 0U);
    pieces.emplace_back(piece, bytes);
  }
  std::sort(pieces.begin(), pieces.end());
  for (size_t i = 1; i < pieces.size(); ++i) {
    ASSERT_LE(pieces[i - 1].first + pieces[i - 1].second, pieces[i].first);
  }
}

TEST(Arena, GivesTheSamePlacesAfterReset) {
  Arena arena;
  std::vector<void*> first, second;
  for (std::vector<void*>* round : {&first, &second}) {
    for (size_t i = 0; i < 3000; ++i) {
      round->push_back(arena.allocate(i % 200 + 1, 8));
    }
    arena.reset();
  }
  EXPECT_EQ(first, second);
}

TEST(Arena, HoldsPiecesLargerThanAChunk) {
  Arena arena;
  auto* small = static_cast<std::byte*>(arena.allocate(16, 8));
  auto* large = static_cast<std::byte*>(arena.allocate(size_t{1} << 20U, 16));
  auto* after = static_cast<std::byte*>(arena.allocate(16, 8));
  large[(size_t{1} << 20U) - 1] = std::byte{1};
  EXPECT_EQ((std::set<std::byte*>{small, large, after}).size(), 3U);
  EXPECT_TRUE(after < large || after >= large + (size_t{1} << 20U));
}

}  // namespace
}  // namespace gle
