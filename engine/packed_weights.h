#pragma once

#include "engine/tensor.h"

namespace gle {

// Convolution weights in a backend's own order, kept by whoever owns weights that stay the same from call to call.
// The backend fills it when `layout` is not the one that it wants; the owner clears it when the weights change.
struct PackedWeights {
  Tensor data;
  const void* layout = nullptr;

  void clear() { *this = PackedWeights{}; }
};

}  // namespace gle
