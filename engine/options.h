#pragma once

#include <cstdint>

#include "engine/modes.h"
#include "engine/tensor.h"

namespace gle {

// One output of a backward kernel. Without a tensor nobody wants this gradient, and the kernel leaves it out.
struct GradTarget {
  Tensor grad;
  Accumulate mode = Accumulate::overwrite;

  explicit operator bool() const { return static_cast<bool>(grad); }
};

// How the bytes of a picture become numbers, by colour; see Backend::images_from_bytes.
struct PixelScale {
  float shift[3] = {0, 0, 0};
  float factor[3] = {1, 1, 1};
  float erased = 0;
};

struct Conv2dOptions {
  int stride_h = 1;
  int stride_w = 1;
  int pad_h = 0;
  int pad_w = 0;
};

enum class Rounding { floor, ceil };
enum class Padding { counted, ignored };

struct Pool2dOptions {
  int kernel_h = 2;
  int kernel_w = 2;
  int stride_h = 2;
  int stride_w = 2;
  int pad_h = 0;
  int pad_w = 0;
  Rounding rounding = Rounding::floor;
  // Whether average pooling divides by the taps on padding too.
  Padding padding = Padding::counted;
};

enum class Statistics { of_batch, frozen };

// f(v) = v for v > 0, else slope * v: ReLU is slope 0, identity slope 1. The slope is never negative.
struct Activation {
  float slope = 1.0F;
};
inline constexpr Activation kIdentity{1.0F};
inline constexpr Activation kRelu{0.0F};

// How the Group Loss makes the similarities W of a batch from its embeddings.
enum class Similarity { correlation, cosine };
// What becomes of negative similarities: set to zero, or lifted by subtracting the smallest entry from all.
enum class Negatives { clamp, shift };
// What stands on the diagonal of W: nothing, or what the similarity of a sample with itself comes to.
enum class Diagonal { zero, one };

struct GroupRefinement {
  Similarity similarity = Similarity::correlation;
  Negatives negatives = Negatives::clamp;
  Diagonal diagonal = Diagonal::zero;
  float temperature = 1.0F;
  int steps = 1;
};

// The batch that a Group Loss looks at: n samples, and c of all classes.
struct GroupColumns {
  Tensor targets;  // i32 [n]: the column, of the c, of each sample's class
  Tensor anchors;  // u8 [n]: 1 if a sample's row is its label
  Tensor columns;  // i32 [c]: the columns of the logits that take part, ascending; empty: all
};

// What the Group Loss keeps for its backward pass: n samples, c columns, T steps.
struct GroupSaved {
  Tensor similarities;  // [n,n]: W
  Tensor rows;          // [3n+1]: embedding i became factor_i e - mean_i, of length 1 / inverse_i: all means, factors,
                        // inverses (0: a row without direction), then what `shift` subtracted
  Tensor iterates;      // [T+1,n,c]: X_t up to a factor for each row, in an order of the backend's own
  Tensor scales;        // [T+1,n]: these factors
  Tensor inverse_sums;  // [T+1,n]: 1 / rowsum(S) of step t; 0 if the row had no support and kept its value
  Tensor misses;        // [n]: 1 - X_T[i, target_i], without cancellation
};

// A loss of the similarities s of pairs, a row against a column. A pair is positive if both have the same label; with
// Pairs::of_batch rows and columns are the same samples, and none is paired with itself. d is the Euclidean distance,
// d^2 = s_ii + s_jj - 2 s_ij, [x]+ is max(x, 0).
enum class PairLossKind {
  contrastive,       // mean over pairs of d^2 / 2 if positive, else [margin - d]+^2 / 2
  triplet_hard,      // mean over samples of [margin + farthest positive d - nearest negative d]+
  triplet_semihard,  // mean over positive pairs of [margin + d - d']+, d' the nearest negative beyond d, or the
                     // farthest
  triplet_all,       // mean over the triplets that are not 0 of [margin + d - d']+
  proxy_nca,         // mean over rows of log(sum over negatives of e^(scale s)) - scale s of the positive
  multi_similarity,  // mean over rows of log(1 + sum+ e^(-scale (s - base))) / scale
                     //   + log(1 + sum- e^(negative_scale (s - base))) / negative_scale over hard pairs: positives with
                     //   s - margin < the largest negative s, negatives with s + margin > the smallest positive s
  proxy_anchor,      // mean over rows with positives of log(1 + sum+ e^(-scale (s - margin)))
                     //   + mean over all rows of log(1 + sum- e^(scale (s + margin)))
};

struct PairLossOptions {
  PairLossKind kind = PairLossKind::contrastive;
  float margin = 0.0F;
  float scale = 1.0F;
  float negative_scale = 1.0F;
  float base = 0.0F;
};

enum class Pairs { of_batch, with_proxies };

//   g = gradient_scale * gradient + l2 * value
//   m = beta1 m + (1 - beta1) g,  v = beta2 v + (1 - beta2) g^2
//   value = decay * value - step_size * m / (root_scale * sqrt(v) + eps),  or  decay * value - step_size * m
struct AdamStep {
  float gradient_scale = 1;
  float l2 = 0;
  float beta1 = 0.9F;
  float beta2 = 0.999F;
  float decay = 1;
  float step_size = 0;
  float root_scale = 1;
  float eps = 1e-8F;
  bool adaptive = true;  // false: the second form
};

//   g = gradient_scale * gradient + l2 * value,  m = momentum * m + g
//   value = decay * value - step_size * (nesterov ? g + momentum * m : m)
struct MomentumStep {
  float gradient_scale = 1;
  float l2 = 0;
  float momentum = 0.9F;
  float decay = 1;
  float step_size = 0;
  bool nesterov = false;
};

// Names one stream of random numbers: the same key gives the same numbers on every backend.
struct RandomKey {
  uint64_t seed = 0;
  uint64_t stream = 0;
};

}  // namespace gle
