#include "training/optimiser.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <utility>

#include "engine/error.h"

namespace gle {

namespace {

constexpr std::array<std::pair<OptimiserKind, const char*>, 4> kNames = {{{OptimiserKind::radam, "radam"},
                                                                          {OptimiserKind::adam, "adam"},
                                                                          {OptimiserKind::adamw, "adamw"},
                                                                          {OptimiserKind::sgd, "sgd"}}};

void check(const OptimiserOptions& o) {
  const char* op = "optimiser";
  require(o.beta1 >= 0 && o.beta1 < 1 && o.beta2 >= 0 && o.beta2 < 1, op,
          "beta1 and beta2 must be from 0 to below 1, got ", o.beta1, " and ", o.beta2);
  require(o.eps > 0 && std::isfinite(o.eps), op, "eps must be positive, got ", o.eps);
  require(o.weight_decay >= 0 && std::isfinite(o.weight_decay), op, "weight_decay must not be negative, got ",
          o.weight_decay);
  require(o.clip_norm >= 0, op, "clip_norm must not be negative, got ", o.clip_norm);
  require(o.average >= 0 && o.average < 1, op, "average must be from 0 to below 1, got ", o.average);
}

Tensor stretch(const Tensor& flat, int64_t begin, const ParameterSet::Range& range) {
  const int64_t length = range.end - range.begin;
  return flat.slice(begin, begin + length).reshaped({1, length});
}

}  // namespace

OptimiserKind optimiser_kind(std::string_view name) {
  for (const auto& [kind, text] : kNames) {
    if (name == text) {
      return kind;
    }
  }
  fail(ErrorCode::usage, "optimiser: expected radam, adam, adamw or sgd, got '", name, "'");
}

const char* name_of(OptimiserKind kind) {
  for (const auto& [known, text] : kNames) {
    if (kind == known) {
      return text;
    }
  }
  bug("unknown optimiser");
}

Optimiser::Optimiser(Backend& backend, ParameterSet& parameters, const OptimiserOptions& options,
                     GradientExchange* exchange)
    : backend_(backend),
      parameters_(parameters),
      options_(options),
      shards_(exchange && exchange->result() == GradientExchange::Result::shards ? exchange : nullptr) {
  check(options);
  make_state();
  begin_average();
}

void Optimiser::begin_average() {
  if (average_) {
    backend_.scale(1.0F, parameters_.values(), {average_});
  }
}

void Optimiser::make_state() {
  state_.clear();
  const auto add_state = [&](const char* name, bool wanted, Tensor& tensor) {
    if (!wanted) {
      tensor = Tensor();
      return;
    }
    if (!tensor) {
      const bool whole = !shards_ || &tensor == &average_;
      tensor = backend_.new_tensor(name, whole ? parameters_.values().shape() : Shape{1, shards_->size()});
      backend_.fill(0.0F, tensor);
    }
    state_.push_back({name, tensor});
  };
  add_state("moment1", true, moment1_);
  add_state("moment2", options_.kind != OptimiserKind::sgd, moment2_);
  add_state("average", options_.average > 0, average_);
}

void Optimiser::restart(const OptimiserOptions& options, bool keep_moments) {
  check(options);
  const bool adaptive = options.kind != OptimiserKind::sgd;
  require(!keep_moments || adaptive == (options_.kind != OptimiserKind::sgd), "optimiser", name_of(options.kind),
          " cannot go on with the moments of ", name_of(options_.kind));
  require((options.average > 0) == (options_.average > 0), "optimiser", "the moving average cannot come or go");
  options_ = options;
  make_state();
  if (!keep_moments) {
    steps_ = 0;
    backend_.fill(0.0F, moment1_);
    if (moment2_) {
      backend_.fill(0.0F, moment2_);
    }
  }
}

// Factors change seldom, and a step must not allocate: the parts are made anew only when a factor differs.
void Optimiser::refresh_parts() {
  uint64_t factors = 1;
  for (const Parameter& parameter : parameters_.parameters()) {
    const float two[] = {parameter.lr_scale, parameter.decay_scale};
    uint64_t bits = 0;
    std::memcpy(&bits, two, sizeof bits);
    factors = (factors ^ bits ^ (parameter.trainable ? 1U : 0U)) * 0x9E3779B97F4A7C15U;
    factors ^= factors >> 32U;
  }
  if (factors == factors_) {
    return;
  }
  factors_ = factors;
  parts_.clear();
  const std::vector<GradientExchange::Piece> all = {{0, parameters_.values().elements(), 0}};
  for (const ParameterSet::Range& range : parameters_.trainable_ranges()) {
    for (const GradientExchange::Piece& piece : shards_ ? shards_->pieces() : all) {
      ParameterSet::Range both = range;
      both.begin = std::max(range.begin, piece.begin);
      both.end = std::min(range.end, piece.end);
      if (both.begin < both.end) {
        parts_.push_back({both, piece.at + both.begin - piece.begin});
      }
    }
  }
}

double Optimiser::gradient_norm() {
  return std::sqrt(shards_ ? shards_->sum_of_squares() : backend_.sum_of_squares(parameters_.gradients()));
}

void Optimiser::step(float learning_rate, std::optional<double> known_norm) {
  require(std::isfinite(learning_rate) && learning_rate >= 0, "optimiser",
          "the learning rate must not be negative, got ", learning_rate);
  float gradient_scale = 1;
  if (options_.clip_norm > 0) {
    const double norm = known_norm ? *known_norm : gradient_norm();
    if (norm > options_.clip_norm) {
      gradient_scale = static_cast<float>(options_.clip_norm / norm);
    }
  }
  ++steps_;
  refresh_parts();
  for (const Part& part : parts_) {
    if (options_.kind == OptimiserKind::sgd) {
      descend(part, learning_rate, gradient_scale);
    } else {
      adam(part, learning_rate, gradient_scale);
    }
  }
  if (shards_) {
    shards_->gather_values();
  }
  if (average_) {
    backend_.moving_average(options_.average, parameters_.values(), average_);
  }
  parameters_.values_changed();
}

void Optimiser::adam(const Part& part, float learning_rate, float gradient_scale) {
  const ParameterSet::Range& range = part.range;
  const double lr = static_cast<double>(learning_rate) * range.lr_scale;
  const double decay = static_cast<double>(options_.weight_decay) * range.decay_scale;
  const double b2 = options_.beta2;
  const auto t = static_cast<double>(steps_);
  const double bias1 = 1 - std::pow(static_cast<double>(options_.beta1), t);
  const double bias2 = 1 - std::pow(b2, t);
  AdamStep step{
      .gradient_scale = gradient_scale, .beta1 = options_.beta1, .beta2 = options_.beta2, .eps = options_.eps};
  if (options_.kind == OptimiserKind::adam) {
    step.l2 = static_cast<float>(decay);
  } else {
    step.decay = static_cast<float>(1 - lr * decay);
  }
  if (options_.kind == OptimiserKind::radam) {
    // Only once enough samples stand behind it can the variance of the adaptive rate be rectified.
    const double longest = 2 / (1 - b2) - 1;
    const double length = longest - 2 * t * (1 - bias2) / bias2;
    step.adaptive = length >= 5;
    const double rectified =
        step.adaptive
            ? std::sqrt(bias2 * (length - 4) * (length - 2) * longest / ((longest - 4) * (longest - 2) * length))
            : 1;
    step.step_size = static_cast<float>(lr * rectified / bias1);
  } else {
    step.step_size = static_cast<float>(lr / bias1);
    step.root_scale = static_cast<float>(1 / std::sqrt(bias2));
  }
  const Tensor& gradients = shards_ ? shards_->gradients() : parameters_.gradients();
  backend_.adam_step(step, stretch(gradients, part.at, range), stretch(moment1_, part.at, range),
                     stretch(moment2_, part.at, range), stretch(parameters_.values(), range.begin, range));
}

void Optimiser::descend(const Part& part, float learning_rate, float gradient_scale) {
  const ParameterSet::Range& range = part.range;
  const MomentumStep step{.gradient_scale = gradient_scale,
                          .l2 = options_.weight_decay * range.decay_scale,
                          .momentum = options_.beta1,
                          .step_size = learning_rate * range.lr_scale,
                          .nesterov = options_.nesterov};
  const Tensor& gradients = shards_ ? shards_->gradients() : parameters_.gradients();
  backend_.momentum_step(step, stretch(gradients, part.at, range), stretch(moment1_, part.at, range),
                         stretch(parameters_.values(), range.begin, range));
}

std::vector<Optimiser::State> Optimiser::whole_state() {
  std::vector<State> whole = state_;
  for (State& state : whole) {
    if (shards_ && !(state.values.shape() == parameters_.values().shape())) {
      const Tensor all = backend_.new_tensor(state.name, parameters_.values().shape());
      backend_.fill(0.0F, all);
      shards_->gather(state.values, all);
      state.values = all;
    }
  }
  return whole;
}

void Optimiser::set_whole_state(const State& whole) {
  for (const State& state : state_) {
    if (std::strcmp(state.name, whole.name) == 0) {
      if (shards_ && !(state.values.shape() == whole.values.shape())) {
        shards_->take(whole.values, state.values);
      } else {
        backend_.scale(1.0F, whole.values, {state.values});
      }
    }
  }
}

void Optimiser::swap_average() {
  require(static_cast<bool>(average_), "optimiser", "there is no moving average of the weights: set `average`");
  const Tensor other = backend_.new_tensor("average", average_.shape());
  backend_.scale(1.0F, parameters_.values(), {other});
  backend_.scale(1.0F, average_, {parameters_.values()});
  backend_.scale(1.0F, other, {average_});
  parameters_.values_changed();
}

}  // namespace gle
