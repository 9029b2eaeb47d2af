#pragma once

#include <span>
#include <string_view>

#include "losses/group_loss.h"
#include "losses/multi_similarity_loss.h"

namespace gle {

// The settings of every loss, so that one may be chosen by its name.
struct LossSettings {
  GroupLossOptions group;
  float smoothing = 0.0F;  // of cross_entropy
  float contrastive_margin = 0.5F;
  float triplet_margin = 0.2F;
  float proxy_nca_length = 3.0F;
  float proxy_anchor_margin = 0.1F;
  float proxy_anchor_scale = 32.0F;
  MultiSimilarityOptions multi_similarity;
};

struct LossInputs {
  Var embeddings;  // [n,D]
  Var logits;      // [n,C], for losses that need them
  Var proxies;     // [C,D], likewise
  std::span<const int32_t> labels;
  int64_t classes;
};

// A loss that training can select: cross_entropy, group_loss, contrastive, triplet_hard, triplet_semihard, triplet_all,
// proxy_nca, multi_similarity, proxy_anchor.
struct Loss {
  std::string_view name;
  bool needs_logits;
  bool needs_proxies;
  // Sets `batch` to the labels, which it then keeps on the device; reuse it from step to step.
  Var (*run)(Context& ctx, const LossSettings& settings, const LossInputs& inputs, GroupBatch& batch);
};

std::span<const Loss> all_losses();
// Throws ErrorCode::usage with all names if there is none of this name.
const Loss& loss_named(std::string_view name);

}  // namespace gle
