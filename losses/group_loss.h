#pragma once

#include <span>
#include <vector>

#include "engine/context.h"

namespace gle {

enum class AnchorChoice { random, first, given };
enum class MeanOver { all, non_anchors };
enum class Columns { all, of_batch };

struct GroupLossOptions {
  GroupRefinement refinement = {};  // similarity, negatives, diagonal, temperature, steps: engine/options.h
  AnchorChoice anchors = AnchorChoice::random;
  int anchors_per_class = 1;  // fewer where a class has fewer samples
  MeanOver mean_over = MeanOver::non_anchors;
  Columns columns = Columns::all;     // of_batch: refine only the classes that occur in the batch
  float weight = 1.0F;                // of the refined likelihood,
  float cross_entropy_weight = 0.0F;  // and of plain cross-entropy of the logits beside it,
  float smoothing = 0.0F;             // with so much label smoothing
};

// The paper's loss; and that of its authors' code, which keeps the diagonal, takes the first samples as anchors, counts
// them in the mean and adds cross-entropy. Temperature, steps and anchors per class belong to the data set.
GroupLossOptions paper_group_loss();
GroupLossOptions official_group_loss();

// A batch's labels on the device, with the anchors and the columns that the options ask for. Reused from step to step
// it allocates nothing new on the host.
class GroupBatch {
 public:
  // labels: one of `classes` for each sample. given_anchors: numbers of samples, for AnchorChoice::given alone.
  void set(Context& ctx, std::span<const int32_t> labels, int64_t classes, const GroupLossOptions& options,
           std::span<const int32_t> given_anchors = {});

  // For logits of which only the columns that take part are there (take_columns): these are all the classes.
  void narrow();

  const Tensor& labels() const { return labels_; }
  const GroupColumns& columns() const { return columns_; }
  int64_t size() const { return static_cast<int64_t>(anchors_.size()); }
  int64_t classes() const { return classes_; }
  int64_t anchor_count() const { return anchor_count_; }
  // On the host: whether each sample is an anchor, and the class of each refined column.
  std::span<const uint8_t> anchors() const { return anchors_; }
  std::span<const int32_t> refined_classes() const { return present_; }
  bool narrowed() const { return !present_.empty() && !columns_.columns; }
  std::span<const int32_t> targets() const { return targets_; }

 private:
  void choose_anchors(Context& ctx, std::span<const int32_t> labels, const GroupLossOptions& options);

  Tensor labels_;
  GroupColumns columns_;
  int64_t classes_ = 0;
  int64_t anchor_count_ = 0;
  std::vector<uint8_t> anchors_;
  std::vector<int32_t> present_, targets_, order_;
};

// What went on inside, on the host, for plots and tests.
struct GroupLossDetails {
  std::vector<float> similarities;           // W [n,n]
  std::vector<std::vector<float>> iterates;  // X_0 ... X_T, each [n, refined columns]
  std::vector<double> functional;            // F(X_t) = sum_ij W_ij <x_i, x_j>, which never decreases
};

// The Group Loss of embeddings[n,D] and logits[n,C], a single number [1]: backend.h has its formula,
// docs/group-loss.md its meaning. `given` [n,n], if there is one, holds similarities known beforehand, and negative
// numbers where the embeddings are to say; with all entries known the embeddings may be an empty Var. Finite, with
// finite gradients, whatever finite numbers go in, if the rows of `given` have finite sums.
Var group_loss(Context& ctx, const Var& embeddings, const Var& logits, const GroupBatch& batch,
               const GroupLossOptions& options, const Var& given = Var(), GroupLossDetails* details = nullptr);

}  // namespace gle
