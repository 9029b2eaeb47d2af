// DenseNet-BC: each dense block is one wide value; a layer reads all channels written so far and writes the next few.
#include "models/graph_builder.h"

namespace gle {

Graph build_densenet(GraphBuilder& b, const DenseNetTable& table) {
  constexpr int64_t kBottleneck = 4;
  constexpr Pool2dOptions kHalving{.kernel_h = 2, .kernel_w = 2, .stride_h = 2, .stride_w = 2};
  Place x = b.conv_norm("features.conv0", "features.norm0", b.image(),
                        {.out = table.first, .kernel_h = 7, .kernel_w = 7, .stride = 2, .pad_h = 3, .pad_w = 3});
  for (int i = 0; i < 4; ++i) {
    const std::string number = std::to_string(i + 1);
    const Place block = b.new_value(x.channels() + table.layers[i] * table.growth);
    int64_t taken = 0;
    const Place start = b.part(block, taken, x.channels());
    if (i == 0) {
      b.max_pool("features.pool0", x,
                 {.kernel_h = 3, .kernel_w = 3, .stride_h = 2, .stride_w = 2, .pad_h = 1, .pad_w = 1}, start);
    } else {
      b.average_pool("features.transition" + std::to_string(i) + ".pool", x, kHalving, start);
    }
    for (int layer = 1; layer <= table.layers[i]; ++layer) {
      const Place before{block.value, 0, taken};
      b.dense_layer("features.denseblock" + number + ".denselayer" + std::to_string(layer), before,
                    kBottleneck * table.growth, b.part(block, taken, table.growth));
    }
    x = block;
    if (i < 3) {
      const std::string transition = "features.transition" + number;
      x = b.norm_conv(transition + ".norm", transition + ".conv", x, {.out = x.channels() / 2});
    }
  }
  return b.finish(b.norm("features.norm5", x, true));
}

}  // namespace gle
