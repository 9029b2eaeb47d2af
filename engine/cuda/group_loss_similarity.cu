// Similarities of the rows of E[n, D] and their gradient.
//   forward   c_i = f_i e_i - m_i,  P = C C^T,  u_i = 1 / sqrt(P_ii),  R_ij = P_ij u_i u_j
//             W = max(R, 0)  or  R - min R;  the diagonal 0 or R_ii
//   backward  M = dR + dR^T with its diagonal 0, d_i = sum_j M_ij R_ij:
//             dE = K C,  K_ij = f_i u_i (M_ij - [i = j] d_i) u_j
// m_i is the mean of f_i e_i (0 for the cosine). Rows of C sum to zero, so those of dE do: the gradient of the centring
// needs no pass of its own. f_i is 1 but for rows so large or small that their squares would leave the range of floats.
// A row with no more spread than rounding leaves, or smaller than 1e-12, points nowhere: u_i = 0.
//
// P is summed over slices of the features, a block for each tile and slice (product.h). P_ij and P_ji are the same
// products in the same order, so W has no side.
//
// Bytes that must move: forward 4 (n D + n^2), three launches and one more to shift; backward 4 (2 n D + 2 n^2), two
// launches, one more to shift and one for dgiven. All but E and dE stays in the caches.

#include <cmath>

#include "engine/cuda/group_loss_kernels.h"
#include "engine/cuda/map.h"
#include "engine/cuda/product.h"
#include "engine/cuda/row_groups.h"

namespace gle::cuda {

namespace {

constexpr float kTiny = 1e-12F;
constexpr float kRounding = 1e-12F;  // of a centred row, squared, relative to its mean
constexpr float kLarge = 1e15F;

struct FindMeans {
  SimilarityTask t;

  template <int kWidth, class Group>
  __device__ float sum(const Group& group, int64_t row, float factor) const {
    return group.template sum_columns<kWidth>(t.features, [&](int64_t c, auto width) {
      constexpr int kHere = decltype(width)::count;
      const auto v = t.embeddings.load<kHere>(row, c);
      return each<kHere>([&](int i) { return v.at[i] * factor; });
    });
  }
  template <int kWidth, class Group>
  __device__ void row(const Group& group, int64_t row) const {
    float largest = 0.0F;
    group.template columns<kWidth>(t.features, [&](int64_t c, auto width) {
      constexpr int kHere = decltype(width)::count;
      const auto v = t.embeddings.load<kHere>(row, c);
      for (int i = 0; i < kHere; ++i) {
        largest = fmaxf(largest, fabsf(v.at[i]));
      }
    });
    largest = group.max(largest);
    const bool nothing = largest<kTiny, extreme = largest> kLarge;
    const float factor = nothing ? 0.0F : extreme ? 1.0F / largest : 1.0F;
    const float total = sum<kWidth>(group, row, factor);
    if (group.lane == 0) {
      t.factors()[row] = factor;
      t.means()[row] = t.similarity == Similarity::correlation ? total / static_cast<float>(t.features) : 0.0F;
    }
  }
};

// Slices of P.
struct Correlate {
  static constexpr bool a_along_k = true, b_along_k = true;
  SimilarityTask t;
  float* parts;  // [slices, n, n]

  __device__ float a(int64_t i, int64_t k) const { return t.centred(i, k); }
  __device__ float b(int64_t k, int64_t j) const { return t.centred(j, k); }
  __device__ void finish(int64_t slice, int64_t i, int64_t j, float value) const {
    parts[(slice * t.n + i) * t.n + j] = value;
  }
};

// What W is where it is not given.
__device__ inline float finished(const SimilarityTask& t, int64_t i, int64_t j, float w) {
  if (i == j && t.diagonal == Diagonal::zero) {
    w = 0.0F;
  }
  return t.is_given(i, j) ? t.given.at(i, j) : w;
}

// P to R, and to W unless the smallest R has to be known.
struct FindSimilarities {
  SimilarityTask t;
  const float* parts;
  int64_t slices;
  float* minima;  // [n]: of what is not given

