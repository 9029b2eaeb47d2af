#pragma once

#include <string>
#include <vector>

#include "engine/options.h"
#include "tests/array.h"

namespace gle::test {

// [N,H,W,C] and [N,C]: single elements, odd and non-square sizes, every remainder of the vector widths, random ones,
// and two large enough to be cut into pieces for several threads.
std::vector<Shape> row_shapes();
// Those of them that are [N,C], and more.
std::vector<Shape> matrix_shapes();

struct ConvGeometry {
  Shape x, w;
  Conv2dOptions options;
  bool with_bias;
};
std::vector<ConvGeometry> conv_geometries();
std::string name_of(const ConvGeometry& g);

struct PoolGeometry {
  Shape x;
  Pool2dOptions options;
};
std::vector<PoolGeometry> pool_geometries();
std::string name_of(const PoolGeometry& g);

}  // namespace gle::test
