// Kernels over rows: logits (batch x classes) and embeddings (batch x features).
#include <benchmark/benchmark.h>

#include <vector>

#include "bench/rates.h"

namespace gle::bench {

namespace {

struct Setup {
  explicit Setup(const benchmark::State& state) : shape{state.range(0), state.range(1)} {
    std::vector<int32_t> numbers(static_cast<size_t>(shape[0]));
    for (size_t i = 0; i < numbers.size(); ++i) {
      numbers[i] = static_cast<int32_t>(static_cast<int64_t>(i) * 7 % shape[1]);
    }
    labels = b.new_tensor("bench", {shape[0]}, DType::i32);
    b.upload(numbers.data(), labels);
  }

  Backend& b = backend();
  Shape shape;
  Tensor x = random_tensor(b, shape, 1);
  Tensor y = random_tensor(b, shape, 2);
  Tensor z = random_tensor(b, shape, 3);
  Tensor per_row = random_tensor(b, {shape[0]}, 4);
  Tensor log_sums = random_tensor(b, {shape[0], 2}, 6);
  Tensor loss = random_tensor(b, {1}, 5);
  Tensor labels;
};

// `passes`: how many matrices of the shape the kernel must read or write.
template <class Kernel>
void run(benchmark::State& state, double passes, Kernel kernel) {
  Setup s(state);
  for (auto _ : state) {
    kernel(s);
  }
  report(state, 0, passes * bytes_of_floats({s.x.elements()}));
}

void softmax_forward(benchmark::State& state) {
  run(state, 2, [](Setup& s) { s.b.softmax_forward(s.x, s.y); });
}
void softmax_backward(benchmark::State& state) {
  run(state, 3, [](Setup& s) { s.b.softmax_backward(s.x, s.y, {s.z}); });
}
void log_softmax_forward(benchmark::State& state) {
  run(state, 2, [](Setup& s) { s.b.log_softmax_forward(s.x, s.y); });
}
void log_softmax_backward(benchmark::State& state) {
  run(state, 3, [](Setup& s) { s.b.log_softmax_backward(s.x, s.y, {s.z}); });
}
void cross_entropy_forward(benchmark::State& state) {
  run(state, 1, [](Setup& s) { s.b.cross_entropy_forward(s.x, s.labels, 0.1F, s.log_sums, s.loss); });
}
void cross_entropy_backward(benchmark::State& state) {
  run(state, 2, [](Setup& s) { s.b.cross_entropy_backward(s.x, s.labels, 0.1F, s.log_sums, s.loss, {s.y}); });
}
void centre_rows(benchmark::State& state) {
  run(state, 2, [](Setup& s) { s.b.centre_rows(s.x, {s.y}); });
}
void normalise_rows_forward(benchmark::State& state) {
  run(state, 2, [](Setup& s) { s.b.normalise_rows_forward(s.x, 0.004F, s.per_row, s.y); });
}
void normalise_rows_backward(benchmark::State& state) {
  run(state, 3, [](Setup& s) { s.b.normalise_rows_backward(s.x, s.per_row, 0.004F, s.y, {s.z}); });
}

// The columns of a batch's labels, which ascend here.
Tensor few_columns(Setup& s, int64_t count) {
  std::vector<int32_t> numbers(static_cast<size_t>(count));
  for (size_t i = 0; i < numbers.size(); ++i) {
    numbers[i] = static_cast<int32_t>(static_cast<int64_t>(i) * s.shape[1] / count);
  }
  Tensor columns = s.b.new_tensor("bench", {count}, DType::i32);
  s.b.upload(numbers.data(), columns);
  return columns;
}
constexpr int64_t kColumns = 30;

void take_columns(benchmark::State& state) {
  Setup s(state);
  const Tensor columns = few_columns(s, kColumns), narrow = random_tensor(s.b, {s.shape[0], kColumns}, 6);
  for (auto _ : state) {
    s.b.take_columns(s.x, columns, narrow);
  }
  report(state, 0, 2 * bytes_of_floats({narrow.elements()}));
}
void put_columns(benchmark::State& state) {
  Setup s(state);
  const Tensor columns = few_columns(s, kColumns), narrow = random_tensor(s.b, {s.shape[0], kColumns}, 6);
  for (auto _ : state) {
    s.b.put_columns(narrow, columns, {s.x});
  }
  report(state, 0, bytes_of_floats({narrow.elements(), s.x.elements()}));
}

void logits(benchmark::internal::Benchmark* bench) {
  bench->Args({54, 100})->Args({60, 11318})->Unit(benchmark::kMicrosecond)->UseRealTime();
}
void embeddings(benchmark::internal::Benchmark* bench) {
  bench->Args({54, 1024})->Args({4096, 1024})->Unit(benchmark::kMicrosecond)->UseRealTime();
}

BENCHMARK(softmax_forward)->Apply(logits);
BENCHMARK(softmax_backward)->Apply(logits);
BENCHMARK(log_softmax_forward)->Apply(logits);
BENCHMARK(log_softmax_backward)->Apply(logits);
BENCHMARK(cross_entropy_forward)->Apply(logits);
BENCHMARK(cross_entropy_backward)->Apply(logits);
BENCHMARK(take_columns)->Apply(logits);
BENCHMARK(put_columns)->Apply(logits);
BENCHMARK(centre_rows)->Apply(embeddings);
BENCHMARK(normalise_rows_forward)->Apply(embeddings);
BENCHMARK(normalise_rows_backward)->Apply(embeddings);

}  // namespace

}  // namespace gle::bench
