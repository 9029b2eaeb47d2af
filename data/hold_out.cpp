#include "data/hold_out.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "data/random.h"
#include "engine/error.h"

namespace gle::data {

Dataset hold_out(const Dataset& data, double share, uint64_t seed) {
  const auto classes = static_cast<size_t>(data.train_classes);
  const auto held = std::max<size_t>(2, static_cast<size_t>(std::lround(share * static_cast<double>(classes))));
  if (held + 2 > classes) {
    fail(ErrorCode::data, data.name, ": ", held, " of ", classes,
         " training classes would be held out; evaluate on the test classes, or not at all");
  }
  std::vector<int32_t> order(classes);
  std::iota(order.begin(), order.end(), 0);
  Random random(seed, 0, Purpose::held_out);
  random.shuffle(order);
  std::vector<bool> is_held(classes, false);
  for (size_t i = 0; i < held; ++i) {
    is_held[static_cast<size_t>(order[i])] = true;
  }

  Dataset result = data;
  result.items.clear();
  result.class_names.clear();
  std::vector<int32_t> label_of(classes);
  for (const bool wanted : {false, true}) {
    for (size_t c = 0; c < classes; ++c) {
      if (is_held[c] == wanted) {
        label_of[c] = static_cast<int32_t>(result.class_names.size());
        result.class_names.push_back(data.class_names[c]);
      }
    }
  }
  result.train_classes = static_cast<int32_t>(classes - held);
  for (const Item& item : data.items) {
    if (!item.train) {
      continue;
    }
    Item kept = item;
    kept.label = label_of[static_cast<size_t>(item.label)];
    kept.train = !is_held[static_cast<size_t>(item.label)];
    kept.query = kept.gallery = !kept.train;
    result.items.push_back(std::move(kept));
  }
  return result;
}

}  // namespace gle::data
