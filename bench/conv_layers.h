#pragma once

#include <vector>

namespace gle::bench {

// One convolution of a network: input height, width, channels, output channels, kernel, stride, padding, and how often
// the network has it. `pitch` is the width of the buffer whose channels it reads, if more than its own.
struct ConvLayer {
  int h, w, c, k, kernel, stride, pad, times = 1, pitch = 0;
};

// BN-Inception at 227x227.
inline std::vector<ConvLayer> bn_inception_layers() {
  std::vector<ConvLayer> layers = {{227, 227, 3, 64, 7, 2, 3}, {57, 57, 64, 64, 1, 1, 0}, {57, 57, 64, 192, 3, 1, 1}};
  // An inception module: 1x1 branch, 1x1 + 3x3, 1x1 + 3x3 + 3x3, pool + 1x1. Without the first and the last it halves.
  struct Module {
    int size, in, one, reduce3, three, reduce33, double3, pool;
  };
  for (const Module& m :
       {Module{28, 192, 64, 64, 64, 64, 96, 32}, Module{28, 256, 64, 64, 96, 64, 96, 64},
        Module{28, 320, 0, 128, 160, 64, 96, 0}, Module{14, 576, 224, 64, 96, 96, 128, 128},
        Module{14, 576, 192, 96, 128, 96, 128, 128}, Module{14, 576, 160, 128, 160, 128, 160, 128},
        Module{14, 608, 96, 128, 192, 160, 192, 128}, Module{14, 608, 0, 128, 192, 192, 256, 0},
        Module{7, 1056, 352, 192, 320, 160, 224, 128}, Module{7, 1024, 352, 192, 320, 192, 224, 128}}) {
    const int stride = m.one == 0 ? 2 : 1;
    for (const int out : {m.one, m.reduce3, m.reduce33, m.pool}) {
      if (out > 0) {
        layers.push_back({m.size, m.size, m.in, out, 1, 1, 0});
      }
    }
    layers.push_back({m.size, m.size, m.reduce3, m.three, 3, stride, 1});
    layers.push_back({m.size, m.size, m.reduce33, m.double3, 3, 1, 1});
    layers.push_back({m.size, m.size, m.double3, m.double3, 3, stride, 1});
  }
  return layers;
}

// DenseNet-161 at 256x128: dense layers read a growing slice of their block's buffer.
inline std::vector<ConvLayer> densenet161_layers() {
  std::vector<ConvLayer> layers = {{256, 128, 3, 96, 7, 2, 3}};
  int h = 64;
  int w = 32;
  int channels = 96;
  for (const int count : {6, 12, 36, 24}) {
    const int full = channels + 48 * count;
    for (int i = 0; i < count; ++i) {
      layers.push_back({h, w, channels + 48 * i, 192, 1, 1, 0, 1, full});
    }
    layers.push_back({h, w, 192, 48, 3, 1, 1, count});
    if (count != 24) {
      layers.push_back({h, w, full, full / 2, 1, 1, 0});
      channels = full / 2;
      h /= 2;
      w /= 2;
    }
  }
  return layers;
}

}  // namespace gle::bench
