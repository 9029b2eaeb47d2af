// Batch-norm + ReLU on the larger tensors of BN-Inception and DenseNet-161. Bytes are the least possible: statistics
// read x; forward reads x and writes y; backward reads x and dy twice and writes dx.
#include <benchmark/benchmark.h>

#include "bench/rates.h"
#include "layers/batch_norm_conv.h"

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

// What several ranks do of it.
void join_statistics(benchmark::State& state) {
  Setup s(state);
  const Tensor moments = random_tensor(s.b, {16, s.shape.channels()}, 9);
  s.b.fill(1.0F, moments);
  for (auto _ : state) {
    s.b.batch_norm_join_statistics(moments, 100, 1e-5F, 0.1F, s.running_mean, s.running_var, s.mean, s.inv_std);
  }
  report(state, 0, bytes_of_floats({moments.elements()}));
}

void backward_sums(benchmark::State& state) {
  Setup s(state);
  const Tensor sums = random_tensor(s.b, {2, s.shape.channels()}, 9);
  for (auto _ : state) {
    s.b.batch_norm_backward_sums(s.x, s.mean, s.inv_std, s.gamma, s.beta, kRelu, s.y, sums, {s.running_mean},
                                 {s.running_var});
  }
  report(state, 0, 2 * bytes_of_floats({s.x.elements()}));
}

void backward_data(benchmark::State& state) {
  Setup s(state);
  const Tensor dx = random_tensor(s.b, s.shape, 9);
  const Tensor sums = random_tensor(s.b, {2, s.shape.channels()}, 10);
  for (auto _ : state) {
    s.b.batch_norm_backward_data(s.x, s.mean, s.inv_std, s.gamma, s.beta, kRelu, s.y, sums, 8 * s.x.rows(), {dx});
  }
  report(state, 0, 3 * bytes_of_floats({s.x.elements()}));
}

// What several layers that normalise the same tensor share.
void backward_moments(benchmark::State& state) {
  Setup s(state);
  const Tensor dmoments = random_tensor(s.b, {2, s.shape.channels()}, 9);
  for (auto _ : state) {
    s.b.batch_norm_backward_moments(s.inv_std, s.gamma, s.running_mean, s.running_var, 100, {dmoments});
  }
  report(state, 0, 6 * bytes_of_floats({s.shape.channels()}));
}

void moments_backward(benchmark::State& state) {
  Setup s(state);
  const Tensor dx = random_tensor(s.b, s.shape, 9);
  const Tensor moments = random_tensor(s.b, {2, s.shape.channels()}, 10);
  for (auto _ : state) {
    s.b.moments_backward(s.x, moments, moments, s.x.rows(), {dx});
  }
  report(state, 0, 2 * bytes_of_floats({s.x.elements()}));
}

// Folding into the 3x3 convolution that comes before: as many outputs as the tensor has channels.
void fold(benchmark::State& state) {
  Setup s(state);
  const Tensor w = random_tensor(s.b, {s.shape.channels(), 3, 3, s.shape.channels()}, 9);
  const Tensor folded = random_tensor(s.b, w.shape(), 10);
  for (auto _ : state) {
    s.b.batch_norm_fold(w, Tensor(), s.mean, s.inv_std, s.gamma, s.beta, folded, s.running_mean);
  }
  report(state, 0, 2 * bytes_of_floats({w.elements()}));
}

void inv_std(benchmark::State& state) {
  Setup s(state);
  s.b.fill(1.0F, s.running_var);
  for (auto _ : state) {
    s.b.batch_norm_inv_std(s.running_var, 1e-5F, s.inv_std);
  }
  report(state, 0, 2 * bytes_of_floats({s.inv_std.elements()}));
}

// conv1x1(relu(batch_norm(x))) of DenseNet and its gradients, keeping what is between or making it again.
enum class Between { kept, recomputed };

void norm_conv(benchmark::State& state, Between between) {
  Setup s(state);
  ParameterSet set;
  const BatchNorm norm = make_batch_norm(set, "norm", s.shape.channels());
  const Conv2d conv = make_conv2d(set, "conv", {.in = s.shape.channels(), .out = 192, .kernel_h = 1, .kernel_w = 1}, {},
                                  /*with_bias=*/false);
  set.allocate(s.b);
  s.b.fill(1e-2F, set.values());
  Tape tape(s.b);
  Tensor cotangent;
  for (auto _ : state) {
    Context ctx{.backend = s.b, .tape = &tape, .mode = Mode::training};
    const Var x = tape.leaf(s.x);
    const Var y = between == Between::kept ? conv2d(ctx, batch_norm(ctx, x, norm, kRelu), conv)
                                           : batch_norm_conv(ctx, x, norm, kRelu, conv);
    if (!cotangent) {
      cotangent = random_tensor(s.b, y.shape(), 11);
    }
    tape.backward(y, cotangent);
    tape.clear();
    set.clear_gradients();
  }
  const double elements = static_cast<double>(s.x.elements());
  const double passes = between == Between::kept ? 10 : 11;
  report(state, 6 * elements * 192, passes * bytes_of_floats({s.x.elements()}));
}

void shapes(benchmark::internal::Benchmark* bench) {
  bench->Args({32, 114, 114, 64})->Args({32, 57, 57, 192})->Args({32, 28, 28, 96})->Args({32, 14, 14, 160});
  bench->Args({32, 7, 7, 352})->Args({16, 64, 32, 384})->Args({16, 32, 16, 768})->Args({16, 16, 8, 2112});
  bench->Unit(benchmark::kMicrosecond)->UseRealTime();
}

void dense_shapes(benchmark::internal::Benchmark* bench) {
  bench->Args({16, 64, 32, 384})->Args({16, 32, 16, 768})->Args({16, 16, 8, 2112});
  bench->Unit(benchmark::kMicrosecond)->UseRealTime();
}

BENCHMARK(statistics)->Name("batch_norm_statistics")->Apply(shapes);
BENCHMARK(forward)->Name("batch_norm_forward")->Apply(shapes);
BENCHMARK(backward)->Name("batch_norm_backward")->Apply(shapes);
BENCHMARK(join_statistics)->Name("batch_norm_join_statistics")->Args({1, 1, 1, 352})->Unit(benchmark::kMicrosecond);
BENCHMARK(backward_sums)->Name("batch_norm_backward_sums")->Apply(shapes);
BENCHMARK(backward_data)->Name("batch_norm_backward_data")->Apply(shapes);
BENCHMARK(backward_moments)->Name("batch_norm_backward_moments")->Args({1, 1, 1, 352})->Unit(benchmark::kMicrosecond);
BENCHMARK(moments_backward)->Name("moments_backward")->Apply(shapes);
BENCHMARK(fold)->Name("batch_norm_fold")->Args({1, 1, 1, 192})->Args({1, 1, 1, 352})->Unit(benchmark::kMicrosecond);
BENCHMARK(inv_std)->Name("batch_norm_inv_std")->Args({1, 1, 1, 352})->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(norm_conv, kept, Between::kept)->Name("batch_norm_conv/kept")->Apply(dense_shapes);
BENCHMARK_CAPTURE(norm_conv, recomputed, Between::recomputed)->Name("batch_norm_conv/recomputed")->Apply(dense_shapes);

}  // namespace

}  // namespace gle::bench
