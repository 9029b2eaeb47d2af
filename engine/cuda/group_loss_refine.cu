// The refinement of the Group Loss. X[n, C] rows of probabilities, W[n, n], G = W X:
//   S = X * G, q = rowsum(S), X' = S / q
// A row with q = 0 keeps its value: X' = X. An iterate is stored as Y = S with a scale 1 / q for each row, [n, C]
// without a gap. Support G below kNoSupport and S below kNoMass count as 0: nothing is subnormal.
//
// A batch of the usual size takes one launch (group_loss_refine.h), G in registers. Larger ones take a product
// (product.h) and a pass over rows for each step.
//
// Bytes that must move: 4 (n^2 + (T + 1) n C), one launch or 2T.

#include "engine/cuda/group_loss_refine.h"

#include "engine/cuda/product.h"
#include "engine/cuda/row_groups.h"

namespace gle::cuda {

namespace {

using namespace refining;

__device__ inline float unnormalised(float support, float x) {
  const float s = (support < kNoSupport ? 0.0F : support) * x;
  return s < kNoMass ? 0.0F : s;
}

// What a row of S sums to becomes its scale. Without support it keeps its value; keep() copies that.
template <class Keep>
__device__ inline void settle_row(const RefineTask& t, int step, int64_t i, float others, float own, bool writes,
                                  const Keep& keep) {
  const float sum = others + own;
  const bool supported = !(sum < kNoMass);
  const float inverse = 1.0F / sum;
  if (writes) {
    t.inverse_sums[(step + 1) * t.n + i] = supported ? inverse : 0.0F;
    t.scales[(step + 1) * t.n + i] = supported ? inverse : t.scales[step * t.n + i];
    if (supported) {
      t.misses[i] = others / sum;
    }
  }
  if (!supported) {
    keep();
  }
}

// w[i][j ...], kWidth of them, or of the last row there is.
template <int kWidth>
__device__ inline Floats<kWidth> similarities_at(const RefineTask& t, int64_t i, int64_t j) {
  return load<kWidth>(t.similarities + (i < t.n ? i : t.n - 1) * t.n + j);
}

// g += W x
template <int kWidth>
__device__ inline void multiply(const RefineTask& t, const Patch& p, const float* x, float (&g)[4][4]) {
  const int n = static_cast<int>(t.n);
  for (int j = 0; j < n; j += kWidth) {
    Floats<kWidth> w[4];
    for (int r = 0; r < 4; ++r) {
      w[r] = similarities_at<kWidth>(t, p.row + r, j);
    }
    for (int k = 0; k < kWidth; ++k) {
      const auto v = load<4>(x + (j + k) * kLd + p.column);
      for (int r = 0; r < 4; ++r) {
        for (int c = 0; c < 4; ++c) {
          g[r][c] = fmaf(w[r].at[k], v.at[c], g[r][c]);
        }
      }
    }
  }
}

// kWidth: of a load from W.
template <int kWidth>
__global__ void __launch_bounds__(kThreads, 1) refine_kernel(RefineTask t) {
  GLE_SHARED(float, x, kSamples* kLd);
  const auto n = static_cast<int>(t.n), classes = static_cast<int>(t.classes);
  const auto thread = static_cast<int>(threadIdx.x);
  const Patch p;
  for (int step = 0; step < t.steps; ++step) {
    const float* y = t.iterate(step);
    const float* scales = t.scales + step * t.n;
    float* next = t.iterate(step + 1);
    float others[4] = {};
    for (int first = 0; first < classes; first += kStrip) {
      for (int entry = thread; entry < n * kStrip; entry += kThreads) {
        const int j = entry / kStrip, c = entry % kStrip;
        x[j * kLd + c] = first + c < classes ? y[j * classes + first + c] * scales[j] : 0.0F;
      }
      __syncthreads();
      if (p.row < n) {
        float g[4][4] = {};
        multiply<kWidth>(t, p, x, g);
        for (int r = 0; r < 4 && p.row + r < n; ++r) {
          const int i = p.row + r, target = t.targets[i];
          for (int c = 0; c < 4; ++c) {
            const int column = first + p.column + c;
            if (column < classes) {
              const float s = unnormalised(g[r][c], x[i * kLd + p.column + c]);
              next[i * classes + column] = s;
              others[r] += column == target ? 0.0F : s;
            }
          }
        }
      }
      __syncthreads();
    }
    float own[4];
    for (int r = 0; r < 4; ++r) {
      const int i = p.row + r;
      own[r] = i < n ? next[i * classes + t.targets[i]] : 0.0F;
      others[r] = across(others[r]);
    }
    __syncwarp(0xffffffffU);  // before a row that keeps its value is overwritten
    for (int r = 0; r < 4; ++r) {
      const int i = p.row + r;
      if (i < n) {
        settle_row(t, step, i, others[r], own[r], p.column == 0, [&] {
          for (int c = p.column / 4; c < classes; c += kAcross) {
            next[i * classes + c] = y[i * classes + c];
          }
        });
      }
    }
    __syncthreads();
  }
}

// One step of many blocks: S, then the rows.
struct Support {
  static constexpr bool a_along_k = true, b_along_k = false;
  RefineTask t;
  int step;

  __device__ float x(int64_t i, int64_t c) const {
    return t.iterate(step)[i * t.classes + c] * t.scales[step * t.n + i];
  }
  __device__ float a(int64_t i, int64_t j) const { return t.similarities[i * t.n + j]; }
  __device__ float b(int64_t j, int64_t c) const { return x(j, c); }
  __device__ void finish(int64_t, int64_t i, int64_t c, float support) const {
    t.iterate(step + 1)[i * t.classes + c] = unnormalised(support, x(i, c));
  }
};

struct SettleRows {
  RefineTask t;
  int step;

  template <int kWidth, class Group>
  __device__ void row(const Group& group, int64_t i) const {
    const float* y = t.iterate(step) + i * t.classes;
    float* next = t.iterate(step + 1) + i * t.classes;
    float others = 0.0F;
    for (int64_t c = group.lane; c < t.classes; c += Group::threads) {
      others += c == t.targets[i] ? 0.0F : next[c];
    }
    others = group.sum(others);
    const float own = next[t.targets[i]];
    group.sync();
    settle_row(t, step, i, others, own, group.lane == 0, [&] {
      for (int64_t c = group.lane; c < t.classes; c += Group::threads) {
        next[c] = y[c];
      }
    });
  }
};

}  // namespace

void refine_forward(const Launch& where, const RefineTask& t) {
  if (t.steps > 0 && by_one_block(t)) {
    launch(where, rows_in_fours(t) ? refine_kernel<4> : refine_kernel<1>, dim3(1), dim3(kThreads), 0, t);
    return;
  }
  for (int step = 0; step < t.steps; ++step) {
    product(where, Support{t, step}, {t.n, t.classes, t.n, t.n});
    for_rows_by_one(where, SettleRows{t, step}, t.n, t.classes);
  }
}

}  // namespace gle::cuda
