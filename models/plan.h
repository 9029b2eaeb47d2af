#pragma once

#include "engine/context.h"
#include "models/network.h"

namespace gle {

struct MemoryPlan {
  size_t parameters = 0;  // values, and in training their gradients; running statistics
  size_t peak = 0;        // all that is live at the worst moment, parameters included
  size_t reserved = 0;    // what the allocator holds then: the peak and the gaps in its segments
};

// The memory of one pass over images of this shape, found by a dry run: forward alone in inference, forward and
// backward in training. The kernels' scratch and an optimiser's moments come on top, in inference also folded and
// packed weights.
MemoryPlan plan_memory(const NetworkOptions& options, const Shape& images, Mode mode,
                       const ForwardOptions& forward = {});

struct LayerRow {
  std::string name;
  std::string kind;
  Shape output;
  int64_t parameters = 0;
  int64_t multiply_adds = 0;
};

// One row per layer, for images of this shape.
std::vector<LayerRow> describe(const Network& network, const Shape& images);

}  // namespace gle
