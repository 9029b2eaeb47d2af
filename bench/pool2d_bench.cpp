// The pools of BN-Inception and DenseNet-161. Bytes: every input read once, every output written once.
#include "layers/pool2d.h"

#include <benchmark/benchmark.h>

#include "bench/rates.h"

namespace gle::bench {

namespace {

struct Setup {
  explicit Setup(const benchmark::State& state)
      : x(random_tensor(b, {state.range(0), state.range(1), state.range(2), state.range(3)}, 1)) {
    const int stride = static_cast<int>(state.range(4));
    options = {.kernel_h = 3,
               .kernel_w = 3,
               .stride_h = stride,
               .stride_w = stride,
               .pad_h = stride == 1 ? 1 : 0,
               .pad_w = stride == 1 ? 1 : 0,
               .rounding = Rounding::ceil};
    y = random_tensor(b, pool2d_shape(x.shape(), options), 2);
    taps = b.new_tensor("bench", y.shape(), DType::u8);
    b.max_pool_forward(x, options, y, taps);
  }

  Backend& b = backend();
  Tensor x, y, taps;
  Pool2dOptions options;

  double bytes(double bytes_per_tap) const {
    return bytes_of_floats({x.elements(), y.elements()}) + bytes_per_tap * static_cast<double>(y.elements());
  }
};

void max_forward(benchmark::State& state) {
  Setup s(state);
  for (auto _ : state) {
    s.b.max_pool_forward(s.x, s.options, s.y, s.taps);
  }
  report(state, 0, s.bytes(1));
}

void max_backward(benchmark::State& state) {
  Setup s(state);
  for (auto _ : state) {
    s.b.max_pool_backward(s.taps, s.options, s.y, {s.x});
  }
  report(state, 0, s.bytes(1));
}

void average_forward(benchmark::State& state) {
  Setup s(state);
  for (auto _ : state) {
    s.b.average_pool_forward(s.x, s.options, s.y);
  }
  report(state, 0, s.bytes(0));
}

void average_backward(benchmark::State& state) {
  Setup s(state);
  for (auto _ : state) {
    s.b.average_pool_backward(s.options, s.y, {s.x});
  }
  report(state, 0, s.bytes(0));
}

void global_forward(benchmark::State& state) {
  Setup s(state);
  const Shape pooled{s.x.shape()[0], s.x.shape()[3]};
  const Tensor y = random_tensor(s.b, pooled);
  const Tensor where = s.b.new_tensor("bench", pooled, DType::i32);
  for (auto _ : state) {
    s.b.global_pool_forward(s.x, 0.5F, y, where);
  }
  report(state, 0, bytes_of_floats({s.x.elements()}));
}

void global_backward(benchmark::State& state) {
  Setup s(state);
  const Shape pooled{s.x.shape()[0], s.x.shape()[3]};
  const Tensor y = random_tensor(s.b, pooled);
  const Tensor where = s.b.new_tensor("bench", pooled, DType::i32);
  s.b.global_pool_forward(s.x, 0.5F, y, where);
  for (auto _ : state) {
    s.b.global_pool_backward(where, 0.5F, y, {s.x});
  }
  report(state, 0, bytes_of_floats({s.x.elements()}));
}

void windows(benchmark::internal::Benchmark* bench) {
  bench->Args({32, 114, 114, 64, 2})
      ->Args({32, 57, 57, 192, 2})
      ->Args({32, 28, 28, 320, 2})
      ->Args({32, 28, 28, 256, 1});
  bench->Args({32, 14, 14, 576, 1})->Args({32, 7, 7, 1024, 1})->Args({16, 128, 64, 96, 2});
  bench->Unit(benchmark::kMicrosecond)->UseRealTime();
}

void whole(benchmark::internal::Benchmark* bench) {
  bench->Args({32, 7, 7, 1024, 1})->Args({16, 8, 4, 2208, 1})->Unit(benchmark::kMicrosecond)->UseRealTime();
}

BENCHMARK(max_forward)->Name("max_pool_forward")->Apply(windows);
BENCHMARK(max_backward)->Name("max_pool_backward")->Apply(windows);
BENCHMARK(average_forward)->Name("average_pool_forward")->Apply(windows);
BENCHMARK(average_backward)->Name("average_pool_backward")->Apply(windows);
BENCHMARK(global_forward)->Name("global_pool_forward")->Apply(whole);
BENCHMARK(global_backward)->Name("global_pool_backward")->Apply(whole);

}  // namespace

}  // namespace gle::bench
