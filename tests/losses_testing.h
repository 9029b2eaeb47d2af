#pragma once

#include <numeric>
#include <string>

#include "tests/array.h"
#include "tests/reference/losses.h"

namespace gle::test {

// A batch of the Group Loss with its answer in double precision.
struct GroupProblem {
  std::string label;
  Array embeddings, logits, given;  // given, or embeddings, may be empty
  reference::GroupCase c;

  std::vector<int32_t> anchors() const {
    std::vector<int32_t> numbers;
    for (size_t i = 0; i < c.anchors.size(); ++i) {
      if (c.anchors[i] != 0) {
        numbers.push_back(static_cast<int32_t>(i));
      }
    }
    return numbers;
  }
  void set(Context& ctx, GroupBatch& batch) const {
    const std::vector<int32_t> labels(c.labels.begin(), c.labels.end());
    batch.set(ctx, labels, logits.channels(), c.options, anchors());
  }
};

enum class Given { none, some, all };

inline GroupProblem draw_group_problem(Draw& draw, int64_t n, int64_t classes, int64_t features,
                                       const GroupLossOptions& options, Given given) {
  GroupProblem p;
  p.embeddings = given == Given::all ? Array() : draw.array({n, features});
  p.logits = draw.array({n, classes}, -3, 3);
  p.c.options = options;
  p.c.options.anchors = AnchorChoice::given;
  const int64_t used = std::min<int64_t>(classes, 4);
  for (int64_t i = 0; i < n; ++i) {
    p.c.labels.push_back(static_cast<int>(draw.integer(0, used - 1) * (classes / used)));
    p.c.anchors.push_back(draw.integer(0, 3) == 0 ? 1 : 0);
  }
  if (given != Given::none) {
    p.given = Array({n, n});
    for (double& w : p.given.values) {
      w = given == Given::some && draw.integer(0, 1) == 0
              ? -1
              : static_cast<double>(static_cast<float>(draw.uniform(0.1, 1)));
    }
  }
  return p;
}

}  // namespace gle::test
