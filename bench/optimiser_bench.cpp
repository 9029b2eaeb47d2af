// Optimisers over the flat arrays of BN-Inception.
#include <benchmark/benchmark.h>

#include "bench/rates.h"

namespace gle::bench {

namespace {

struct Setup {
  Backend& b = backend();
  Shape shape{10'372'740};
  Tensor gradient = random_tensor(b, shape, 1);
  Tensor moment1 = random_tensor(b, shape, 2);
  Tensor moment2 = random_tensor(b, shape, 3);
  Tensor value = random_tensor(b, shape, 4);
};

// `passes`: how many of the arrays the kernel must read or write.
template <class Kernel>
void run(benchmark::State& state, double passes, Kernel kernel) {
  Setup s;
  s.b.fill(1.0F, s.moment2);
  for (auto _ : state) {
    kernel(s);
  }
  report(state, 0, passes * bytes_of_floats({s.value.elements()}));
}

void adam_step(benchmark::State& state) {
  run(state, 7, [](Setup& s) {
    s.b.adam_step({.decay = 0.9999F, .step_size = 1e-6F}, s.gradient, s.moment1, s.moment2, s.value);
  });
}
void momentum_step(benchmark::State& state) {
  run(state, 5, [](Setup& s) { s.b.momentum_step({.step_size = 1e-6F}, s.gradient, s.moment1, s.value); });
}
void moving_average(benchmark::State& state) {
  run(state, 3, [](Setup& s) { s.b.moving_average(0.999F, s.value, s.moment1); });
}
void sum_of_squares(benchmark::State& state) {
  run(state, 1, [](Setup& s) { benchmark::DoNotOptimize(s.b.sum_of_squares(s.value)); });
}

BENCHMARK(adam_step)->Unit(benchmark::kMicrosecond)->UseRealTime();
BENCHMARK(momentum_step)->Unit(benchmark::kMicrosecond)->UseRealTime();
BENCHMARK(moving_average)->Unit(benchmark::kMicrosecond)->UseRealTime();
BENCHMARK(sum_of_squares)->Unit(benchmark::kMicrosecond)->UseRealTime();

}  // namespace

}  // namespace gle::bench
