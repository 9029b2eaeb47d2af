#include "training/learner.h"

#include <cmath>

#include "engine/error.h"
#include "layers/elementwise.h"
#include "losses/cross_entropy.h"
#include "training/recipe.h"

namespace gle {

bool StepResult::finite() const { return std::isfinite(loss) && std::isfinite(gradient_norm); }

Learner::Learner(Backend& backend, const TrainingConfig& config, int64_t classes)
    : backend_(backend),
      config_(config),
      classes_(classes),
      network_(backend, network_options(config, classes)),
      optimiser_(backend, network_.parameters(), optimiser_options(config, config.phase1)),
      tape_(backend),
      scale_(test_transform(config).scale()),
      settings_(loss_settings(config)),
      chosen_(&loss_named(config.phase1.loss)) {
  for (Tensor& sum : sums_) {
    sum = backend.new_tensor("loss", {1});
  }
  if (config.run.on_nonfinite == "skip") {
    state_before_ = backend.new_tensor("running statistics", network_.parameters().state_values().shape());
  }
}

void Learner::begin_phase(const PhaseConfig& phase, Moments moments) {
  tape_.clear();
  chosen_ = &loss_named(phase.loss);
  optimiser_.restart(optimiser_options(config_, phase), moments == Moments::keep);
}

Tensor Learner::on_device(const Tensor& tensor) {
  if (!tensor || tensor.device() == backend_.device()) {
    return tensor;
  }
  Tensor copy = backend_.new_tensor("images", tensor.shape(), tensor.type());
  backend_.upload(tensor.bytes(), copy);
  return copy;
}

Var Learner::input(const Pictures& pictures) {
  const Tensor images = on_device(pictures.images);
  if (images.type() == DType::f32) {
    return Var(images);
  }
  Tensor numbers = backend_.new_tensor("images", images.shape());
  backend_.images_from_bytes(images, scale_, on_device(pictures.erased), numbers);
  return Var(std::move(numbers));
}

Var Learner::loss(Context& ctx, const NetworkOutput& out, std::span<const int32_t> labels) {
  group_ = plain_ = Tensor();
  if (chosen_->name == "group_loss" && settings_.group.cross_entropy_weight != 0) {
    // The two terms apart, so that both can be shown.
    GroupLossOptions options = settings_.group;
    options.cross_entropy_weight = 0;
    batch_.set(ctx, labels, classes_, options);
    const Var group = group_loss(ctx, out.embedding, out.logits, batch_, options);
    const Var plain = cross_entropy(ctx, out.logits, batch_.labels(), settings_.group.smoothing);
    group_ = group.value();
    plain_ = plain.value();
    return gle::add(ctx, group, scale(ctx, plain, settings_.group.cross_entropy_weight));
  }
  const Var proxies = chosen_->needs_proxies ? ctx.parameter(*network_.classifier()->weight) : Var();
  return chosen_->run(ctx, settings_, {out.embedding, out.logits, proxies, labels, classes_}, batch_);
}

void Learner::add(const Pictures& pictures, std::span<const int32_t> labels, uint64_t number, int64_t parts) {
  const bool first = !under_way_;
  if (first) {
    network_.parameters().clear_gradients();
    if (state_before_) {
      backend_.scale(1.0F, network_.parameters().state_values(), {state_before_});
    }
    under_way_ = true;
  }
  tape_.clear();
  Context ctx{.backend = backend_,
              .tape = &tape_,
              .mode = Mode::training,
              .seed = static_cast<uint64_t>(config_.run.seed),
              .step = number};
  const NetworkOutput out = network_.forward(ctx, input(pictures), {.with_logits = chosen_->needs_logits});
  const Var all = loss(ctx, out, labels);
  const auto share = static_cast<float>(1.0 / static_cast<double>(parts));
  tape_.backward(parts == 1 ? all : scale(ctx, all, share));
  const Accumulate mode = first ? Accumulate::overwrite : Accumulate::add;
  backend_.scale(share, all.value(), {sums_[0], mode});
  has_terms_ = static_cast<bool>(group_);
  if (has_terms_) {
    backend_.scale(share, group_, {sums_[1], mode});
    backend_.scale(share, plain_, {sums_[2], mode});
  }
}

StepResult Learner::measure() {
  network_.parameters().complete_gradients(backend_);
  gradient_norm_ = optimiser_.gradient_norm();
  std::array<float, 3> values{};
  for (size_t i = 0; i < (has_terms_ ? values.size() : 1); ++i) {
    backend_.download(sums_[i], &values[i]);
  }
  return {values[0], values[1], values[2], gradient_norm_};
}

void Learner::step(float learning_rate) {
  optimiser_.step(learning_rate, gradient_norm_);
  under_way_ = false;
}

void Learner::skip() {
  if (state_before_) {
    backend_.scale(1.0F, state_before_, {network_.parameters().state_values()});
    network_.parameters().values_changed();
  }
  under_way_ = false;
}

void Learner::move_statistics(const Pictures& pictures, float share) {
  network_.set_norm_momentum(share);
  Context ctx{.backend = backend_, .mode = Mode::training};
  network_.forward(ctx, input(pictures));
  network_.set_norm_momentum(static_cast<float>(config_.network.batch_norm_momentum));
}

std::string Learner::first_not_finite(const Pictures& pictures, std::span<const int32_t> labels, uint64_t number) {
  try {
    tape_.clear();
    network_.parameters().clear_gradients();
    tape_.set_check_finite(true);
    Context ctx{.backend = backend_,
                .tape = &tape_,
                .mode = Mode::training,
                .seed = static_cast<uint64_t>(config_.run.seed),
                .step = number,
                .check_finite = true};
    const NetworkOutput out = network_.forward(ctx, input(pictures), {.with_logits = chosen_->needs_logits});
    tape_.backward(loss(ctx, out, labels));
    tape_.set_check_finite(false);
    return "";
  } catch (const Error& e) {
    tape_.set_check_finite(false);
    if (e.code() != ErrorCode::not_finite) {
      throw;
    }
    return e.what();
  }
}

}  // namespace gle
