#include "data/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "data/random.h"
#include "engine/error.h"

namespace gle::data {

namespace {

using Items = std::vector<uint32_t>;

void check_shape(const char* sampler, const ClassMembers& members, const ClassBatch& shape) {
  require(shape.classes > 0 && shape.samples > 0, sampler, "a batch of ", shape.classes, " classes x ", shape.samples,
          " samples; expected at least 1 x 1");
  const auto with_images = std::count_if(members.of_class.begin(), members.of_class.end(),
                                         [](const Items& items) { return !items.empty(); });
  if (with_images < shape.classes) {
    fail(ErrorCode::data, sampler, ": batches of ", shape.classes, " classes need as many; the data set has ",
         with_images, " to train on");
  }
}

Random random_of(uint64_t seed, uint64_t epoch, uint64_t use) { return {seed, epoch, Purpose::order, use}; }

// Fills up the last chunk of a shuffled class with items of the other chunks, in turn from a random start; a class that
// has no other chunk repeats its own.
void fill_up(Items& items, size_t samples, Random& random) {
  const size_t size = items.size();
  const size_t rest = size % samples;
  const size_t from = size > rest ? size - rest : size;
  const uint32_t start = random.below(static_cast<uint32_t>(from));
  for (size_t i = 0; items.size() % samples > 0; ++i) {
    items.push_back(items[(start + i) % from]);
  }
}

// The images of a class in random order, again and again. One deal has none twice before it has all once.
class Deck {
 public:
  Deck(Items items, Random random) : items_(std::move(items)), random_(random) { random_.shuffle(items_); }

  void deal(size_t count, Items& out) {
    const size_t before = out.size();
    while (out.size() < before + count) {
      if (next_ == items_.size()) {
        shuffle_behind({out.begin() + static_cast<std::ptrdiff_t>(before), out.end()});
      }
      out.push_back(items_[next_++]);
    }
  }

 private:
  // Anew, what has just been dealt last.
  void shuffle_behind(std::span<const uint32_t> dealt) {
    random_.shuffle(items_);
    std::stable_partition(items_.begin(), items_.end(),
                          [&](uint32_t item) { return std::find(dealt.begin(), dealt.end(), item) == dealt.end(); });
    next_ = 0;
  }

