// Softmax over the channels of each row x[rows, C], m = max(x), s = sum exp(x - m), by groups of threads
// (row_groups.h); a row is read from memory once and from the caches again.
//   softmax        y = exp(x - m) / s           dx = y (dy - sum y dy)
//   log_softmax    y = (x - m) - log s          dx = dy - exp(y) sum dy
//   cross entropy  L = mean of log s + (1 - e) (m - x_label) + e mean(m - x), e the smoothing
//                  dx = dL (exp(x - (m + log s)) - t) / rows.  Saved: m and log s of each row
// Only differences from m are formed, so large logits do no harm. -inf counts as a class of no weight; a row of nothing
// else has no softmax and gives NaN, as does a NaN or +inf.
//
// Bytes that must move, for e elements: (log_)softmax_forward 8e, (log_)softmax_backward 12e, cross_entropy_backward
// 8e, one launch each; cross_entropy_forward 4e, two launches; check_labels the labels, one launch.

#include <cmath>

#include "engine/cuda/cuda_backend.h"
#include "engine/cuda/row_groups.h"
#include "engine/cuda/total.h"

namespace gle::cuda {

namespace {

template <int kWidth, class Group>
__device__ float row_max(const Group& group, const In& x, int64_t row, int64_t channels) {
  float highest = -HUGE_VALF;
  group.template columns<kWidth>(channels, [&](int64_t c, auto width) {
    constexpr int kHere = decltype(width)::count;
    const auto v = x.load<kHere>(row, c);
    for (int i = 0; i < kHere; ++i) {
      highest = highest < v.at[i] ? v.at[i] : highest;
    }
  });
  return group.max(highest);
}

template <int kWidth, class Group>
__device__ float row_exp_sum(const Group& group, const In& x, int64_t row, int64_t channels, float m) {
  return group.template sum_columns<kWidth>(channels, [&](int64_t c, auto width) {
    constexpr int kHere = decltype(width)::count;
    const auto v = x.load<kHere>(row, c);
    return each<kHere>([&](int i) { return expf(v.at[i] - m); });
  });
}

struct Softmax {
  In x;
  int64_t channels;
  Out y;

  template <int kWidth, class Group>
  __device__ void row(const Group& group, int64_t row) const {
    const float m = row_max<kWidth>(group, x, row, channels);
    const float factor = 1.0F / row_exp_sum<kWidth>(group, x, row, channels, m);
    group.template columns<kWidth>(channels, [&](int64_t c, auto width) {
      constexpr int kHere = decltype(width)::count;
      const auto v = x.load<kHere>(row, c);
      y.put<kHere>(row, c, each<kHere>([&](int i) { return expf(v.at[i] - m) * factor; }));
    });
  }
};

struct SoftmaxBack {
  In y, dy;
  int64_t channels;
  Out dx;

  template <int kWidth, class Group>
  __device__ void row(const Group& group, int64_t row) const {
    const float dot = group.template sum_columns<kWidth>(channels, [&](int64_t c, auto width) {
      constexpr int kHere = decltype(width)::count;
      const auto p = y.load<kHere>(row, c), d = dy.load<kHere>(row, c);
      return each<kHere>([&](int i) { return p.at[i] * d.at[i]; });
    });
    group.template columns<kWidth>(channels, [&](int64_t c, auto width) {
      constexpr int kHere = decltype(width)::count;
      const auto p = y.load<kHere>(row, c), d = dy.load<kHere>(row, c);
      dx.put<kHere>(row, c, each<kHere>([&](int i) { return p.at[i] * (d.at[i] - dot); }));
    });
  }
};

struct LogSoftmax {
  In x;
  int64_t channels;
  Out y;

  template <int kWidth, class Group>
  __device__ void row(const Group& group, int64_t row) const {
    const float m = row_max<kWidth>(group, x, row, channels);
    const float log_sum = logf(row_exp_sum<kWidth>(group, x, row, channels, m));
    group.template columns<kWidth>(channels, [&](int64_t c, auto width) {
      constexpr int kHere = decltype(width)::count;
      const auto v = x.load<kHere>(row, c);
      y.put<kHere>(row, c, each<kHere>([&](int i) { return (v.at[i] - m) - log_sum; }));
    });
  }
};

struct LogSoftmaxBack {
  In y, dy;
  int64_t channels;
  Out dx;

  template <int kWidth, class Group>
  __device__ void row(const Group& group, int64_t row) const {
    const float sum = group.template sum_columns<kWidth>(
        channels, [&](int64_t c, auto width) { return dy.load<decltype(width)::count>(row, c); });
    group.template columns<kWidth>(channels, [&](int64_t c, auto width) {
      constexpr int kHere = decltype(width)::count;
      const auto p = y.load<kHere>(row, c), d = dy.load<kHere>(row, c);
      dx.put<kHere>(row, c, each<kHere>([&](int i) { return d.at[i] - expf(p.at[i]) * sum; }));
    });
  }
};

struct CrossEntropy {
  In x;
  const int32_t* labels;
  int64_t channels;
  float smoothing;
  float* log_sums;
  float* losses;

