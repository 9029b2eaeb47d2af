// Matrix products: classifiers of CUB and Stanford Online Products, similarities of a batch, and a k-NN tile.
#include <benchmark/benchmark.h>

#include "bench/rates.h"

namespace gle::bench {

namespace {

void gemm(benchmark::State& state, Transpose op_a, Transpose op_b) {
  Backend& b = backend();
  const int64_t m = state.range(0);
  const int64_t n = state.range(1);
  const int64_t k = state.range(2);
  const Tensor a = random_tensor(b, op_a == Transpose::no ? Shape{m, k} : Shape{k, m}, 1);
  const Tensor w = random_tensor(b, op_b == Transpose::no ? Shape{k, n} : Shape{n, k}, 2);
  const Tensor c = random_tensor(b, {m, n}, 3);
  for (auto _ : state) {
    b.gemm(a, op_a, w, op_b, Tensor(), {c});
  }
  report(state, 2.0 * static_cast<double>(m * n * k), bytes_of_floats({a.elements(), w.elements(), c.elements()}));
}

void shapes(benchmark::internal::Benchmark* bench) {
  bench->Args({54, 100, 1024})->Args({60, 11318, 1024})->Args({54, 54, 1024})->Args({1024, 4096, 512});
  bench->Unit(benchmark::kMicrosecond)->UseRealTime();
}

BENCHMARK_CAPTURE(gemm, a_bt, Transpose::no, Transpose::yes)->Apply(shapes);
BENCHMARK_CAPTURE(gemm, a_b, Transpose::no, Transpose::no)->Apply(shapes);
BENCHMARK_CAPTURE(gemm, at_b, Transpose::yes, Transpose::no)->Apply(shapes);

}  // namespace

}  // namespace gle::bench
