// What the refinement costs beside plain softmax cross-entropy: forward + backward of both over the tape, in turns, the
// best of several rounds.
//   gle-bench-refine                         the whole sweep, and the share of a BN-Inception step
//   gle-bench-refine step                    that share alone
//   gle-bench-refine n C D T dense|batch     one row: microseconds of the Group Loss, with cross-entropy beside it, and
//                                            of cross-entropy alone
// The Group Loss alone never needs all C classes when it refines the batch's only; a training step adds cross-entropy,
// which does, so the fair question there is what both cost against cross-entropy alone.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "bench/conv_layers.h"
#include "bench/machine.h"
#include "engine/error.h"
#include "layers/conv2d.h"
#include "losses/cross_entropy.h"
#include "losses/group_loss.h"

namespace gle::bench {

namespace {

constexpr int64_t kStepImages = 54;

struct Case {
  int64_t n, classes, features;
  int steps;
  Columns columns;
};

struct Times {
  double group = 1e30, with_cross_entropy = 1e30, cross_entropy = 1e30;
};

Times measure(const Case& c, double budget) {
  Backend& b = backend();
  Tape tape(b);
  const Tensor embeddings = random_tensor(b, {c.n, c.features}, 1);
  const Tensor logits = random_tensor(b, {c.n, c.classes}, 2);
  std::vector<int32_t> labels(static_cast<size_t>(c.n));
  for (size_t i = 0; i < labels.size(); ++i) {
    labels[i] = static_cast<int32_t>(static_cast<int64_t>(i / 9) * 7 % c.classes);
  }
  GroupLossOptions options = official_group_loss();
  options.refinement.temperature = 24.0F;
  options.refinement.steps = c.steps;
  options.anchors_per_class = 2;
  options.columns = c.columns;

  GroupBatch batch;
  const auto group = [&](float cross_entropy_weight) {
    tape.clear();
    Context ctx{.backend = b, .tape = &tape, .mode = Mode::training};
    options.cross_entropy_weight = cross_entropy_weight;
    const Var e = tape.leaf(embeddings);
    const Var z = tape.leaf(logits);
    batch.set(ctx, labels, c.classes, options);
    tape.backward(group_loss(ctx, e, z, batch, options));
  };
  const auto plain = [&] {
    tape.clear();
    Context ctx{.backend = b, .tape = &tape, .mode = Mode::training};
    const Var z = tape.leaf(logits);
    tape.backward(cross_entropy(ctx, z, batch.labels()));
  };
  Times best;
  group(1.0F);
  const double one = seconds([&] { group(1.0F); });
  const int rounds = static_cast<int>(std::clamp(budget / (3 * one), 5.0, 2000.0));
  for (int round = 0; round < rounds; ++round) {
    best.group = std::min(best.group, seconds([&] { group(0.0F); }));
    best.with_cross_entropy = std::min(best.with_cross_entropy, seconds([&] { group(1.0F); }));
    best.cross_entropy = std::min(best.cross_entropy, seconds(plain));
  }
  return best;
}

// Least: embeddings and logits read once, their gradients written once. Moved: what the kernels load from and store to
// tensors, whatever cache they hit.
struct Traffic {
  double least, moved;
};

Traffic traffic(const Case& c) {
  const auto n = static_cast<double>(c.n), d = static_cast<double>(c.features), all = static_cast<double>(c.classes);
  const double refined = c.columns == Columns::all ? all : std::min(all, (n + 8) / 9);
  const double t = c.steps;
  const double least = 2 * n * (d + refined) + (c.columns == Columns::all ? 0 : n * (all - refined));
  // Embeddings: mean, product, gradient, and the gradient itself. Probabilities: prior in and out; a step reads one
  // iterate twice and writes one; backward reads two, and A twice as it writes it twice; then the gradient.
  const double moved = 4 * n * d + n * refined * (2 + 3 * t + 6 * t + 3) + n * (all - refined);
  return {4 * least, 4 * moved};
}

void print_row(const Case& c, const Times& t) {
  const Traffic bytes = traffic(c);
  std::printf("%5lld %6lld %5lld %2d %-6s %10.1f %10.1f %10.1f %7.2f %8.1f %8.2f\n", static_cast<long long>(c.n),
              static_cast<long long>(c.classes), static_cast<long long>(c.features), c.steps,
              c.columns == Columns::all ? "dense" : "batch", t.group * 1e6, t.with_cross_entropy * 1e6,
              t.cross_entropy * 1e6, t.with_cross_entropy / t.cross_entropy, bytes.least / t.group * 1e-9,
              bytes.moved / bytes.least);
}

// The convolutions of a BN-Inception step, forward and backward: less than the step itself.
double convolutions_of_a_step() {
  Backend& b = backend();
  double total = 0;
  for (const ConvLayer& layer : bn_inception_layers()) {
    const Conv2dOptions options{
        .stride_h = layer.stride, .stride_w = layer.stride, .pad_h = layer.pad, .pad_w = layer.pad};
    const Tensor x = random_tensor(b, {kStepImages, layer.h, layer.w, layer.c}, 1);
    const Tensor w = random_tensor(b, {layer.k, layer.kernel, layer.kernel, layer.c}, 2);
    const Tensor y = random_tensor(b, conv2d_shape(x.shape(), w.shape(), options), 3);
    total += layer.times * best_seconds(1, [&] {
               b.conv2d_forward(x, w, Tensor(), options, kIdentity, nullptr, y);
               b.conv2d_backward_weights(x, y, options, {w});
               if (layer.c > 3) {
                 b.conv2d_backward_data(w, y, options, {x});
               }
             });
  }
  return total;
}

int share_of_a_step() {
  const double step = convolutions_of_a_step();
  std::printf("\nconvolutions of a BN-Inception step, %lld images: %.1f ms\n", static_cast<long long>(kStepImages),
              step * 1e3);
  for (const int steps : {1, 4}) {
    const Times t = measure({kStepImages, 100, 1024, steps, Columns::all}, 0.2);
    std::printf("Group Loss with cross-entropy, C 100, D 1024, T %d: %.1f us, under %.4f%% of the step\n", steps,
                t.with_cross_entropy * 1e6, 100 * t.with_cross_entropy / step);
  }
  return 0;
}

int sweep() {
  std::printf(
      "%s\n\nforward + backward, microseconds; GL: Group Loss alone, GL+CE: with cross-entropy beside it, CE: "
      "cross-entropy alone;\nGB/s: of the least bytes possible; moved: bytes loaded and stored against the "
      "least\n\n%5s %6s %5s %2s %-6s %10s %10s %10s %7s %8s %8s\n",
      backend().description(), "n", "C", "D", "T", "", "GL", "GL+CE", "CE", "GL+CE/CE", "GB/s", "moved");
  for (const int64_t features : {512, 1024}) {
    for (const int64_t classes : {100, 1000, 11318}) {
      for (const int64_t n : {30, 54, 60, 100, 256}) {
        for (const Columns columns : {Columns::all, Columns::of_batch}) {
          for (int steps = 0; steps <= 5; ++steps) {
            const Case c{n, classes, features, steps, columns};
            print_row(c, measure(c, 0.05));
          }
        }
      }
    }
  }
  return share_of_a_step();
}

int main(int argc, char** argv) {
  if (argc == 1) {
    return sweep();
  }
  if (std::string(argv[1]) == "step") {
    return share_of_a_step();
  }
  require(argc == 6, "gle-bench-refine", "expected nothing, step, or n C D T dense|batch");
  const std::string columns = argv[5];
  require(columns == "dense" || columns == "batch", "gle-bench-refine", "expected dense or batch, got '", columns, "'");
  const Case c{std::stoll(argv[1]), std::stoll(argv[2]), std::stoll(argv[3]), std::stoi(argv[4]),
               columns == "dense" ? Columns::all : Columns::of_batch};
  const Times t = measure(c, 0.5);
  std::printf("%.2f %.2f %.2f\n", t.group * 1e6, t.with_cross_entropy * 1e6, t.cross_entropy * 1e6);
  return 0;
}

}  // namespace

}  // namespace gle::bench

int main(int argc, char** argv) {
  try {
    return gle::bench::main(argc, argv);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "gle-bench-refine: %s\n", e.what());
    return 2;
  }
}
