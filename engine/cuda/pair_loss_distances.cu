// Losses of the distances of pairs of a batch, with their gradient: options.h has the formulas.
//
// d = sqrt(s_ii + s_jj - 2 s_ij) is a difference of what may be nearly equal, and which sample is nearest depends on
// it: in doubles. A first launch finds in each row what every distance d_ij counts, g_ij = count dL/dd_ij, and how many
// terms there are; a second sums these counts up and turns g into
//   ds_ij = -g_ij / (count d_ij),  ds_ii = sum_j (g_ij + g_ji) / (2 count d_ij)
// so every place is written by one thread, once.
//
// Bytes that must move: 8 n^2; two launches. Scratch: 20 n^2 bytes.

#include <cmath>

#include "engine/cuda/pair_loss_kernels.h"
#include "engine/cuda/row_groups.h"

namespace gle::cuda {

namespace {

constexpr double kNear = 1e-6;

__device__ inline double distance(const PairTask& t, int64_t i, int64_t j) {
  const double square = t.at(i, i) + t.at(j, j) - 2 * t.at(i, j);
  return square <= 0 ? 0 : sqrt(square);
}

// Of the distances of a batch. NaN counts as a pair that is not yet apart, so that it shows in the loss.
struct Mined {
  double *distances, *g;    // [n,n]
  double *losses, *counts;  // [n]: sums of a row
  int32_t* others;          // [n,n]: for a positive the negative it is compared with, or -1
};

struct Sums {
  double loss = 0, count = 0;
};

struct Lower {
  __device__ int64_t operator()(int64_t a, int64_t b) const { return a < b ? a : b; }
};

// The first column, of those with take(j), of the largest sign * d[j]; or `columns`.
template <class Group, class Take>
__device__ int64_t extreme(const Group& group, const double* d, int64_t columns, double sign, const Take& take) {
  double best = -HUGE_VAL;
  for (int64_t j = group.lane; j < columns; j += Group::threads) {
    best = take(j) && sign * d[j] > best ? sign * d[j] : best;
  }
  best = group.max(best);
  int64_t first = columns;
  for (int64_t j = group.lane; j < columns; j += Group::threads) {
    first = first == columns && take(j) && sign * d[j] == best ? j : first;
  }
  return group.reduce(first, Lower{});
}

template <class Group>
__device__ Sums contrastive(const PairTask& t, const Group& group, int64_t i, const double* d, double* g) {
  Sums sums;
  for (int64_t j = group.lane; j < t.columns; j += Group::threads) {
    const double gap = static_cast<double>(t.options.margin) - d[j];
    const bool positive = t.positive(i, j);
    const double counted = i == j ? 0 : positive ? d[j] : gap <= 0 ? 0 : -gap;
    g[j] = counted;
    sums.loss += counted * counted / 2;
    sums.count += i == j ? 0 : 1;
  }
  return sums;
}

template <class Group>
__device__ Sums triplet_hard(const PairTask& t, const Group& group, int64_t i, const double* d, double* g) {
  const int64_t far = extreme(group, d, t.columns, 1, [&](int64_t j) { return t.positive(i, j); });
  const int64_t near = extreme(group, d, t.columns, -1, [&](int64_t j) { return t.negative(i, j); });
  const bool counts = far < t.columns && near < t.columns;
  const double hinge = counts ? static_cast<double>(t.options.margin) + d[far] - d[near] : 0;
  for (int64_t j = group.lane; j < t.columns; j += Group::threads) {
    g[j] = hinge <= 0 ? 0 : j == far ? 1 : j == near ? -1 : 0;
  }
  Sums sums;
  if (group.lane == 0 && counts) {
    sums.count = 1;
    sums.loss = hinge <= 0 ? 0 : hinge;
  }
  return sums;
}

// The nearest negative beyond d[p], or the farthest; -1 if there is none.
__device__ inline int64_t semihard(const PairTask& t, int64_t i, int64_t p, const double* d) {
  int64_t beyond = -1, farthest = -1;
  for (int64_t j = 0; j < t.columns; ++j) {
    if (t.negative(i, j)) {
      beyond = d[j] > d[p] && (beyond < 0 || d[j] < d[beyond]) ? j : beyond;
      farthest = farthest < 0 || d[j] > d[farthest] ? j : farthest;
    }
  }
  return beyond >= 0 ? beyond : farthest;
}

template <class Group>
__device__ Sums triplet_semihard(const PairTask& t, const Group& group, int64_t i, const double* d, int32_t* others,
                                 double* g) {
  Sums sums;
  for (int64_t p = group.lane; p < t.columns; p += Group::threads) {
    others[p] = -1;
    const int64_t other = t.positive(i, p) ? semihard(t, i, p, d) : -1;
    if (other >= 0) {
      const double hinge = static_cast<double>(t.options.margin) + d[p] - d[other];
      sums.count += 1;
      if (!(hinge <= 0)) {
        sums.loss += hinge;
        others[p] = static_cast<int32_t>(other);
      }
    }
  }
  group.sync();
  for (int64_t j = group.lane; j < t.columns; j += Group::threads) {
    double counted = others[j] >= 0 ? 1 : 0;
    for (int64_t p = 0; p < t.columns; ++p) {
      counted -= others[p] == j ? 1 : 0;
    }
    g[j] = counted;
  }
  return sums;
}

template <class Group>
__device__ Sums triplet_all(const PairTask& t, const Group& group, int64_t i, const double* d, double* g) {
  const auto margin = static_cast<double>(t.options.margin);
  Sums sums;
  for (int64_t j = group.lane; j < t.columns; j += Group::threads) {
    double counted = 0;
    const bool positive = t.positive(i, j), negative = t.negative(i, j);
    for (int64_t k = 0; k < t.columns; ++k) {
      if (positive && t.negative(i, k) && !(margin + d[j] - d[k] <= 0)) {
        counted += 1;
        sums.loss += margin + d[j] - d[k];
      }
      if (negative && t.positive(i, k) && !(margin + d[k] - d[j] <= 0)) {
        counted -= 1;
      }
    }
    sums.count += positive ? counted : 0;
    g[j] = counted;
  }
  return sums;
}

struct Mine {
  PairTask t;
  Mined mined;

