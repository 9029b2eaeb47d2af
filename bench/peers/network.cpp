// Our side of bench/peers/networks.py and memory.py: a network that does what it is told, so that it and its peer can
// take turns.
//   gle-peer-network NETWORK CLASSES WEIGHTS|- IMAGES.npy [recompute]
// Lines on stdin, each answered by a line of numbers on stdout:
//   embed [OUT.npy]   seconds; of the whole batch, written to a file if one is named
//   one               seconds; of the first image alone
//   step              seconds and loss; forward, Group Loss, backward, RAdam
//   memory            MiB; the most that was resident so far

#include <cstdio>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "bench/machine.h"
#include "engine/error.h"
#include "losses/registry.h"
#include "models/files/npy.h"
#include "models/weights.h"
#include "training/optimiser.h"

namespace gle::bench {

namespace {

Tensor first_of(Backend& b, const Tensor& images) {
  const Shape& shape = images.shape();
  const Tensor one = b.new_tensor("images", {1, shape[1], shape[2], shape[3]});
  std::vector<float> values(static_cast<size_t>(images.elements()));
  b.download(images, values.data());
  b.upload(values.data(), one);
  return one;
}

Tensor read_images(Backend& b, const std::string& path) {
  const NpyArray file = read_npy(path);
  require(file.shape.size() == 4, "gle-peer-network", path, " must be [N,H,W,3]");
  const Tensor images = b.new_tensor("images", {file.shape[0], file.shape[1], file.shape[2], file.shape[3]});
  b.upload(file.floats().data(), images);
  return images;
}

class Peer {
 public:
  Peer(const NetworkOptions& options, const std::string& weights, const std::string& images)
      : backend_(backend()),
        network_(backend_, options),
        optimiser_(backend_, network_.parameters(), {}),
        tape_(backend_),
        images_(read_images(backend_, images)),
        one_(first_of(backend_, images_)) {
    network_.initialise(backend_, 1);
    if (weights != "-") {
      load_weights(backend_, network_, read_weights(weights));
    }
    for (int32_t i = 0; i < images_.shape()[0]; ++i) {
      labels_.push_back(i / 4 % static_cast<int32_t>(options.head.classes));
    }
    settings_.group = paper_group_loss();
    settings_.group.anchors_per_class = 0;
    settings_.group.refinement.temperature = 24.0F;
    settings_.group.refinement.steps = 1;
  }

  double embed(const Tensor& images, const std::string& file) {
    NetworkOutput out;
    const double time = seconds([&] {
      Context ctx{.backend = backend_};
      out = network_.forward(ctx, Var(images), {.with_logits = false});
    });
    if (!file.empty()) {
      const Tensor& embedding = out.embedding.value();
      std::vector<float> values(static_cast<size_t>(embedding.elements()));
      backend_.download(embedding, values.data());
      write_npy(file, npy_of(std::span<const float>(values), {embedding.rows(), embedding.channels()}));
    }
    return time;
  }

  std::pair<double, float> step() {
    float value = 0;
    const double time = seconds([&] {
      tape_.clear();
      network_.parameters().clear_gradients();
      Context ctx{.backend = backend_, .tape = &tape_, .mode = Mode::training, .step = steps_++};
      const NetworkOutput out = network_.forward(ctx, Var(images_));
      const LossInputs inputs{out.embedding, out.logits, Var(), labels_, network_.options().head.classes};
      const Var loss = loss_named("group_loss").run(ctx, settings_, inputs, batch_);
      tape_.backward(loss);
      network_.parameters().complete_gradients(backend_);
      optimiser_.step(1e-4F);
      backend_.download(loss.value(), &value);
    });
    return {time, value};
  }

  void serve() {
    for (std::string line; std::getline(std::cin, line);) {
      std::istringstream words(line);
      std::string what, file;
      words >> what >> file;
      if (what == "embed") {
        std::printf("%.6f\n", embed(images_, file));
      } else if (what == "one") {
        std::printf("%.6f\n", embed(one_, {}));
      } else if (what == "step") {
        const auto [time, loss] = step();
        std::printf("%.6f %.7f\n", time, static_cast<double>(loss));
      } else if (what == "memory") {
        std::printf("%.0f\n", peak_mebibytes());
      } else {
        fail(ErrorCode::usage, "gle-peer-network: '", line, "' is not one of embed, one, step, memory");
      }
      std::fflush(stdout);
    }
  }

 private:
  Backend& backend_;
  Network network_;
  Optimiser optimiser_;
  Tape tape_;
  Tensor images_, one_;
  std::vector<int32_t> labels_;
  LossSettings settings_;
  GroupBatch batch_;
  uint64_t steps_ = 0;
};

}  // namespace

}  // namespace gle::bench

int main(int argc, char** argv) {
  try {
    gle::require(argc >= 5, "gle-peer-network", "expected NETWORK CLASSES WEIGHTS|- IMAGES.npy [recompute]");
    const gle::NetworkOptions options{.name = argv[1],
                                      .head = {.classes = std::stoll(argv[2])},
                                      .recompute = argc > 5 && std::string(argv[5]) == "recompute"};
    gle::bench::Peer(options, argv[3], argv[4]).serve();
  } catch (const std::exception& e) {
    std::fprintf(stderr, "gle-peer-network: %s\n", e.what());
    return 2;
  }
}
