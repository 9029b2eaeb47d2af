#include "losses/registry.h"

#include <array>
#include <string>

#include "losses/contrastive_loss.h"
#include "losses/cross_entropy.h"
#include "losses/proxy_anchor_loss.h"
#include "losses/proxy_nca_loss.h"
#include "losses/triplet_loss.h"

namespace gle {

namespace {

const Tensor& labels_of(Context& ctx, const LossInputs& in, GroupBatch& batch) {
  batch.set(ctx, in.labels, in.classes, {.anchors = AnchorChoice::given});
  return batch.labels();
}

template <Triplets triplets>
Var run_triplet(Context& ctx, const LossSettings& settings, const LossInputs& in, GroupBatch& batch) {
  return triplet_loss(ctx, in.embeddings, labels_of(ctx, in, batch), triplets, settings.triplet_margin);
}

constexpr std::array kLosses = {
    Loss{"cross_entropy", true, false,
         [](Context& ctx, const LossSettings& settings, const LossInputs& in, GroupBatch& batch) {
           return cross_entropy(ctx, in.logits, labels_of(ctx, in, batch), settings.smoothing);
         }},
    Loss{"group_loss", true, false,
         [](Context& ctx, const LossSettings& settings, const LossInputs& in, GroupBatch& batch) {
           batch.set(ctx, in.labels, in.classes, settings.group);
           return group_loss(ctx, in.embeddings, in.logits, batch, settings.group);
         }},
    Loss{"contrastive", false, false,
         [](Context& ctx, const LossSettings& settings, const LossInputs& in, GroupBatch& batch) {
           return contrastive_loss(ctx, in.embeddings, labels_of(ctx, in, batch), settings.contrastive_margin);
         }},
    Loss{"triplet_hard", false, false, run_triplet<Triplets::hard>},
    Loss{"triplet_semihard", false, false, run_triplet<Triplets::semihard>},
    Loss{"triplet_all", false, false, run_triplet<Triplets::all>},
    Loss{"proxy_nca", false, true,
         [](Context& ctx, const LossSettings& settings, const LossInputs& in, GroupBatch& batch) {
           return proxy_nca_loss(ctx, in.embeddings, labels_of(ctx, in, batch), in.proxies, settings.proxy_nca_length);
         }},
    Loss{"multi_similarity", false, false,
         [](Context& ctx, const LossSettings& settings, const LossInputs& in, GroupBatch& batch) {
           return multi_similarity_loss(ctx, in.embeddings, labels_of(ctx, in, batch), settings.multi_similarity);
         }},
    Loss{"proxy_anchor", false, true,
         [](Context& ctx, const LossSettings& settings, const LossInputs& in, GroupBatch& batch) {
           return proxy_anchor_loss(ctx, in.embeddings, labels_of(ctx, in, batch), in.proxies,
                                    settings.proxy_anchor_margin, settings.proxy_anchor_scale);
         }},
};

}  // namespace

std::span<const Loss> all_losses() { return kLosses; }

const Loss& loss_named(std::string_view name) {
  std::string names;
  for (const Loss& loss : kLosses) {
    if (loss.name == name) {
      return loss;
    }
    names += std::string(names.empty() ? "" : ", ") + std::string(loss.name);
  }
  fail(ErrorCode::usage, "there is no loss '", name, "'; choose one of ", names);
}

}  // namespace gle
