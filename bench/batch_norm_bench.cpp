// Batch-norm + ReLU on the larger tensors of BN-Inception and DenseNet-161. Bytes are the least possible: statistics
// read x; forward reads x and writes y; backward reads x and dy twice and writes dx.
#include <benchmark/benchmark.h>

#include "bench/rates.h"

namespace gle::bench {

namespace {

struct Setup {
  explicit Setup(const benchmark::State& state)
      : shape{state.range(0), state.range(1), state.range(2), state.range(3)} {}

  Backend& b = backend();
  Shape shape;
  Shape channels{shape.channels()};
  Tensor x = random_tensor(b, shape, 1);
  Tensor y = random_tensor(b, shape, 2);
  Tensor gamma = random_tensor(b, channels, 3);
  Tensor beta = random_tensor(b, channels, 4);
  Tensor mean = random_tensor(b, channels, 5);
  Tensor inv_std = random_tensor(b, channels, 6);
  Tensor running_mean = random_tensor(b, channels, 7);
  Tensor running_var = random_tensor(b, channels, 8);
};

void statistics(benchmark::State& state) {
  Setup s(state);
  for (auto _ : state) {
    s.b.batch_norm_statistics(s.x, 1e-5F, 0.1F, s.running_mean, s.running_var, s.mean, s.inv_std);
  }
  report(state, 0, bytes_of_floats({s.x.elements()}));
}

void forward(benchmark::State& state) {
  Setup s(state);
  for (auto _ : state) {
    s.b.batch_norm_forward(s.x, s.mean, s.inv_std, s.gamma, s.beta, kRelu, s.y);
  }
  report(state, 0, bytes_of_floats({s.x.elements(), s.y.elements()}));
}

void backward(benchmark::State& state) {
  Setup s(state);
  const Tensor dx = random_tensor(s.b, s.shape, 9);
  for (auto _ : state) {
    s.b.batch_norm_backward(s.x, s.mean, s.inv_std, s.gamma, s.beta, kRelu, Statistics::of_batch, s.y, {dx},
                            {s.running_mean}, {s.running_var});
  }
  report(state, 0, 5 * bytes_of_floats({s.x.elements()}));
}

void shapes(benchmark::internal::Benchmark* bench) {
  bench->Args({32, 114, 114, 64})->Args({32, 57, 57, 192})->Args({32, 28, 28, 96})->Args({32, 14, 14, 160});
  bench->Args({32, 7, 7, 352})->Args({16, 64, 32, 384})->Args({16, 32, 16, 768})->Args({16, 16, 8, 2112});
  bench->Unit(benchmark::kMicrosecond)->UseRealTime();
}

BENCHMARK(statistics)->Name("batch_norm_statistics")->Apply(shapes);
BENCHMARK(forward)->Name("batch_norm_forward")->Apply(shapes);
BENCHMARK(backward)->Name("batch_norm_backward")->Apply(shapes);

}  // namespace

}  // namespace gle::bench