  template <int kWidth, class Group>
  __device__ void row(const Group& group, int64_t row) const {
    const float m = row_max<kWidth>(group, x, row, channels);
    const float log_sum = logf(row_exp_sum<kWidth>(group, x, row, channels, m));
    // A label that check_labels() has found wrong must do no harm until that is reported.
    const int32_t label = labels[row];
    const float own = label >= 0 && label < channels ? x.at(row, label) : NAN;
    float loss = log_sum + (1.0F - smoothing) * (m - own);
    if (smoothing != 0.0F) {  // 0 times a class of -inf is no number
      const float differences = group.template sum_columns<kWidth>(channels, [&](int64_t c, auto width) {
        constexpr int kHere = decltype(width)::count;
        const auto v = x.load<kHere>(row, c);
        return each<kHere>([&](int i) { return v.at[i] - m; });
      });
      loss -= smoothing * differences / static_cast<float>(channels);
    }
    if (group.lane == 0) {
      log_sums[2 * row] = m;
      log_sums[2 * row + 1] = log_sum;
      losses[row] = loss;
    }
  }
};

struct CrossEntropyBack {
  In x;
  const int32_t* labels;
  int64_t rows, channels;
  float smoothing;
  const float* log_sums;
  const float* dloss;
  Out dx;

  template <int kWidth, class Group>
  __device__ void row(const Group& group, int64_t row) const {
    const float factor = *dloss / static_cast<float>(rows);
    const float others = smoothing / static_cast<float>(channels), own = (1.0F - smoothing) * factor;
    const float m = log_sums[2 * row], log_sum = log_sums[2 * row + 1];
    const int32_t label = labels[row];
    group.template columns<kWidth>(channels, [&](int64_t c, auto width) {
      constexpr int kHere = decltype(width)::count;
      const auto v = x.load<kHere>(row, c);
      dx.put<kHere>(row, c, each<kHere>([&](int i) {
                      const float d = (expf((v.at[i] - m) - log_sum) - others) * factor;
                      return c + i == label ? d - own : d;
                    }));
    });
  }
};

struct Lower {
  __device__ int64_t operator()(int64_t a, int64_t b) const { return a < b ? a : b; }
};

// One row of all labels: the first bad one is reported, if nothing was before.
struct CheckLabels {
  const int32_t* labels;
  int64_t count, classes;
  DeviceStatus* status;

  template <int kWidth, class Group>
  __device__ void row(const Group& group, int64_t) const {
    int64_t first = count;
    for (int64_t i = group.lane; i < count; i += Group::threads) {
      const bool bad = labels[i] < 0 || labels[i] >= classes;
      first = bad && i < first ? i : first;
    }
    first = group.reduce(first, Lower{});
    if (group.lane == 0 && first < count && status->what == DeviceStatus::nothing) {
      status->what = DeviceStatus::bad_label;
      status->label = labels[first];
      status->sample = static_cast<int32_t>(first);
      status->classes = static_cast<int32_t>(classes);
    }
  }
};

}  // namespace

void CudaBackend::softmax_forward(const Tensor& x, const Tensor& y) {
  for_rows(at("softmax_forward"), in_fours({&x, &y}), Softmax{x, x.channels(), y}, x.rows(), x.channels());
}

void CudaBackend::softmax_backward(const Tensor& y, const Tensor& dy, const GradTarget& dx) {
  if (dx) {
    for_rows(at("softmax_backward"), in_fours({&y, &dy, &dx.grad}), SoftmaxBack{y, dy, y.channels(), dx}, y.rows(),
             y.channels());
  }
}

void CudaBackend::log_softmax_forward(const Tensor& x, const Tensor& y) {
  for_rows(at("log_softmax_forward"), in_fours({&x, &y}), LogSoftmax{x, x.channels(), y}, x.rows(), x.channels());
}

void CudaBackend::log_softmax_backward(const Tensor& y, const Tensor& dy, const GradTarget& dx) {
  if (dx) {
    for_rows(at("log_softmax_backward"), in_fours({&y, &dy, &dx.grad}), LogSoftmaxBack{y, dy, y.channels(), dx},
             y.rows(), y.channels());
  }
}

void CudaBackend::check_labels(const Tensor& labels, int64_t classes) {
  for_rows_by_one(at("check_labels"), CheckLabels{labels.ints(), labels.elements(), classes, status()}, 1,
                  labels.elements());
}

void CudaBackend::cross_entropy_forward(const Tensor& logits, const Tensor& labels, float smoothing,
                                        const Tensor& log_sums, const Tensor& loss) {
  const int64_t rows = logits.rows();
  const Workspace::Lease lease = workspace().lease(static_cast<size_t>(rows) * sizeof(float), "cross_entropy");
  const Launch where = at("cross_entropy_forward");
  for_rows(where, in_fours({&logits}),
           CrossEntropy{logits, labels.ints(), logits.channels(), smoothing, log_sums.data(), lease.floats()}, rows,
           logits.channels());
  sum(where, Values{lease.floats()}, rows, 1.0 / static_cast<double>(rows), loss.data());
}

void CudaBackend::cross_entropy_backward(const Tensor& logits, const Tensor& labels, float smoothing,
                                         const Tensor& log_sums, const Tensor& dloss, const GradTarget& dlogits) {
  if (dlogits) {
    for_rows(at("cross_entropy_backward"), in_fours({&logits, &dlogits.grad}),
             CrossEntropyBack{logits, labels.ints(), logits.rows(), logits.channels(), smoothing, log_sums.data(),
                              dloss.data(), dlogits},
             logits.rows(), logits.channels());
  }
}

}  // namespace gle::cuda
