// A whole training step (forward, Group Loss, backward, RAdam) on our own kernels and, where this build has it, on
// oneDNN, taken in turns; and the embedding of the same batch. The best of several rounds.
//   gle-bench-step bn_inception|densenet161|... BATCH HEIGHT WIDTH [rounds] [recompute]
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "bench/machine.h"
#include "engine/error.h"
#include "losses/registry.h"
#include "models/network.h"
#include "training/optimiser.h"

namespace gle::bench {

namespace {

constexpr int64_t kClasses = 100;

struct Times {
  double forward = 1e30, loss = 1e30, backward = 1e30, optimiser = 1e30, step = 1e30, embed = 1e30;
};

class Side {
 public:
  Side(std::unique_ptr<Backend> backend, const NetworkOptions& options, const Shape& shape)
      : backend_(std::move(backend)),
        network_(*backend_, options),
        optimiser_(*backend_, network_.parameters(), {}),
        tape_(*backend_),
        images_(random_tensor(*backend_, shape)) {
    network_.initialise(*backend_, 1);
    for (int32_t i = 0; i < shape[0]; ++i) {
      labels_.push_back(i / 4 % static_cast<int32_t>(kClasses));
    }
    settings_.group = paper_group_loss();
  }

  const char* description() const { return backend_->description(); }
  const Times& best() const { return best_; }

  void step(uint64_t number) {
    tape_.clear();
    network_.parameters().clear_gradients();
    Context ctx{.backend = *backend_, .tape = &tape_, .mode = Mode::training, .step = number};
    NetworkOutput out;
    Var loss;
    const double forward = seconds([&] { out = network_.forward(ctx, Var(images_)); });
    const double scoring = seconds([&] {
      const LossInputs inputs{out.embedding, out.logits, Var(), labels_, kClasses};
      loss = loss_named("group_loss").run(ctx, settings_, inputs, batch_);
    });
    const double backward = seconds([&] {
      tape_.backward(loss);
      network_.parameters().complete_gradients(*backend_);
    });
    const double optimising = seconds([&] { optimiser_.step(1e-4F); });
    best_.forward = std::min(best_.forward, forward);
    best_.loss = std::min(best_.loss, scoring);
    best_.backward = std::min(best_.backward, backward);
    best_.optimiser = std::min(best_.optimiser, optimising);
    best_.step = std::min(best_.step, forward + scoring + backward + optimising);
  }

  void embed() {
    Context ctx{.backend = *backend_};
    best_.embed = std::min(best_.embed, seconds([&] { network_.forward(ctx, Var(images_), {.with_logits = false}); }));
  }

  void forget() { best_ = {}; }

 private:
  std::unique_ptr<Backend> backend_;
  Network network_;
  Optimiser optimiser_;
  Tape tape_;
  Tensor images_;
  std::vector<int32_t> labels_;
  LossSettings settings_;
  GroupBatch batch_;
  Times best_;
};

int run(const std::vector<std::string>& words) {
  require(words.size() >= 4, "gle-bench-step", "expected NETWORK BATCH HEIGHT WIDTH [rounds] [recompute]");
  const Shape shape{std::stoll(words[1]), std::stoll(words[2]), std::stoll(words[3]), 3};
  const int rounds = words.size() > 4 ? std::stoi(words[4]) : 3;
  const NetworkOptions options{
      .name = words[0], .head = {.classes = kClasses}, .recompute = words.back() == "recompute"};
  std::vector<std::unique_ptr<Side>> sides;
  sides.push_back(std::make_unique<Side>(make_cpu_backend({.library = false}), options, shape));
  auto library = make_cpu_backend({.library = true});
  if (std::strstr(library->description(), "oneDNN")) {
    sides.push_back(std::make_unique<Side>(std::move(library), options, shape));
  }
  for (int round = 0; round <= rounds; ++round) {
    for (const auto& side : sides) {
      side->step(static_cast<uint64_t>(round));
      if (round == 0) {
        side->forget();
      }
    }
  }
  for (int round = 0; round <= rounds; ++round) {
    for (const auto& side : sides) {
      side->embed();
    }
  }
  std::printf("%s, batch %ld x %ld x %ld, best of %d, ms\n%-46s %8s %8s %8s %8s %8s %8s\n", words[0].c_str(), shape[0],
              shape[1], shape[2], rounds, "", "forward", "loss", "backward", "RAdam", "step", "embed");
  for (const auto& side : sides) {
    const Times& t = side->best();
    std::printf("%-46s %8.1f %8.2f %8.1f %8.1f %8.1f %8.1f\n", side->description(), t.forward * 1e3, t.loss * 1e3,
                t.backward * 1e3, t.optimiser * 1e3, t.step * 1e3, t.embed * 1e3);
  }
  return 0;
}

}  // namespace

}  // namespace gle::bench

int main(int argc, char** argv) {
  try {
    return gle::bench::run({argv + 1, argv + argc});
  } catch (const std::exception& e) {
    std::fprintf(stderr, "gle-bench-step: %s\n", e.what());
    return 2;
  }
}