  __device__ float dot(int64_t i, int64_t j) const {
    float sum = 0.0F;
    for (int64_t s = 0; s < slices; ++s) {
      sum += parts[(s * t.n + i) * t.n + j];
    }
    return sum;
  }
  __device__ float inverse(int64_t i) const {
    const float square = dot(i, i), mean = t.means()[i];
    const bool flat = square <= kRounding * static_cast<float>(t.features) * mean * mean || square == 0.0F;
    return flat ? 0.0F : 1.0F / sqrtf(square);
  }
  template <int kWidth, class Group>
  __device__ void row(const Group& group, int64_t i) const {
    const bool shift = t.negatives == Negatives::shift && t.embeddings.data;
    const float own = t.embeddings.data ? inverse(i) : 0.0F;
    float low = HUGE_VALF;
    for (int64_t j = group.lane; j < t.n; j += Group::threads) {
      float r = 0.0F;
      if (t.embeddings.data) {
        r = i == j && own > 0.0F ? 1.0F : dot(i, j) * (own * inverse(j));
      }
      low = r < low && !t.is_given(i, j) ? r : low;
      t.similarities[i * t.n + j] = shift ? r : finished(t, i, j, r < 0.0F ? 0.0F : r);
    }
    low = -group.max(-low);
    if (group.lane == 0) {
      t.inverses()[i] = own;
      minima[i] = low;
      if (!t.embeddings.data) {
        t.means()[i] = t.factors()[i] = 0.0F;
      }
      if (i == 0) {
        *t.shift() = 0.0F;
      }
    }
  }
};

struct Shift {
  SimilarityTask t;
  const float* minima;

  template <int kWidth, class Group>
  __device__ void row(const Group& group, int64_t i) const {
    float low = HUGE_VALF;
    for (int64_t j = group.lane; j < t.n; j += Group::threads) {
      low = minima[j] < low ? minima[j] : low;
    }
    low = -group.max(-low);
    low = low < HUGE_VALF ? low : 0.0F;
    for (int64_t j = group.lane; j < t.n; j += Group::threads) {
      float* w = t.similarities + i * t.n + j;
      *w = finished(t, i, j, *w - low);
    }
    if (i == 0 && group.lane == 0) {
      *t.shift() = low;
    }
  }
};

struct GivenGradient {
  In given, dw;

  template <int kWidth>
  __device__ auto at(int64_t column) const {
    return [this, column](int64_t row) {
      const auto w = given.load<kWidth>(row, column), d = dw.load<kWidth>(row, column);
      return each<kWidth>([&](int i) { return w.at[i] > 0.0F ? d.at[i] : 0.0F; });
    };
  }
};

// dW where an entry came from the embeddings, before clamping or shifting is undone.
__device__ inline float own_gradient(const SimilarityTask& t, const float* dw, int64_t i, int64_t j) {
  const bool constant = (i == j && t.diagonal == Diagonal::zero) || t.is_given(i, j);
  return constant ? 0.0F : dw[i * t.n + j];
}

__device__ inline bool is_smallest(const SimilarityTask& t, int64_t i, int64_t j) {
  return i != j && t.similarities[i * t.n + j] == 0.0F && !t.is_given(i, j);
}

// The smallest entry was taken from all others; where several are smallest they share its gradient.
struct SumShift {
  SimilarityTask t;
  const float* dw;
  double *sums, *counts;  // [n]

  template <int kWidth, class Group>
  __device__ void row(const Group& group, int64_t i) const {
    double sum = 0.0;
    double count = 0.0;
    for (int64_t j = group.lane; j < t.n; j += Group::threads) {
      sum += static_cast<double>(own_gradient(t, dw, i, j));
      count += is_smallest(t, i, j) ? 1.0 : 0.0;
    }
    sum = group.sum(sum);
    count = group.sum(count);
    if (group.lane == 0) {
      sums[i] = sum;
      counts[i] = count;
    }
  }
};

struct FindFactor {
  SimilarityTask t;
  const float* dw;
  const double *sums, *counts;  // null: clamped
  float* k;                     // [n,n]

