// A row per convolution of BN-Inception (batch 32, 227x227) and DenseNet-161 (batch 16, 256x128), three directions,
// and forward once more with weights that are kept packed, as inference does.
#include "layers/conv2d.h"

#include <benchmark/benchmark.h>

#include <string>

#include "bench/conv_layers.h"
#include "bench/rates.h"

namespace gle::bench {

namespace {

enum class Direction { forward, inference, data, weights };

void run_layer(benchmark::State& state, const ConvLayer& layer, int64_t batch, Direction direction) {
  Backend& b = backend();
  const Conv2dOptions options{
      .stride_h = layer.stride, .stride_w = layer.stride, .pad_h = layer.pad, .pad_w = layer.pad};
  const int64_t wide = layer.pitch > layer.c ? layer.pitch : layer.c;
  const Tensor x = random_tensor(b, {batch, layer.h, layer.w, wide}).slice(0, layer.c);
  const Tensor w = random_tensor(b, {layer.k, layer.kernel, layer.kernel, layer.c});
  const Tensor y = random_tensor(b, conv2d_shape(x.shape(), w.shape(), options));
  PackedWeights packed;
  for (auto _ : state) {
    if (direction == Direction::forward || direction == Direction::inference) {
      b.conv2d_forward(x, w, Tensor(), options, kIdentity, direction == Direction::inference ? &packed : nullptr, y);
    } else if (direction == Direction::data) {
      b.conv2d_backward_data(w, y, options, {x});
    } else {
      b.conv2d_backward_weights(x, y, options, {w});
    }
  }
  report(state, 2.0 * static_cast<double>(y.elements()) * static_cast<double>(w.elements()) / layer.k,
         bytes_of_floats({x.elements(), w.elements(), y.elements()}));
}

void add_rows(const char* network, const std::vector<ConvLayer>& layers, int64_t batch) {
  int number = 0;
  for (const ConvLayer& layer : layers) {
    const std::string place = std::string(network) + "/" + std::to_string(number++) + ":" + std::to_string(layer.h) +
                              "x" + std::to_string(layer.w) + "," + std::to_string(layer.c) + "->" +
                              std::to_string(layer.k) + "," + std::to_string(layer.kernel) + "/" +
                              std::to_string(layer.stride);
    const auto add = [&](const char* name, Direction direction) {
      benchmark::RegisterBenchmark((name + ("/" + place)).c_str(),
                                   [=](benchmark::State& state) { run_layer(state, layer, batch, direction); })
          ->Unit(benchmark::kMillisecond)
          ->UseRealTime();
    };
    add("conv2d_forward", Direction::forward);
    add("conv2d_inference", Direction::inference);
    add("conv2d_backward_weights", Direction::weights);
    if (layer.c > 3) {
      add("conv2d_backward_data", Direction::data);
    }
  }
}

const bool kRegistered = [] {
  add_rows("bn_inception", bn_inception_layers(), 32);
  add_rows("densenet161", densenet161_layers(), 16);
  return true;
}();

}  // namespace

}  // namespace gle::bench
