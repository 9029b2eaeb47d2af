// Elementwise kernels on an activation of BN-Inception.
#include <benchmark/benchmark.h>

#include "bench/rates.h"

namespace gle::bench {

namespace {

// Runs `kernel(backend, x, y, z)`; `passes` is how many of these it must read or write.
template <class Kernel>
void run(benchmark::State& state, double passes, Kernel kernel) {
  Backend& b = backend();
  const Shape shape{32, state.range(0), state.range(0), state.range(1)};
  const Tensor x = random_tensor(b, shape, 1);
  const Tensor y = random_tensor(b, shape, 2);
  const Tensor z = random_tensor(b, shape, 3);
  for (auto _ : state) {
    kernel(b, x, y, z);
  }
  report(state, 0, passes * bytes_of_floats({x.elements()}));
}

void fill(benchmark::State& state) {
  run(state, 1, [](Backend& b, const Tensor& x, const Tensor&, const Tensor&) { b.fill(1.0F, x); });
}
void add(benchmark::State& state) {
  run(state, 3, [](Backend& b, const Tensor& x, const Tensor& y, const Tensor& z) { b.add(x, y, z); });
}
void scale(benchmark::State& state) {
  run(state, 2, [](Backend& b, const Tensor& x, const Tensor& y, const Tensor&) { b.scale(2.0F, x, {y}); });
}
void scale_by(benchmark::State& state) {
  run(state, 2, [](Backend& b, const Tensor& x, const Tensor& y, const Tensor& z) {
    b.scale_by(z.reshaped({1, z.elements()}).slice(0, 1).reshaped({1}), x, {y});
  });
}
void activation_forward(benchmark::State& state) {
  run(state, 2, [](Backend& b, const Tensor& x, const Tensor& y, const Tensor&) { b.activation_forward(x, kRelu, y); });
}
void activation_backward(benchmark::State& state) {
  run(state, 3,
      [](Backend& b, const Tensor& x, const Tensor& y, const Tensor& z) { b.activation_backward(x, kRelu, y, {z}); });
}
void dropout(benchmark::State& state) {
  run(state, 2, [](Backend& b, const Tensor& x, const Tensor& y, const Tensor&) {
    b.dropout(x, 0.5F, {.seed = 1, .stream = 2}, 0, {y});
  });
}
void all_finite(benchmark::State& state) {
  run(state, 1,
      [](Backend& b, const Tensor& x, const Tensor&, const Tensor&) { benchmark::DoNotOptimize(b.all_finite(x)); });
}
void column_sums(benchmark::State& state) {
  run(state, 1, [](Backend& b, const Tensor& x, const Tensor& y, const Tensor&) {
    b.column_sums(x, {y.reshaped({1, y.elements()}).slice(0, x.channels())});
  });
}

// A batch of pictures.
void images_from_bytes(benchmark::State& state) {
  Backend& b = backend();
  const Shape shape{32, state.range(0), state.range(0), 3};
  const Tensor x = b.new_tensor("bench", shape, DType::u8);
  const Tensor erased = b.new_tensor("bench", {shape[0], 4}, DType::i32);
  const std::vector<int32_t> zeros(static_cast<size_t>(shape.elements()));
  b.upload(zeros.data(), x);
  b.upload(zeros.data(), erased);
  const Tensor y = b.new_tensor("bench", shape);
  for (auto _ : state) {
    b.images_from_bytes(x, {}, erased, y);
  }
  report(state, 0, static_cast<double>(shape.elements()) + bytes_of_floats({shape.elements()}));
}

void shapes(benchmark::internal::Benchmark* bench) {
  bench->Args({57, 192})->Args({14, 160})->Unit(benchmark::kMicrosecond)->UseRealTime();
}

BENCHMARK(fill)->Apply(shapes);
BENCHMARK(add)->Apply(shapes);
BENCHMARK(scale)->Apply(shapes);
BENCHMARK(scale_by)->Apply(shapes);
BENCHMARK(activation_forward)->Apply(shapes);
BENCHMARK(activation_backward)->Apply(shapes);
BENCHMARK(dropout)->Apply(shapes);
BENCHMARK(all_finite)->Apply(shapes);
BENCHMARK(column_sums)->Apply(shapes);
BENCHMARK(images_from_bytes)->Arg(227)->Unit(benchmark::kMicrosecond)->UseRealTime();

}  // namespace

}  // namespace gle::bench
