// Losses of pairs s[M, N], with their gradient: options.h has the formulas. Groups of threads take rows (row_groups.h).
//
// Of distances: d = sqrt(s_ii + s_jj - 2 s_ij) is a difference of what may be nearly equal, and which sample is nearest
// depends on it: in doubles. A first launch finds in each row what every distance d_ij counts, g_ij = count dL/dd_ij,
// and how many terms there are; a second sums these counts up and turns g into
//   ds_ij = -g_ij / (count d_ij),  ds_ii = sum_j (g_ij + g_ji) / (2 count d_ij)
// so every place is written by one thread, once.
//
// Of exponentials: log(1 + sum of e^x) by rows, only differences from the largest x are formed.
//
// Bytes that must move: 8 M N; two launches (proxy_anchor four). Scratch of distances: 20 M N bytes.

#include <cmath>

#include "engine/cuda/cuda_backend.h"
#include "engine/cuda/row_groups.h"
#include "engine/cuda/total.h"

namespace gle::cuda {

namespace {

constexpr double kNear = 1e-6;

struct Task {
  In s;
  const int32_t *row_labels, *column_labels;
  int64_t rows, columns;
  bool of_batch;
  PairLossOptions options;

  __device__ double at(int64_t i, int64_t j) const { return static_cast<double>(s.at(i, j)); }
  __device__ bool positive(int64_t i, int64_t j) const {
    return row_labels[i] == column_labels[j] && !(of_batch && i == j);
  }
  __device__ bool negative(int64_t i, int64_t j) const { return row_labels[i] != column_labels[j]; }
  __device__ double distance(int64_t i, int64_t j) const {
    const double square = at(i, i) + at(j, j) - 2 * at(i, j);
    return square > 0 ? sqrt(square) : 0;
  }
};

// Of the distances of a batch.
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
__device__ Sums contrastive(const Task& t, const Group& group, int64_t i, const double* d, double* g) {
  Sums sums;
  for (int64_t j = group.lane; j < t.columns; j += Group::threads) {
    const double gap = static_cast<double>(t.options.margin) - d[j];
    const bool positive = t.positive(i, j);
    const double counted = i == j ? 0 : positive ? d[j] : gap > 0 ? -gap : 0;
    g[j] = counted;
    sums.loss += counted * counted / 2;
    sums.count += i == j ? 0 : 1;
  }
  return sums;
}

template <class Group>
__device__ Sums triplet_hard(const Task& t, const Group& group, int64_t i, const double* d, double* g) {
  const int64_t far = extreme(group, d, t.columns, 1, [&](int64_t j) { return t.positive(i, j); });
  const int64_t near = extreme(group, d, t.columns, -1, [&](int64_t j) { return t.negative(i, j); });
  const bool counts = far < t.columns && near < t.columns;
  const double hinge = counts ? static_cast<double>(t.options.margin) + d[far] - d[near] : 0;
  for (int64_t j = group.lane; j < t.columns; j += Group::threads) {
    g[j] = hinge > 0 ? (j == far ? 1 : j == near ? -1 : 0) : 0;
  }
  Sums sums;
  if (group.lane == 0 && counts) {
    sums.count = 1;
    sums.loss = hinge > 0 ? hinge : 0;
  }
  return sums;
}

// The nearest negative beyond d[p], or the farthest; -1 if there is none.
__device__ inline int64_t semihard(const Task& t, int64_t i, int64_t p, const double* d) {
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
__device__ Sums triplet_semihard(const Task& t, const Group& group, int64_t i, const double* d, int32_t* others,
                                 double* g) {
  Sums sums;
  for (int64_t p = group.lane; p < t.columns; p += Group::threads) {
    others[p] = -1;
    const int64_t other = t.positive(i, p) ? semihard(t, i, p, d) : -1;
    if (other >= 0) {
      const double hinge = static_cast<double>(t.options.margin) + d[p] - d[other];
      sums.count += 1;
      if (hinge > 0) {
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
__device__ Sums triplet_all(const Task& t, const Group& group, int64_t i, const double* d, double* g) {
  const auto margin = static_cast<double>(t.options.margin);
  Sums sums;
  for (int64_t j = group.lane; j < t.columns; j += Group::threads) {
    double counted = 0;
    const bool positive = t.positive(i, j), negative = t.negative(i, j);
    for (int64_t k = 0; k < t.columns; ++k) {
      if (positive && t.negative(i, k) && margin + d[j] - d[k] > 0) {
        counted += 1;
        sums.loss += margin + d[j] - d[k];
      }
      if (negative && t.positive(i, k) && margin + d[k] - d[j] > 0) {
        counted -= 1;
      }
    }
    sums.count += positive ? counted : 0;
    g[j] = counted;
  }
  return sums;
}

struct Mine {
  Task t;
  Mined mined;

  template <int kWidth, class Group>
  __device__ void row(const Group& group, int64_t i) const {
    double* d = mined.distances + i * t.columns;
    double* g = mined.g + i * t.columns;
    for (int64_t j = group.lane; j < t.columns; j += Group::threads) {
      d[j] = t.distance(i, j);
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

// log(one + sum of e^x(j)) of those with take(j), 0 if there is nothing to sum; share(x) is the derivative by an x.
struct LogSum {
  float top, sum, value;

  template <class Group, class Take, class Exponent>
  __device__ LogSum(const Group& group, int64_t columns, float one, const Take& take, const Exponent& x) {
    top = one > 0.0F ? 0.0F : -HUGE_VALF;
    for (int64_t j = group.lane; j < columns; j += Group::threads) {
      top = take(j) && x(j) > top ? x(j) : top;
    }
    top = group.max(top);
    sum = 0.0F;
    for (int64_t j = group.lane; j < columns; j += Group::threads) {
      sum += take(j) ? expf(x(j) - top) : 0.0F;
    }
    sum = group.sum(sum) + (one > 0.0F ? one * expf(-top) : 0.0F);
    value = top == -HUGE_VALF ? 0.0F : top + logf(sum);
  }
  __device__ float share(float x) const { return expf(x - top) / sum; }
};

struct ProxyNca {
  Task t;
  float* losses;
  Out ds;

  template <int kWidth, class Group>
  __device__ void row(const Group& group, int64_t i) const {
    const float weight = 1.0F / static_cast<float>(t.rows), scale = t.options.scale;
    const auto negative = [&](int64_t j) { return t.negative(i, j); };
    const auto x = [&](int64_t j) { return scale * t.s.at(i, j); };
    const LogSum push(group, t.columns, 0.0F, negative, x);
    float pull = 0.0F;
    for (int64_t j = group.lane; j < t.columns; j += Group::threads) {
      float d = 0.0F;
      if (negative(j)) {
        d = push.share(x(j));
      } else if (t.positive(i, j)) {
        pull += x(j);
        d = -1.0F;
      }
      ds.put<1>(i, j, {{weight * scale * d}});
    }
    pull = group.sum(pull);
    if (group.lane == 0) {
      losses[i] = weight * (push.value - pull);
    }
  }
};

// What multi_similarity and proxy_anchor share: positives pulled and negatives pushed, each by a log of a sum.
template <class Pulled, class Pushed, class Group, class Pull, class Push>
__device__ void pull_and_push(const Task& t, const Group& group, int64_t i, const Pulled& pulled, const Pushed& pushed,
                              const Pull& pull_by, const Push& push_by, float pull_scale, float push_scale,
                              float pull_weight, float push_weight, float* losses, const Out& ds) {
  const LogSum pull(group, t.columns, 1.0F, pulled, pull_by);
  const LogSum push(group, t.columns, 1.0F, pushed, push_by);
  for (int64_t j = group.lane; j < t.columns; j += Group::threads) {
    float d = 0.0F;
    if (pulled(j)) {
      d = -pull_weight * pull_scale * pull.share(pull_by(j));
    } else if (pushed(j)) {
      d = push_weight * push_scale * push.share(push_by(j));
    }
    ds.put<1>(i, j, {{d}});
  }
  if (group.lane == 0) {
    losses[i] = pull_weight * pull.value + push_weight * push.value;
  }
}

struct MultiSimilarity {
  Task t;
  float* losses;
  Out ds;

  template <int kWidth, class Group>
  __device__ void row(const Group& group, int64_t i) const {
    const PairLossOptions& o = t.options;
    float smallest = HUGE_VALF, largest = -HUGE_VALF;
    for (int64_t j = group.lane; j < t.columns; j += Group::threads) {
      const float s = t.s.at(i, j);
      smallest = t.positive(i, j) && s < smallest ? s : smallest;
      largest = t.negative(i, j) && s > largest ? s : largest;
    }
    smallest = -group.max(-smallest);
    largest = group.max(largest);
    // In doubles, so that every backend takes the same pairs for hard ones.
    const auto margin = static_cast<double>(o.margin);
    const auto pulled = [&](int64_t j) {
      return t.positive(i, j) && t.at(i, j) - margin < static_cast<double>(largest);
    };
    const auto pushed = [&](int64_t j) {
      return t.negative(i, j) && t.at(i, j) + margin > static_cast<double>(smallest);
    };
    const float weight = 1.0F / static_cast<float>(t.rows);
    pull_and_push(
        t, group, i, pulled, pushed, [&](int64_t j) { return -o.scale * (t.s.at(i, j) - o.base); },
        [&](int64_t j) { return o.negative_scale * (t.s.at(i, j) - o.base); }, o.scale, o.negative_scale,
        weight / o.scale, weight / o.negative_scale, losses, ds);
  }
};

struct HasPositives {
  Task t;
  float* flags;

  template <int kWidth, class Group>
  __device__ void row(const Group& group, int64_t i) const {
    float found = 0.0F;
    for (int64_t j = group.lane; j < t.columns; j += Group::threads) {
      found = t.positive(i, j) ? 1.0F : found;
    }
    found = group.max(found);
    if (group.lane == 0) {
      flags[i] = found;
    }
  }
};

struct ProxyAnchor {
  Task t;
  const float* rows_with_positives;
  float* losses;
  Out ds;

  template <int kWidth, class Group>
  __device__ void row(const Group& group, int64_t i) const {
    const PairLossOptions& o = t.options;
    const float count = *rows_with_positives;
    pull_and_push(
        t, group, i, [&](int64_t j) { return t.positive(i, j); }, [&](int64_t j) { return t.negative(i, j); },
        [&](int64_t j) { return -o.scale * (t.s.at(i, j) - o.margin); },
        [&](int64_t j) { return o.scale * (t.s.at(i, j) + o.margin); }, o.scale, o.scale,
        count > 0.0F ? 1.0F / count : 0.0F, 1.0F / static_cast<float>(t.rows), losses, ds);
  }
};

bool of_distances(PairLossKind kind) {
  return kind == PairLossKind::contrastive || kind == PairLossKind::triplet_hard ||
         kind == PairLossKind::triplet_semihard || kind == PairLossKind::triplet_all;
}

}  // namespace

void CudaBackend::pair_loss(const Tensor& s, const Tensor& row_labels, const Tensor& column_labels, Pairs pairs,
                            const PairLossOptions& options, const Tensor& loss, const Tensor& ds) {
  const int64_t rows = s.rows(), columns = s.channels();
  const Task t{s, row_labels.ints(), column_labels.ints(), rows, columns, pairs == Pairs::of_batch, options};
  const bool distances = of_distances(options.kind);
  const auto entries = static_cast<size_t>(rows * columns), lines = static_cast<size_t>(rows);
  const size_t bytes = distances ? entries * (2 * sizeof(double) + sizeof(int32_t)) + 2 * lines * sizeof(double)
                                 : (2 * lines + 1) * sizeof(float);
  const Workspace::Lease lease = workspace().lease(bytes, "pair_loss");
  const Launch where = at("pair_loss");
  if (distances) {
    auto* doubles = reinterpret_cast<double*>(lease.data());
    const Mined mined{.distances = doubles,
                      .g = doubles + entries,
                      .losses = doubles + 2 * entries,
                      .counts = doubles + 2 * entries + lines,
                      .others = reinterpret_cast<int32_t*>(doubles + 2 * entries + 2 * lines)};
    for_rows_by_one(where, Mine{t, mined}, rows, columns);
    for_rows_by_one(where, DistanceGradient{mined, rows, ds, loss.data()}, rows, columns);
    return;
  }
  float* losses = lease.floats();
  if (options.kind == PairLossKind::proxy_nca) {
    for_rows_by_one(where, ProxyNca{t, losses, ds}, rows, columns);
  } else if (options.kind == PairLossKind::multi_similarity) {
    for_rows_by_one(where, MultiSimilarity{t, losses, ds}, rows, columns);
  } else {
    float* flags = losses + lines;
    float* count = flags + lines;
    for_rows_by_one(where, HasPositives{t, flags}, rows, columns);
    sum(where, Values{flags}, rows, 1.0, count);
    for_rows_by_one(where, ProxyAnchor{t, count, losses, ds}, rows, columns);
  }
  sum(where, Values{losses}, rows, 1.0, loss.data());
}

}  // namespace gle::cuda