  template <int kWidth, class Group>
  __device__ void row(const Group& group, int64_t i) const {
    double* d = mined.distances + i * t.columns;
    double* g = mined.g + i * t.columns;
    for (int64_t j = group.lane; j < t.columns; j += Group::threads) {
      d[j] = distance(t, i, j);
    }
    group.sync();
    Sums sums;
    switch (t.options.kind) {
      case PairLossKind::contrastive:
        sums = contrastive(t, group, i, d, g);
        break;
      case PairLossKind::triplet_hard:
        sums = triplet_hard(t, group, i, d, g);
        break;
      case PairLossKind::triplet_semihard:
        sums = triplet_semihard(t, group, i, d, mined.others + i * t.columns, g);
        break;
      default:
        sums = triplet_all(t, group, i, d, g);
        break;
    }
    const double loss = group.sum(sums.loss), count = group.sum(sums.count);
    if (group.lane == 0) {
      mined.losses[i] = loss;
      mined.counts[i] = count;
    }
  }
};

struct DistanceGradient {
  Mined mined;
  int64_t n;
  Out ds;
  float* loss;

  template <int kWidth, class Group>
  __device__ void row(const Group& group, int64_t i) const {
    double sum = 0, count = 0;
    for (int64_t j = group.lane; j < n; j += Group::threads) {
      sum += mined.losses[j];
      count += mined.counts[j];
    }
    sum = group.sum(sum);
    count = group.sum(count);
    const double weight = count > 0 ? 1 / count : 0;
    double own = 0;
    for (int64_t j = group.lane; j < n; j += Group::threads) {
      const double d = mined.distances[i * n + j], forth = mined.g[i * n + j], back = mined.g[j * n + i];
      const bool counts = i != j && d >= kNear;
      own += counts ? weight * (forth + back) / (2 * d) : 0;
      if (i != j) {
        ds.put<1>(i, j, {{counts ? static_cast<float>(-weight * forth / d) : 0.0F}});
      }
    }
    own = group.sum(own);
    if (group.lane == 0) {
      ds.put<1>(i, i, {{static_cast<float>(own)}});
      if (i == 0) {
        *loss = static_cast<float>(weight * sum);
      }
    }
  }
};

}  // namespace

size_t distance_loss_scratch(const PairTask& task) {
  const auto lines = static_cast<size_t>(task.rows), entries = lines * lines;
  return entries * (2 * sizeof(double) + sizeof(int32_t)) + 2 * lines * sizeof(double);
}

void distance_loss(const Launch& where, const PairTask& task, std::byte* scratch, float* loss, const Out& ds) {
  const int64_t n = task.rows;
  auto* doubles = reinterpret_cast<double*>(scratch);
  const Mined mined{.distances = doubles,
                    .g = doubles + n * n,
                    .losses = doubles + 2 * n * n,
                    .counts = doubles + 2 * n * n + n,
                    .others = reinterpret_cast<int32_t*>(doubles + 2 * n * n + 2 * n)};
  for_rows_by_one(where, Mine{task, mined}, n, n);
  for_rows_by_one(where, DistanceGradient{mined, n, ds, loss}, n, n);
}

}  // namespace gle::cuda