  Items items_;
  Random random_;
  size_t next_ = 0;
};

// visit(items of a class in random order, what shuffled them) for every class that has any.
template <class Visit>
void for_each_shuffled(const ClassMembers& members, uint64_t seed, uint64_t epoch, Visit visit) {
  for (size_t c = 0; c < members.of_class.size(); ++c) {
    if (!members.of_class[c].empty()) {
      Random random = random_of(seed, epoch, c + 1);
      Items items = members.of_class[c];
      random.shuffle(items);
      visit(std::move(items), random);
    }
  }
}

}  // namespace

std::span<const uint32_t> EpochPlan::of_batch(int64_t b) const {
  const auto begin = static_cast<size_t>(b) * static_cast<size_t>(batch);
  return std::span(items).subspan(begin, std::min(static_cast<size_t>(batch), items.size() - begin));
}

EpochPlan plan_in_order(std::span<const uint32_t> items, int batch) {
  require(batch > 0, "sampler", "a batch of ", batch, " images; expected at least 1");
  return {{items.begin(), items.end()}, batch};
}

EpochPlan plan_shuffled(std::span<const uint32_t> items, int batch, LastBatch last, uint64_t seed, uint64_t epoch) {
  EpochPlan plan = plan_in_order(items, batch);
  random_of(seed, epoch, 0).shuffle(plan.items);
  if (last == LastBatch::drop) {
    plan.items.resize(plan.items.size() / static_cast<size_t>(batch) * static_cast<size_t>(batch));
  }
  return plan;
}

ClassMembers train_members(const Dataset& data) {
  ClassMembers members;
  members.of_class.resize(static_cast<size_t>(data.train_classes));
  for (const uint32_t item : data.train_items()) {
    members.of_class[static_cast<size_t>(data.items[item].label)].push_back(item);
  }
  return members;
}

std::vector<std::string> ClassMembers::small_classes(const Dataset& data, int samples) const {
  std::vector<std::pair<size_t, size_t>> small;
  for (size_t c = 0; c < of_class.size(); ++c) {
    if (of_class[c].size() < static_cast<size_t>(samples)) {
      small.emplace_back(of_class[c].size(), c);
    }
  }
  std::sort(small.begin(), small.end());
  std::vector<std::string> lines;
  lines.reserve(small.size());
  for (const auto& [count, c] : small) {
    lines.push_back("class " + data.class_names[c] + " has " + std::to_string(count) +
                    " images; each of its batches of " + std::to_string(samples) + " repeats some");
  }
  return lines;
}

EpochPlan plan_classes(const ClassMembers& members, const ClassBatch& shape, uint64_t seed, uint64_t epoch) {
  check_shape("classes x samples sampler", members, shape);
  const auto samples = static_cast<size_t>(shape.samples);
  const auto wanted = static_cast<size_t>(shape.classes);
  struct Class {
    Items items;
    size_t next = 0;
    uint32_t tie = 0;
    size_t left() const { return items.size() - next; }
  };
  std::vector<Class> classes;
  for_each_shuffled(members, seed, epoch, [&](Items items, Random& random) {
    fill_up(items, samples, random);
    classes.push_back({std::move(items), 0, 0});
  });
  Random random = random_of(seed, epoch, 0);
  std::vector<Items> batches;
  std::vector<Class*> order;
  while (true) {
    order.clear();
    for (Class& c : classes) {
      if (c.left() > 0) {
        c.tie = random.word();
        order.push_back(&c);
      }
    }
    if (order.size() < wanted) {
      break;
    }
    std::partial_sort(order.begin(), order.begin() + shape.classes, order.end(), [](const Class* a, const Class* b) {
      return a->left() != b->left() ? a->left() > b->left() : a->tie != b->tie ? a->tie < b->tie : a < b;
    });
    order.resize(wanted);
    random.shuffle(order);
    Items& batch = batches.emplace_back();
    for (Class* c : order) {
      batch.insert(batch.end(), c->items.begin() + static_cast<std::ptrdiff_t>(c->next),
                   c->items.begin() + static_cast<std::ptrdiff_t>(c->next + samples));
      c->next += samples;
    }
  }
  random.shuffle(batches);
  EpochPlan plan{{}, shape.classes * shape.samples};
  for (const Items& batch : batches) {
    plan.items.insert(plan.items.end(), batch.begin(), batch.end());
  }
  return plan;
}

EpochPlan plan_chunks(const ClassMembers& members, const ClassBatch& shape, uint64_t seed, uint64_t epoch) {
  check_shape("chunk sampler", members, shape);
  const auto samples = static_cast<size_t>(shape.samples);
  std::vector<Items> chunks;
  for_each_shuffled(members, seed, epoch, [&](Items items, Random& random) {
    const size_t own = items.size();
    while (items.size() < samples) {
      items.push_back(items[random.below(static_cast<uint32_t>(own))]);
    }
    for (size_t at = 0; at + samples <= items.size(); at += samples) {
      chunks.emplace_back(items.begin() + static_cast<std::ptrdiff_t>(at),
                          items.begin() + static_cast<std::ptrdiff_t>(at + samples));
    }
  });
  random_of(seed, epoch, 0).shuffle(chunks);
  chunks.resize(chunks.size() / static_cast<size_t>(shape.classes) * static_cast<size_t>(shape.classes));
  EpochPlan plan{{}, shape.classes * shape.samples};
  for (const Items& chunk : chunks) {
    plan.items.insert(plan.items.end(), chunk.begin(), chunk.end());
  }
  return plan;
}

std::vector<float> class_distances(std::span<const float> embeddings, int64_t dim, std::span<const int32_t> labels,
                                   int32_t classes) {
  require(dim > 0 && embeddings.size() == labels.size() * static_cast<size_t>(dim), "class_distances",
          embeddings.size(), " values for ", labels.size(), " rows of ", dim);
  const auto C = static_cast<size_t>(classes);
  const auto D = static_cast<size_t>(dim);
  std::vector<double> means(C * D);
  std::vector<size_t> counts(C);
  for (size_t i = 0; i < labels.size(); ++i) {
    require(labels[i] >= 0 && labels[i] < classes, "class_distances", "label ", labels[i], " of row ", i,
            "; expected 0 to ", classes - 1);
    const auto c = static_cast<size_t>(labels[i]);
    ++counts[c];
    for (size_t d = 0; d < D; ++d) {
      means[c * D + d] += static_cast<double>(embeddings[i * D + d]);
    }
  }
  for (size_t c = 0; c < C; ++c) {
    for (size_t d = 0; d < D && counts[c] > 0; ++d) {
      means[c * D + d] /= static_cast<double>(counts[c]);
    }
  }
  std::vector<float> distances(C * C);
  for (size_t a = 0; a < C; ++a) {
    for (size_t b = a + 1; b < C; ++b) {
      double sum = 0;
      for (size_t d = 0; d < D; ++d) {
        const double difference = means[a * D + d] - means[b * D + d];
        sum += difference * difference;
      }
      const bool known = counts[a] > 0 && counts[b] > 0;
      distances[a * C + b] = distances[b * C + a] =
          known ? static_cast<float>(std::sqrt(sum)) : std::numeric_limits<float>::infinity();
    }
  }
  return distances;
}

double hard_class_share(uint64_t epoch, uint64_t epochs) {
  return epochs == 0 || epoch >= epochs ? 0.0 : 1.0 - static_cast<double>(epoch) / static_cast<double>(epochs);
}

int64_t hard_batches(const ClassMembers& members, const ClassBatch& shape) {
  check_shape("hard-class sampler", members, shape);
  size_t items = 0;
  for (const Items& of_class : members.of_class) {
    items += of_class.size();
  }
  return std::max<int64_t>(1, static_cast<int64_t>(items) / (int64_t{shape.classes} * shape.samples));
}

EpochPlan plan_hard_classes(const ClassMembers& members, const ClassBatch& shape, std::span<const float> distances,
                            double share, uint64_t seed, uint64_t epoch) {
  const int64_t batches = hard_batches(members, shape);
  const size_t C = members.of_class.size();
  require(distances.size() == C * C, "hard-class sampler", distances.size(), " distances for ", C, " classes");
  require(std::none_of(distances.begin(), distances.end(), [](float d) { return std::isnan(d); }), "hard-class sampler",
          "a distance is not a number");
  require(share >= 0 && share <= 1, "hard-class sampler", "a share of ", share, "; expected 0 to 1");
  std::vector<uint32_t> all;
  std::vector<Deck> decks;
  for (size_t c = 0; c < C; ++c) {
    decks.emplace_back(members.of_class[c], random_of(seed, epoch, c + 1));
    if (!members.of_class[c].empty()) {
      all.push_back(static_cast<uint32_t>(c));
    }
  }
  const auto others = static_cast<size_t>(shape.classes) - 1;
  const size_t near = std::max(others, static_cast<size_t>(std::ceil(share * static_cast<double>(all.size() - 1))));
  Random random = random_of(seed, epoch, 0);
  Deck leaders(all, random_of(seed, epoch, C + 1));
  EpochPlan plan{{}, shape.classes * shape.samples};
  Items chosen;
  for (int64_t b = 0; b < batches; ++b) {
    chosen.clear();
    leaders.deal(1, chosen);
    const size_t leader = chosen[0];
    std::vector<uint32_t> candidates = all;
    std::erase(candidates, static_cast<uint32_t>(leader));
    std::sort(candidates.begin(), candidates.end(), [&](uint32_t x, uint32_t y) {
      const float dx = distances[leader * C + x];
      const float dy = distances[leader * C + y];
      return dx != dy ? dx < dy : x < y;
    });
    candidates.resize(near);
    random.shuffle(candidates);
    chosen.insert(chosen.end(), candidates.begin(), candidates.begin() + static_cast<std::ptrdiff_t>(others));
    for (const uint32_t c : chosen) {
      decks[c].deal(static_cast<size_t>(shape.samples), plan.items);
    }
  }
  return plan;
}

}  // namespace gle::data
