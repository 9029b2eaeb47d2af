// Losses of pairs s[M, N], with their gradient: options.h has the formulas. Here those of exponentials, log(1 + sum of
// e^x) by rows, where only differences from the largest x are formed; those of distances are in pair_loss_distances.cu.
//
// Bytes that must move: 8 M N; two launches (proxy_anchor four).

#include "engine/cuda/pair_loss_kernels.h"

#include <cmath>

#include "engine/cuda/cuda_backend.h"
#include "engine/cuda/row_groups.h"
#include "engine/cuda/total.h"

namespace gle::cuda {

namespace {

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
  PairTask t;
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
__device__ void pull_and_push(const PairTask& t, const Group& group, int64_t i, const Pulled& pulled,
                              const Pushed& pushed, const Pull& pull_by, const Push& push_by, float pull_scale,
                              float push_scale, float pull_weight, float push_weight, float* losses, const Out& ds) {
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
  PairTask t;
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
  PairTask t;
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
  PairTask t;
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
  const PairTask t{s, row_labels.ints(), column_labels.ints(), rows, columns, pairs == Pairs::of_batch, options};
  const bool distances = of_distances(options.kind);
  const auto lines = static_cast<size_t>(rows);
  const Workspace::Lease lease =
      workspace().lease(distances ? distance_loss_scratch(t) : (2 * lines + 1) * sizeof(float), "pair_loss");
  const Launch where = at("pair_loss");
  if (distances) {
    distance_loss(where, t, lease.data(), loss.data(), ds);
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
