#include "losses/group_loss.h"

#include <algorithm>
#include <cmath>

#include "layers/elementwise.h"

namespace gle {

namespace {

constexpr const char* kOp = "group_loss";

void check(const Context& ctx, const Var& embeddings, const Var& logits, const GroupBatch& batch,
           const GroupLossOptions& options, const Var& given) {
  const int64_t n = batch.size();
  require(logits.shape().rank() == 2 && logits.shape()[0] == n && logits.shape()[1] == batch.classes(), kOp,
          "a batch of ", n, " samples and ", batch.classes(), " classes needs logits [", n, ",", batch.classes(),
          "], got ", logits.shape());
  require(!embeddings || (embeddings.shape().rank() == 2 && embeddings.shape()[0] == n), kOp, "a batch of ", n,
          " samples needs embeddings [", n, ",D], got ", embeddings.shape());
  require(!given || given.shape() == Shape({n, n}), kOp, "given similarities must be [", n, ",", n, "], got ",
          given.shape());
  require(embeddings || given, kOp, "needs embeddings or given similarities");
  const GroupRefinement& refinement = options.refinement;
  require(std::isfinite(refinement.temperature) && refinement.temperature > 0, kOp,
          "the temperature must be positive, got ", refinement.temperature);
  require(refinement.steps >= 0, kOp, "the steps must not be negative, got ", refinement.steps);
  require(std::isfinite(options.weight) && std::isfinite(options.cross_entropy_weight), kOp,
          "the weights must be finite, got ", options.weight, " and ", options.cross_entropy_weight);
  require(options.smoothing >= 0 && options.smoothing < 1, kOp, "smoothing must be from 0 to below 1, got ",
          options.smoothing);
  require((options.columns == Columns::of_batch) == static_cast<bool>(batch.columns().columns), kOp,
          "the batch was set for other columns than the options name");
  require(options.cross_entropy_weight == 0 || !batch.narrowed(), kOp,
          "cross-entropy needs the logits of all classes, and the batch was narrowed to its own");
  ctx.require_device(kOp, {embeddings.value(), logits.value(), given.value(), batch.labels()});
}

GroupSaved room_for(Backend& b, int64_t n, int64_t columns, int steps) {
  const int64_t iterates = steps + int64_t{1};
  return {.similarities = b.new_tensor(kOp, {n, n}),
          .rows = b.new_tensor(kOp, {3 * n + 1}),
          .iterates = b.new_tensor(kOp, {iterates, n, columns}),
          .scales = b.new_tensor(kOp, {iterates, n}),
          .inverse_sums = b.new_tensor(kOp, {iterates, n}),
          .misses = b.new_tensor(kOp, {n})};
}

void describe(Backend& b, const GroupColumns& batch, const GroupSaved& saved, GroupLossDetails& details) {
  const auto fetch = [&](const Tensor& tensor) {
    std::vector<float> values(static_cast<size_t>(tensor.elements()));
    b.download(tensor, values.data());
    return values;
  };
  details.similarities = fetch(saved.similarities);
  details.iterates.clear();
  details.functional.clear();
  const auto n = static_cast<size_t>(saved.similarities.rows());
  const Tensor iterate = b.new_tensor(kOp, {saved.iterates.shape()[1], saved.iterates.shape()[2]});
  const auto columns = static_cast<size_t>(iterate.channels());
  for (int t = 0; t < saved.iterates.shape()[0]; ++t) {
    b.group_loss_iterate(batch, saved, t, iterate);
    std::vector<float> x = fetch(iterate);
    double functional = 0;
    for (size_t i = 0; i < n; ++i) {
      for (size_t j = 0; j < n; ++j) {
        double dot = 0;
        for (size_t c = 0; c < columns; ++c) {
          dot += static_cast<double>(x[i * columns + c]) * static_cast<double>(x[j * columns + c]);
        }
        functional += static_cast<double>(details.similarities[i * n + j]) * dot;
      }
    }
    details.iterates.push_back(std::move(x));
    details.functional.push_back(functional);
  }
}

}  // namespace

GroupLossOptions paper_group_loss() { return {}; }

GroupLossOptions official_group_loss() {
  GroupLossOptions options;
  options.refinement.diagonal = Diagonal::one;
  options.anchors = AnchorChoice::first;
  options.mean_over = MeanOver::all;
  options.cross_entropy_weight = 1.0F;
  return options;
}

Var group_loss(Context& ctx, const Var& embeddings, const Var& logits, const GroupBatch& batch,
               const GroupLossOptions& options, const Var& given, GroupLossDetails* details) {
  check(ctx, embeddings, logits, batch, options, given);
  if (embeddings.value().data() == logits.value().data()) {
    // Their gradients are written side by side, and must not be one.
    return group_loss(ctx, embeddings, scale(ctx, logits, 1.0F), batch, options, given, details);
  }
  const int64_t n = batch.size();
  const int64_t counted = options.mean_over == MeanOver::all ? n : std::max<int64_t>(1, n - batch.anchor_count());
  const float weight = options.weight / static_cast<float>(counted);
  const int64_t columns = batch.columns().columns ? batch.columns().columns.elements() : batch.classes();
  const GroupSaved saved = room_for(ctx.backend, n, columns, options.refinement.steps);
  Var loss = ctx.new_var(kOp, {1});
  // Without a step nobody looks at the similarities.
  const bool compare = options.refinement.steps > 0 || details;
  ctx.backend.group_loss_forward(compare ? embeddings.value() : Tensor(), compare ? given.value() : Tensor(),
                                 logits.value(), batch.columns(), options.refinement, weight, saved, loss.value());
  Tensor log_sums;
  if (options.cross_entropy_weight != 0.0F) {
    log_sums = ctx.backend.new_tensor(kOp, {n, 2});
    const Tensor plain = ctx.backend.new_tensor(kOp, {1});
    ctx.backend.cross_entropy_forward(logits.value(), batch.labels(), options.smoothing, log_sums, plain);
    ctx.backend.scale(options.cross_entropy_weight, plain, {loss.value(), Accumulate::add});
  }
  if (details) {
    describe(ctx.backend, batch.columns(), saved, *details);
  }
  ctx.record(kOp, {embeddings, logits, given}, loss,
             [embeddings = embeddings.value(), logits = logits.value(), given = given.value(), labels = batch.labels(),
              columns = batch.columns(), refinement = options.refinement, plain_weight = options.cross_entropy_weight,
              smoothing = options.smoothing, weight, saved, log_sums](Backend& b, const Tensor& dloss, GradTargets to) {
               GradTarget dlogits = to[1];
               if (dlogits && log_sums) {
                 const Tensor dplain = b.new_tensor(kOp, {1});
                 b.scale(plain_weight, dloss, {dplain});
                 b.cross_entropy_backward(logits, labels, smoothing, log_sums, dplain, dlogits);
                 dlogits.mode = Accumulate::add;
               }
               const bool compare = refinement.steps > 0;
               for (const GradTarget& none : {to[0], to[2]}) {
                 if (!compare && none && none.mode == Accumulate::overwrite) {
                   b.fill(0.0F, none.grad);
                 }
               }
               b.group_loss_backward(embeddings, given, columns, refinement, weight, saved, dloss,
                                     compare ? to[0] : GradTarget(), compare ? to[2] : GradTarget(), dlogits);
             });
  return loss;
}

}  // namespace gle
