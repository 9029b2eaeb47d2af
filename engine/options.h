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

// Names one stream of random numbers: the same key gives the same numbers on every backend.
struct RandomKey {
  uint64_t seed = 0;
  uint64_t stream = 0;
};

}  // namespace gle