  __device__ float gradient(int64_t i, int64_t j, float share) const {
    if (i == j) {
      return 0.0F;  // R_ii = 1 whatever the embeddings
    }
    const float d = own_gradient(t, dw, i, j);
    if (sums) {
      return is_smallest(t, i, j) ? d - share : d;
    }
    return t.similarities[i * t.n + j] > 0.0F ? d : 0.0F;
  }
  template <int kWidth, class Group>
  __device__ void row(const Group& group, int64_t i) const {
    float share = 0.0F;
    if (sums) {
      double sum = 0.0, count = 0.0;
      for (int64_t j = group.lane; j < t.n; j += Group::threads) {
        sum += sums[j];
        count += counts[j];
      }
      sum = group.sum(sum);
      count = group.sum(count);
      share = count > 0.0 ? static_cast<float>(sum / count) : 0.0F;
    }
    const float low = *t.shift(), outer = t.factors()[i] * t.inverses()[i];
    float along = 0.0F;
    for (int64_t j = group.lane; j < t.n; j += Group::threads) {
      const float forth = gradient(i, j, share), back = gradient(j, i, share);
      // With given entries R_ij may be known only from dR_ij's own side, so each side is multiplied by its own.
      along += forth * (t.similarities[i * t.n + j] + low) + back * (t.similarities[j * t.n + i] + low);
      if (i != j) {
        k[i * t.n + j] = (forth + back) * outer * t.inverses()[j];
      }
    }
    along = group.sum(along);
    if (group.lane == 0) {
      k[i * t.n + i] = -outer * t.inverses()[i] * along;
    }
  }
};

struct EmbeddingGradient {
  static constexpr bool a_along_k = true, b_along_k = false;
  SimilarityTask t;
  const float* k;
  Out dembeddings;

  __device__ float a(int64_t i, int64_t j) const { return k[i * t.n + j]; }
  __device__ float b(int64_t j, int64_t feature) const { return t.centred(j, feature); }
  __device__ void finish(int64_t, int64_t i, int64_t feature, float value) const {
    dembeddings.put<1>(i, feature, {{value}});
  }
};

int64_t slice_length(const SimilarityTask& t) { return slice_of(t.n, t.n, t.features, 4 * kTile); }
int64_t slices_of(const SimilarityTask& t) { return pieces_of(t.features, slice_length(t)); }

}  // namespace

int64_t similarity_scratch(const SimilarityTask& t) {
  const int64_t forward = slices_of(t) * t.n * t.n + t.n;
  const int64_t backward = t.n * t.n + 4 * t.n;
  return (forward > backward ? forward : backward) + 16;
}

void similarity_forward(const Launch& where, const SimilarityTask& t, float* memory) {
  Scratch scratch{memory};
  float* minima = scratch.take(t.n);
  float* parts = scratch.take(slices_of(t) * t.n * t.n);
  if (t.embeddings.data) {
    const bool fours = t.embeddings.pitch % 4 == 0 && reinterpret_cast<uintptr_t>(t.embeddings.data) % 16 == 0;
    for_rows(where, fours, FindMeans{t}, t.n, t.features);
    product(where, Correlate{t, parts}, {t.n, t.n, t.features, slice_length(t)});
  }
  for_rows_by_one(where, FindSimilarities{t, parts, slices_of(t), minima}, t.n, t.n);
  if (t.embeddings.data && t.negatives == Negatives::shift) {
    for_rows_by_one(where, Shift{t, minima}, t.n, t.n);
  }
}

void similarity_backward(const Launch& where, const SimilarityTask& t, const float* dw, const GradTarget& dembeddings,
                         const GradTarget& dgiven, float* memory) {
  if (dgiven) {
    map(where, false, GivenGradient{t.given, In(dw, t.n)}, t.n, t.n, dgiven);
  }
  if (!dembeddings) {
    return;
  }
  Scratch scratch{memory};
  auto* sums = reinterpret_cast<double*>(scratch.take(4 * t.n));
  float* k = scratch.take(t.n * t.n);
  const bool shift = t.negatives == Negatives::shift;
  if (shift) {
    for_rows_by_one(where, SumShift{t, dw, sums, sums + t.n}, t.n, t.n);
  }
  for_rows_by_one(where, FindFactor{t, dw, shift ? sums : nullptr, sums + t.n, k}, t.n, t.n);
  product(where, EmbeddingGradient{t, k, dembeddings}, {t.n, t.features, t.n, t.n});
}

}  // namespace gle::cuda
