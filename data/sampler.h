#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "data/dataset.h"

namespace gle::data {

// The batches of one epoch, all known before it begins: to resume in its middle, plan it again and go on at a batch.
// The position of a draw in `items` is part of what its random choices are made from.
struct EpochPlan {
  std::vector<uint32_t> items;  // batch after batch
  int batch = 1;

  int64_t batches() const { return (static_cast<int64_t>(items.size()) + batch - 1) / batch; }
  std::span<const uint32_t> of_batch(int64_t b) const;
};

enum class LastBatch { keep, drop };

// For evaluation: the items as they come.
EpochPlan plan_in_order(std::span<const uint32_t> items, int batch);
EpochPlan plan_shuffled(std::span<const uint32_t> items, int batch, LastBatch last, uint64_t seed, uint64_t epoch);

// The training items of each class.
struct ClassMembers {
  std::vector<std::vector<uint32_t>> of_class;
  // What a sampler of `samples` a class does with classes that have fewer: one line each, the smallest first.
  std::vector<std::string> small_classes(const Dataset& data, int samples) const;
};
ClassMembers train_members(const Dataset& data);

struct ClassBatch {
  int classes = 6;
  int samples = 9;
};

// Classes x samples, no class twice in a batch, and no image but of classes with too few. Each class's images are
// shuffled and cut into chunks of `samples`, the last one filled up with images of the others; batches take their
// chunks from the classes that have most left, and come in random order. Chunks that fill no whole batch with different
// classes are left for another epoch.
EpochPlan plan_classes(const ClassMembers& members, const ClassBatch& shape, uint64_t seed, uint64_t epoch);

// As the authors' code does it: each class's images are shuffled and cut into chunks of `samples` (a class with fewer
// repeats some; a rest is left out), the chunks are shuffled and taken in order, so that a class can be in a batch
// twice.
EpochPlan plan_chunks(const ClassMembers& members, const ClassBatch& shape, uint64_t seed, uint64_t epoch);

// Distances of the classes' mean embeddings, Euclidean; classes x classes. embeddings: rows x dim; labels of the rows
// in [0, classes). A class without rows is infinitely far from all.
std::vector<float> class_distances(std::span<const float> embeddings, int64_t dim, std::span<const int32_t> labels,
                                   int32_t classes);

// Hard classes: each batch takes a class and draws the others from its nearest `share` of all classes (at least as many
// as it needs). Every class leads as many batches as any other, give or take one. An epoch has as many batches as the
// images fill, and at least one; images repeat within a batch only in classes with too few.
int64_t hard_batches(const ClassMembers& members, const ClassBatch& shape);
EpochPlan plan_hard_classes(const ClassMembers& members, const ClassBatch& shape, std::span<const float> distances,
                            double share, uint64_t seed, uint64_t epoch);
// The share for an epoch of `epochs`: 1 - epoch / epochs, so that the classes become harder with time.
double hard_class_share(uint64_t epoch, uint64_t epochs);

}  // namespace gle::data
