#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "engine/backend.h"
#include "engine/parameters.h"
#include "training/gradient_exchange.h"

namespace gle {

enum class OptimiserKind { radam, adam, adamw, sgd };

// "radam", "adam", "adamw", "sgd"; anything else throws.
OptimiserKind optimiser_kind(std::string_view name);
const char* name_of(OptimiserKind kind);

struct OptimiserOptions {
  OptimiserKind kind = OptimiserKind::radam;
  float beta1 = 0.9F;  // also the momentum of sgd
  float beta2 = 0.999F;
  float eps = 1e-8F;
  // Decoupled for radam and adamw (value -= lr * decay * value), added to the gradient for adam and sgd.
  float weight_decay = 0;
  bool nesterov = false;  // sgd
  float clip_norm = 0;    // scales gradients whose norm over all parameters is larger; 0: never
  float average = 0;      // share that the moving average of the weights keeps each step; 0: no average
};

// Moves the values of a ParameterSet along its gradients, one pass over the flat arrays. Its state is plain tensors and
// a count, for checkpoints.
class Optimiser {
 public:
  // With an exchange of shards it keeps moments of this rank's pieces alone, and step() ends with the values of all.
  Optimiser(Backend& backend, ParameterSet& parameters, const OptimiserOptions& options,
            GradientExchange* exchange = nullptr);

  // Of the gradients of all parameters together (complete_gradients() first).
  double gradient_norm();
  // One step with the gradients as they are; their norm, where the caller knows it, saves clipping a pass over them.
  void step(float learning_rate, std::optional<double> gradient_norm = std::nullopt);
  // Other options from here on. Without `keep_moments` they begin at zero again; with it the kind must not ask for
  // others than before. The moving average stays.
  void restart(const OptimiserOptions& options, bool keep_moments);

  int64_t steps() const { return steps_; }
  void set_steps(int64_t steps) { steps_ = steps; }

  struct State {
    const char* name;
    Tensor values;
  };
  // "moment1", "moment2", "average": those that the options call for.
  const std::vector<State>& state() const { return state_; }
  // The same over all parameters, from all ranks (each must call it), and back.
  std::vector<State> whole_state();
  void set_whole_state(const State& whole);
  bool averages() const { return static_cast<bool>(average_); }
  // The moving average, if there is one, is the weights as they are.
  void begin_average();
  // Exchanges the weights with their moving average; again to go back.
  void swap_average();

 private:
  void make_state();
  void refresh_parts();
  // A part of the flat arrays that is stepped with one set of factors, and where it begins in gradient and moments.
  struct Part {
    ParameterSet::Range range;
    int64_t at;
  };
  void adam(const Part& part, float learning_rate, float gradient_scale);
  void descend(const Part& part, float learning_rate, float gradient_scale);

  Backend& backend_;
  ParameterSet& parameters_;
  OptimiserOptions options_;
  int64_t steps_ = 0;
  Tensor moment1_, moment2_, average_;
  std::vector<State> state_;
  GradientExchange* shards_;  // null: all parameters are stepped here
  std::vector<Part> parts_;
  uint64_t factors_ = 0;  // what the parts were made from
};

// While it lives, the moving average of the weights, if there is one, is in their place.
class AveragedWeights {
 public:
  explicit AveragedWeights(Optimiser& optimiser) : optimiser_(optimiser) { swap(); }
  ~AveragedWeights() { swap(); }
  AveragedWeights(const AveragedWeights&) = delete;
  AveragedWeights& operator=(const AveragedWeights&) = delete;

 private:
  void swap() {
    if (optimiser_.averages()) {
      optimiser_.swap_average();
    }
  }
  Optimiser& optimiser_;
};

}  // namespace gle
