#pragma once

#include <array>
#include <memory>
#include <optional>
#include <span>

#include "data/loader.h"
#include "losses/registry.h"
#include "models/network.h"
#include "training/config.h"
#include "training/gradient_exchange.h"
#include "training/optimiser.h"

namespace gle {

// What a loss is the sum of where cross-entropy stands beside the phase's own.
struct LossTerms {
  double own = 0;
  double cross_entropy = 0;  // before its weight
};

struct StepResult {
  double loss = 0;
  std::optional<LossTerms> terms = {};
  double gradient_norm = 0;

  bool finite() const;
};

// What a network is shown: numbers, or bytes with the rectangles to erase (data::Batch), on the host or the device.
struct Pictures {
  Tensor images;
  Tensor erased = {};

  Pictures(Tensor numbers) : images(std::move(numbers)) {}
  Pictures(const data::Batch& batch) : images(batch.images), erased(batch.erased) {}
};

// A network with its loss and its optimiser: turns batches into steps. From the second step on it allocates nothing.
class Learner {
 public:
  // With a comm every rank has a learner, makes the same calls, and ends each step with the same weights.
  Learner(Backend& backend, const TrainingConfig& config, int64_t classes, Comm* comm = nullptr);

  // Another loss and optimiser; `keep` leaves the moments and the count of steps as they are.
  enum class Moments { keep, reset };
  void begin_phase(const PhaseConfig& phase, Moments moments);

  // Forward and backward of one of the `parts` batches whose mean gradient makes a step; `number` counts batches from
  // the beginning of the run and chooses the random streams. Ranks show their part of the pictures, in the order of
  // ranks; the labels are those of the whole batch.
  void add(const Pictures& pictures, std::span<const int32_t> labels, uint64_t number, int64_t parts);
  // What the batches since the last step come to; nothing has moved yet.
  StepResult measure();
  // Moves the weights, or forgets the gradients.
  void step(float learning_rate);
  void skip();
  // Runs the batch again with every op looked at: the message of the first that is not finite, or empty.
  std::string first_not_finite(const Pictures& pictures, std::span<const int32_t> labels, uint64_t number);

  // A forward pass that is for the running statistics alone: they become (1 - share) old + share new.
  void move_statistics(const Pictures& pictures, float share);
  // Where ranks take statistics of their own, the running ones become the mean over ranks.
  void agree_on_statistics();
  // Values and running statistics of the first rank for all.
  void broadcast_weights();

  Network& network() { return network_; }
  Optimiser& optimiser() { return optimiser_; }
  Backend& backend() { return backend_; }

 private:
  Context training_context(uint64_t number);
  Var loss(Context& ctx, const NetworkOutput& out, std::span<const int32_t> labels);
  Var own_loss(Context& ctx, const NetworkOutput& out, std::span<const int32_t> labels);
  Var group_loss_of(Context& ctx, const NetworkOutput& out, std::span<const int32_t> labels);
  Var cross_entropy_of(Context& ctx, const Var& logits);
  NetworkOutput forward(Context& ctx, const Pictures& pictures);
  Tensor on_device(const Tensor& tensor);
  Var input(const Pictures& pictures);

  Backend& backend_;
  const TrainingConfig& config_;
  int64_t classes_;
  Comm* comm_;  // null: one process
  Network network_;
  std::unique_ptr<GradientExchange> exchange_;
  Optimiser optimiser_;
  Tape tape_;
  PixelScale scale_;
  LossSettings settings_;
  const Loss* chosen_;
  float cross_entropy_weight_;  // of cross-entropy beside the chosen loss
  GroupBatch batch_;
  Tensor own_, plain_;          // terms of the batch under way, if there are two
  std::array<Tensor, 3> sums_;  // loss, own, plain of the step under way
  Tensor state_before_;         // running statistics before this step
  double gradient_norm_ = 0;
  bool under_way_ = false;
  int64_t added_ = 0;  // batches of the step under way
};

}  // namespace gle
