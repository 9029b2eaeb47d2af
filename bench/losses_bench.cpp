// Losses of a batch: the Group Loss and the losses of pairs. bench/refine_vs_softmax.cpp sweeps the former.
#include <benchmark/benchmark.h>

#include <vector>

#include "bench/rates.h"
#include "losses/group_loss.h"

namespace gle::bench {

namespace {

constexpr int64_t kFeatures = 1024;
constexpr int kSamplesOfAClass = 9;

std::vector<int32_t> labels_of(int64_t n) {
  std::vector<int32_t> labels(static_cast<size_t>(n));
  for (size_t i = 0; i < labels.size(); ++i) {
    labels[i] = static_cast<int32_t>(i / kSamplesOfAClass);
  }
  return labels;
}

enum class Passes { forward, both };

// The row `backward` has the forward pass in it. A refinement step multiplies W[n,n] and X[n,C]; backward does so
// twice. Similarities and their gradients: n x n x D.
void group_loss(benchmark::State& state, Passes passes) {
  Backend& b = backend();
  const int64_t n = state.range(0);
  const int64_t classes = state.range(1);
  const GroupLossOptions options = paper_group_loss();
  GroupBatch batch;
  const Tensor embeddings = random_tensor(b, {n, kFeatures}, 1);
  const Tensor logits = random_tensor(b, {n, classes}, 2);
  Tape tape(b);
  for (auto _ : state) {
    Context ctx{.backend = b, .tape = passes == Passes::both ? &tape : nullptr, .mode = Mode::training};
    batch.set(ctx, labels_of(n), classes, options);
    const Var e = passes == Passes::both ? tape.leaf(embeddings) : Var(embeddings);
    const Var x = passes == Passes::both ? tape.leaf(logits) : Var(logits);
    const Var loss = gle::group_loss(ctx, e, x, batch, options);
    if (passes == Passes::both) {
      tape.backward(loss);
      tape.clear();
    }
  }
  const double forward = 2.0 * static_cast<double>(n * n) * static_cast<double>(kFeatures + classes);
  const double matrices = passes == Passes::both ? 2 : 1;
  report(state, passes == Passes::both ? 3 * forward : forward,
         matrices * bytes_of_floats({n * kFeatures, n * classes}));
}

void pair_loss(benchmark::State& state, PairLossKind kind, Pairs pairs) {
  Backend& b = backend();
  const int64_t rows = state.range(0);
  const int64_t columns = pairs == Pairs::of_batch ? rows : 100;
  const Tensor s = random_tensor(b, {rows, columns}, 1);
  const Tensor ds = random_tensor(b, {rows, columns}, 2);
  const Tensor loss = random_tensor(b, {1}, 3);
  const auto upload = [&](int64_t count) {
    const Tensor labels = b.new_tensor("bench", {count}, DType::i32);
    b.upload(labels_of(count).data(), labels);
    return labels;
  };
  const Tensor row_labels = upload(rows);
  const Tensor column_labels = pairs == Pairs::of_batch ? row_labels : upload(columns);
  const PairLossOptions options{.kind = kind, .margin = 0.2F, .scale = 2.0F, .negative_scale = 40.0F, .base = 0.5F};
  for (auto _ : state) {
    b.pair_loss(s, row_labels, column_labels, pairs, options, loss, ds);
  }
  report(state, 0, bytes_of_floats({s.elements(), ds.elements()}));
}

void batches(benchmark::internal::Benchmark* bench) {
  bench->Arg(54)->Arg(252)->Unit(benchmark::kMicrosecond)->UseRealTime();
}
void logits(benchmark::internal::Benchmark* bench) {
  bench->Args({54, 100})->Args({60, 11318})->Unit(benchmark::kMicrosecond)->UseRealTime();
}

BENCHMARK_CAPTURE(group_loss, forward, Passes::forward)->Apply(logits);
BENCHMARK_CAPTURE(group_loss, backward, Passes::both)->Apply(logits);
BENCHMARK_CAPTURE(pair_loss, contrastive, PairLossKind::contrastive, Pairs::of_batch)->Apply(batches);
BENCHMARK_CAPTURE(pair_loss, triplet_hard, PairLossKind::triplet_hard, Pairs::of_batch)->Apply(batches);
BENCHMARK_CAPTURE(pair_loss, triplet_semihard, PairLossKind::triplet_semihard, Pairs::of_batch)->Apply(batches);
BENCHMARK_CAPTURE(pair_loss, triplet_all, PairLossKind::triplet_all, Pairs::of_batch)->Apply(batches);
BENCHMARK_CAPTURE(pair_loss, multi_similarity, PairLossKind::multi_similarity, Pairs::of_batch)->Apply(batches);
BENCHMARK_CAPTURE(pair_loss, proxy_nca, PairLossKind::proxy_nca, Pairs::with_proxies)->Apply(batches);
BENCHMARK_CAPTURE(pair_loss, proxy_anchor, PairLossKind::proxy_anchor, Pairs::with_proxies)->Apply(batches);

}  // namespace

}  // namespace gle::bench
