#include "data/sampler.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "tests/data/support.h"

namespace gle::data::test {

namespace {

// Classes of these sizes, items numbered in turn.
ClassMembers members_of(const std::vector<int>& sizes) {
  ClassMembers members;
  uint32_t next = 0;
  for (const int size : sizes) {
    auto& items = members.of_class.emplace_back();
    for (int i = 0; i < size; ++i) {
      items.push_back(next++);
    }
  }
  return members;
}

size_t class_of(const ClassMembers& members, uint32_t item) {
  for (size_t c = 0; c < members.of_class.size(); ++c) {
    if (std::count(members.of_class[c].begin(), members.of_class[c].end(), item) > 0) {
      return c;
    }
  }
  ADD_FAILURE() << "item " << item << " of no class";
  return 0;
}

// Every batch has `classes` different classes with `samples` images each, next to each other, and different if the
// class has as many.
void expect_class_batches(const ClassMembers& members, const EpochPlan& plan, const ClassBatch& shape) {
  ASSERT_EQ(plan.batch, shape.classes * shape.samples);
  ASSERT_EQ(plan.items.size() % static_cast<size_t>(plan.batch), 0U);
  for (int64_t b = 0; b < plan.batches(); ++b) {
    const auto items = plan.of_batch(b);
    std::set<size_t> seen;
    for (int c = 0; c < shape.classes; ++c) {
      const auto chunk = items.subspan(static_cast<size_t>(c * shape.samples), static_cast<size_t>(shape.samples));
      const size_t size = members.of_class[class_of(members, chunk[0])].size();
      EXPECT_EQ(std::set<uint32_t>(chunk.begin(), chunk.end()).size(), std::min(size, chunk.size())) << "batch " << b;
      const size_t first = class_of(members, items[static_cast<size_t>(c * shape.samples)]);
      EXPECT_TRUE(seen.insert(first).second) << "class " << first << " twice in batch " << b;
      for (int s = 1; s < shape.samples; ++s) {
        EXPECT_EQ(class_of(members, items[static_cast<size_t>(c * shape.samples + s)]), first);
      }
    }
  }
}

std::map<uint32_t, int> counts(const EpochPlan& plan) {
  std::map<uint32_t, int> count;
  for (const uint32_t item : plan.items) {
    ++count[item];
  }
  return count;
}

TEST(Sampler, ClassesTimesSamples) {
  const ClassMembers members = members_of({9, 18, 2, 30, 9, 11, 40, 9});
  const ClassBatch shape{3, 9};
  const EpochPlan plan = plan_classes(members, shape, 1, 0);
  expect_class_batches(members, plan, shape);
  // 17 chunks (1 2 1 4 1 2 5 1) of which no class is twice in a batch of three: five batches.
  EXPECT_EQ(plan.batches(), 5);
  EXPECT_EQ(plan.items, plan_classes(members, shape, 1, 0).items);
  EXPECT_NE(plan.items, plan_classes(members, shape, 2, 0).items);
  EXPECT_NE(plan.items, plan_classes(members, shape, 1, 1).items);
}

TEST(Sampler, SmallClassesRepeatEvenlyAndAreReported) {
  const ClassMembers members = members_of({4, 2, 1, 4});
  const EpochPlan plan = plan_classes(members, {4, 4}, 3, 0);
  ASSERT_EQ(plan.batches(), 1);
  auto count = counts(plan);
  EXPECT_EQ(count[4], 2);
  EXPECT_EQ(count[5], 2);
  EXPECT_EQ(count[6], 4);
  Dataset data;
  data.class_names = {"a", "b", "c", "d"};
  const auto lines = members.small_classes(data, 4);
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_EQ(lines[0], "class c has 1 images; each of its batches of 4 repeats some");
}

TEST(Sampler, EveryImageOfEvenClassesOncePerEpoch) {
  const ClassMembers members = members_of(std::vector<int>(12, 10));
  for (const EpochPlan& plan : {plan_classes(members, {4, 5}, 7, 3), plan_chunks(members, {4, 5}, 7, 3)}) {
    EXPECT_EQ(plan.batches(), 6);
    for (const auto& [item, count] : counts(plan)) {
      EXPECT_EQ(count, 1) << item;
    }
  }
}

TEST(Sampler, ChunksMayMeetTheirClassAgain) {
  const ClassMembers members = members_of({40, 6, 6, 1});
  bool met = false;
  for (uint64_t epoch = 0; epoch < 5; ++epoch) {
    const EpochPlan plan = plan_chunks(members, {3, 6}, 1, epoch);
    EXPECT_EQ(plan.batches(), 3);  // 6 + 1 + 1 + 1 chunks
    for (int64_t b = 0; b < plan.batches(); ++b) {
      std::set<size_t> classes;
      for (const uint32_t item : plan.of_batch(b)) {
        classes.insert(class_of(members, item));
      }
      met = met || classes.size() < 3;
    }
  }
  EXPECT_TRUE(met);
}

TEST(Sampler, Shuffling) {
  std::vector<uint32_t> items(103);
  for (size_t i = 0; i < items.size(); ++i) {
    items[i] = static_cast<uint32_t>(i * 2);
  }
  EpochPlan plan = plan_shuffled(items, 10, LastBatch::keep, 5, 0);
  EXPECT_EQ(plan.batches(), 11);
  EXPECT_EQ(plan.of_batch(10).size(), 3U);
  EXPECT_NE(plan.items, items);
  std::sort(plan.items.begin(), plan.items.end());
  EXPECT_EQ(plan.items, items);
  EXPECT_EQ(plan_shuffled(items, 10, LastBatch::drop, 5, 0).items.size(), 100U);
  EXPECT_EQ(plan_in_order(items, 10).items, items);
}

TEST(Sampler, HardClassesComeFromTheNearest) {
  // Ten classes on a line, so that the nearest of a class are its neighbours.
  const ClassMembers members = members_of(std::vector<int>(10, 20));
  std::vector<float> embeddings;
  std::vector<int32_t> labels;
  for (int32_t c = 0; c < 10; ++c) {
    for (const float side : {-0.1F, 0.1F}) {
      embeddings.push_back(static_cast<float>(c * c) + side);
      labels.push_back(c);
    }
  }
  const auto distances = class_distances(embeddings, 1, labels, 10);
  EXPECT_NEAR(distances[3 * 10 + 5], 16, 1e-5);
  EXPECT_EQ(distances[4], distances[40]);
  const ClassBatch shape{3, 4};
  const EpochPlan hard = plan_hard_classes(members, shape, distances, 0.0, 1, 9);
  expect_class_batches(members, hard, shape);
  std::map<size_t, int> leaders;
  for (int64_t b = 0; b < hard.batches(); ++b) {
    const auto items = hard.of_batch(b);
    const auto leader = class_of(members, items[0]);
    ++leaders[leader];
    for (const uint32_t item : items) {
      EXPECT_LE(std::abs(static_cast<int>(class_of(members, item)) - static_cast<int>(leader)), 2);
    }
  }
  EXPECT_EQ(leaders.size(), 10U);
  expect_class_batches(members, plan_hard_classes(members, shape, distances, 1.0, 1, 0), shape);
  // 200 images make 16 batches of 12.
  EXPECT_EQ(hard.batches(), 16);
  EXPECT_EQ(hard_batches(members, shape), 16);
  EXPECT_DOUBLE_EQ(hard_class_share(0, 100), 1.0);
  EXPECT_DOUBLE_EQ(hard_class_share(75, 100), 0.25);
}

TEST(Sampler, NoImageTwiceInABatchOfClassesThatDoNotDivide) {
  const ClassMembers members = members_of({7, 10, 13, 17, 23, 6, 11, 3});
  const std::vector<float> distances(64, 1.0F);
  for (uint64_t epoch = 0; epoch < 40; ++epoch) {
    for (const ClassBatch shape : {ClassBatch{3, 6}, ClassBatch{2, 5}, ClassBatch{4, 9}}) {
      expect_class_batches(members, plan_classes(members, shape, 1, epoch), shape);
      expect_class_batches(members, plan_hard_classes(members, shape, distances, 0.5, 1, epoch), shape);
    }
  }
}

TEST(Sampler, RefusesWhatCannotBe) {
  const ClassMembers members = members_of({5, 5, 0});
  EXPECT_NE(error_of(ErrorCode::data,
                     [&] {
                       plan_classes(members, {3, 2}, 1, 0);
                     })
                .find("the data set has 2"),
            std::string::npos);
  EXPECT_NE(error_of(ErrorCode::usage,
                     [&] {
                       plan_chunks(members, {0, 2}, 1, 0);
                     })
                .find("at least 1 x 1"),
            std::string::npos);
  EXPECT_NE(error_of(ErrorCode::usage,
                     [&] {
                       plan_hard_classes(members, {2, 2}, {}, 1, 1, 0);
                     })
                .find("0 distances"),
            std::string::npos);
}

}  // namespace

}  // namespace gle::data::test
