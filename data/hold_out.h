#pragma once

#include "data/dataset.h"

namespace gle::data {

// The data set without its test images, and with a share of its training classes (at least two) as test classes in
// their place; labels are numbered anew. Which classes depends on the seed alone. Throws ErrorCode::data if fewer than
// two would be left to train on.
Dataset hold_out(const Dataset& data, double share, uint64_t seed);

}  // namespace gle::data
