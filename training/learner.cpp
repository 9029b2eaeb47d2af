#include "training/learner.h"

#include <cmath>

#include "engine/error.h"
#include "layers/elementwise.h"
#include "layers/gather.h"
#include "layers/rows.h"
#include "losses/cross_entropy.h"
#include "training/recipe.h"

namespace gle {

namespace {

std::unique_ptr<GradientExchange> make_exchange(Comm* comm, Backend& backend, const TrainingConfig& config,
                                                ParameterSet& parameters) {
  if (!comm) {
    return nullptr;
  }
  return std::make_unique<GradientExchange>(
      *comm, backend, parameters, config.distributed.bucket_kb << 10U,
      config.distributed.shard_optimiser ? GradientExchange::Result::shards : GradientExchange::Result::whole);
}

}  // namespace

bool StepResult::finite() const { return std::isfinite(loss) && std::isfinite(gradient_norm); }

Learner::Learner(Backend& backend, const TrainingConfig& config, int64_t classes, Comm* comm)
    : backend_(backend),
      config_(config),
      classes_(classes),
      comm_(comm && comm->size() > 1 ? comm : nullptr),
      network_(backend, network_options(config, classes)),
      exchange_(make_exchange(comm_, backend, config, network_.parameters())),
      optimiser_(backend, network_.parameters(), optimiser_options(config, config.phase1), exchange_.get()),
      tape_(backend),
      scale_(test_transform(config).scale()),
      settings_(loss_settings(config)),
      chosen_(&loss_named(config.phase1.loss)),
      cross_entropy_weight_(cross_entropy_weight(config, config.phase1)) {
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
  cross_entropy_weight_ = cross_entropy_weight(config_, phase);
  network_.set_backbone_rate(static_cast<float>(phase.backbone_rate));
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

Context Learner::training_context(uint64_t number) {
  return {.backend = backend_,
          .tape = &tape_,
          .mode = Mode::training,
          .seed = static_cast<uint64_t>(config_.run.seed),
          .step = number,
          .comm = comm_,
          .sync_batch_norm = config_.distributed.sync_batch_norm};
}

NetworkOutput Learner::forward(Context& ctx, const Pictures& pictures) {
  return network_.forward(ctx, input(pictures), {.with_logits = chosen_->needs_logits || cross_entropy_weight_ > 0});
}

// Of the whole batch, from what every rank has of it.
Var Learner::loss(Context& ctx, const NetworkOutput& out, std::span<const int32_t> labels) {
  own_ = plain_ = Tensor();
  const Var own = own_loss(ctx, out, labels);
  if (cross_entropy_weight_ == 0) {
    return own;
  }
  const Var plain = cross_entropy_of(ctx, out.logits);
  own_ = own.value();
  plain_ = plain.value();
  return gle::add(ctx, own, scale(ctx, plain, cross_entropy_weight_));
}

Var Learner::own_loss(Context& ctx, const NetworkOutput& out, std::span<const int32_t> labels) {
  if (chosen_->name == "group_loss") {
    return group_loss_of(ctx, out, labels);
  }
  if (chosen_->name == "cross_entropy") {
    batch_.set(ctx, labels, classes_, {.anchors = AnchorChoice::given});
    return cross_entropy_of(ctx, out.logits);
  }
  const Var proxies = chosen_->needs_proxies ? count_once(ctx, ctx.parameter(*network_.classifier()->weight)) : Var();
  return chosen_->run(ctx, settings_, {all_gather(ctx, out.embedding), out.logits, proxies, labels, classes_}, batch_);
}

Var Learner::group_loss_of(Context& ctx, const NetworkOutput& out, std::span<const int32_t> labels) {
  GroupLossOptions options = settings_.group;
  batch_.set(ctx, labels, classes_, options);
  Var logits = out.logits;
  if (ctx.comm && options.columns == Columns::of_batch) {
    logits = take_columns(ctx, logits, batch_.columns().columns);
    batch_.narrow();
    options.columns = Columns::all;
  }
  return group_loss(ctx, all_gather(ctx, out.embedding), all_gather(ctx, logits), batch_, options);
}

// By the labels that own_loss() has set. A mean over pictures: each rank takes its own.
Var Learner::cross_entropy_of(Context& ctx, const Var& logits) {
  const Tensor& labels = batch_.labels();
  if (!ctx.comm) {
    return cross_entropy(ctx, logits, labels, settings_.smoothing);
  }
  const int64_t all = labels.elements();
  const int64_t own = all / ctx.comm->size();
  const int64_t begin = ctx.comm->rank() * own;
  const Var plain = cross_entropy(ctx, logits, labels.reshaped({1, all}).slice(begin, begin + own).reshaped({own}),
                                  settings_.smoothing);
  return sum_over_ranks(ctx, scale(ctx, plain, 1.0F / static_cast<float>(ctx.comm->size())));
}

void Learner::add(const Pictures& pictures, std::span<const int32_t> labels, uint64_t number, int64_t parts) {
  const bool first = !under_way_;
  if (first) {
    network_.parameters().clear_gradients();
    if (state_before_) {
      backend_.scale(1.0F, network_.parameters().state_values(), {state_before_});
    }
    under_way_ = true;
    added_ = 0;
  }
  tape_.clear();
  Context ctx = training_context(number);
  const NetworkOutput out = forward(ctx, pictures);
  const Var all = loss(ctx, out, labels);
  const auto share = static_cast<float>(1.0 / static_cast<double>(parts));
  const Var weighted = parts == 1 ? all : scale(ctx, all, share);
  if (exchange_ && ++added_ == parts) {
    exchange_->begin(tape_);
    tape_.backward(weighted);
    exchange_->finish(tape_);
  } else {
    tape_.backward(weighted);
  }
  const Accumulate mode = first ? Accumulate::overwrite : Accumulate::add;
  backend_.scale(share, all.value(), {sums_[0], mode});
  if (own_) {
    backend_.scale(share, own_, {sums_[1], mode});
    backend_.scale(share, plain_, {sums_[2], mode});
  }
}

StepResult Learner::measure() {
  network_.parameters().complete_gradients(backend_);
  gradient_norm_ = optimiser_.gradient_norm();
  std::array<float, 3> values{};
  for (size_t i = 0; i < (own_ ? values.size() : 1); ++i) {
    backend_.download(sums_[i], &values[i]);
  }
  StepResult result{.loss = values[0], .gradient_norm = gradient_norm_};
  if (own_) {
    result.terms = {.own = values[1], .cross_entropy = values[2]};
  }
  if (comm_) {
    // All leave the step out if one must.
    double problems[1] = {result.finite() ? 0.0 : 1.0};
    comm_->all_reduce(problems);
    result.gradient_norm = problems[0] > 0 ? std::nan("") : result.gradient_norm;
  }
  return result;
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
  Context ctx{.backend = backend_,
              .mode = Mode::training,
              .comm = comm_,
              .sync_batch_norm = config_.distributed.sync_batch_norm};
  network_.forward(ctx, input(pictures));
  network_.set_norm_momentum(static_cast<float>(config_.network.batch_norm_momentum));
}

void Learner::agree_on_statistics() {
  if (!comm_ || config_.distributed.sync_batch_norm || config_.network.batch_norm == "frozen") {
    return;
  }
  const Tensor& state = network_.parameters().state_values();
  comm_->all_reduce(state);
  backend_.scale(1.0F / static_cast<float>(comm_->size()), state, {state});
  network_.parameters().values_changed();
}

void Learner::broadcast_weights() {
  if (comm_) {
    comm_->broadcast(network_.parameters().values(), 0);
    comm_->broadcast(network_.parameters().state_values(), 0);
    network_.parameters().values_changed();
  }
}

std::string Learner::first_not_finite(const Pictures& pictures, std::span<const int32_t> labels, uint64_t number) {
  try {
    tape_.clear();
    network_.parameters().clear_gradients();
    tape_.set_check_finite(true);
    Context ctx = training_context(number);
    ctx.check_finite = true;
    if (comm_) {
      // Each rank by itself: one that finds something leaves, and nobody may wait for it.
      ctx.comm = nullptr;
      const size_t own = labels.size() / static_cast<size_t>(comm_->size());
      labels = labels.subspan(static_cast<size_t>(comm_->rank()) * own, own);
    }
    const NetworkOutput out = forward(ctx, pictures);
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
