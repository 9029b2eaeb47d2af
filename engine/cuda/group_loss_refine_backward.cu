// The gradient of the refinement of the Group Loss (group_loss_refine.cu), in A = X * dL/dX rather than in dL/dX, which
// has no bound where X is small:
//   r = rowsum(A'),  V = (A' / X' - r) * X / q,  A = A' - X' r + X * (W^T V),  dW += V X^T
// The sum of |A| grows at most fourfold a step. A row with q = 0 kept its value: A = A', V = 0. Support below
// kNoSupport counted as 0: V <= A' / kNoSupport. L = -log X_T[target]: A_T is one-hot, of value a. With miss = 1 -
// X_T[target] summed from the other classes, the target's entry of A' - X' r is a * miss, without the cancellation of 1
// - X_T.
//
// A batch of the usual size takes one launch (group_loss_refine.h), X and V in shared memory, dW over all strips and
// steps in registers. Larger ones take a pass over rows and two products (product.h) for each step.
//
// Bytes that must move: 4 (2 n^2 + (T + 2) n C), one launch or 3T + 1.

#include "engine/cuda/group_loss_refine.h"

#include "engine/cuda/map.h"
#include "engine/cuda/product.h"
#include "engine/cuda/row_groups.h"

namespace gle::cuda {

namespace {

using namespace refining;

constexpr int kSide = 16;  // threads along a side of dW

// g += W^T x
template <int kWidth>
__device__ inline void multiply_transposed(const RefineTask& t, const Patch& p, const float* x, float (&g)[4][4]) {
  const int n = static_cast<int>(t.n);
  for (int j = 0; j < n; ++j) {
    float w[4];
    for (int r = 0; r < 4; r += kWidth) {
      const int i = p.row + r < n ? p.row + r : n - kWidth;
      const auto some = load<kWidth>(t.similarities + j * n + i);
      for (int k = 0; k < kWidth; ++k) {
        w[r + k] = some.at[k];
      }
    }
    const auto v = load<4>(x + j * kLd + p.column);
    for (int r = 0; r < 4; ++r) {
      for (int c = 0; c < 4; ++c) {
        g[r][c] = fmaf(w[r], v.at[c], g[r][c]);
      }
    }
  }
}

// What a row knows on the way from iterate `step` + 1 to `step`. r is the sum of A'; if step + 1 is the last, A' is
// one-hot, of value r.
struct RowBack {
  float scale, inverse, r, miss;
  int target;
  bool last;

  __device__ RowBack(const RefineTask& t, int step, int64_t i, float sum)
      : scale(t.scales[step * t.n + i]),
        inverse(t.inverse_sums[(step + 1) * t.n + i]),
        r(sum),
        miss(t.misses[i]),
        target(t.targets[i]),
        last(step + 1 == t.steps) {}
};

struct EntryBack {
  float x, v, a;  // X, V, A' - X' r

  __device__ EntryBack(const RowBack& row, int64_t column, float y, float next, float da)
      : x(y * row.scale), v(0), a(da) {
    const bool own = row.last && column == row.target;
    if (row.last) {
      a = own ? row.r : 0.0F;
    }
    if (row.inverse == 0.0F) {
      return;
    }
    if (own) {
      a = row.r * row.miss;
      v = next > 0.0F ? a * (x / next) : 0.0F;
      return;
    }
    const float ratio = next > 0.0F ? x / next : 0.0F;
    v = next > 0.0F ? a * ratio - row.r * (x * row.inverse) : 0.0F;
    a -= row.r * (next * row.inverse);
  }
};

// kEach: rows and columns of dW of a thread, enough for all samples.
template <int kWidth, int kEach>
__global__ void __launch_bounds__(kThreads, 1) refine_backward_kernel(RefineTask t, RefineGradient gradient) {
  GLE_SHARED(float, x, kSamples* kLd);
  GLE_SHARED(float, v, kSamples* kLd);
  GLE_SHARED(float, sums, kSamples);
  const auto n = static_cast<int>(t.n), classes = static_cast<int>(t.classes);
  const auto thread = static_cast<int>(threadIdx.x);
  const Patch p;
  const int dw_row = thread / kSide, dw_column = thread % kSide;
  float dw[kEach][kEach] = {};
  if (thread < n) {
    sums[thread] = slope_of(t, thread, *gradient.dloss * gradient.weight);
  }
  // Rows that do not exist take part in dW.
  for (int entry = n * kLd + thread; entry < kSide * kEach * kLd; entry += kThreads) {
    x[entry] = v[entry] = 0.0F;
  }
  __syncthreads();
  for (int step = t.steps - 1; step >= 0; --step) {
    const float* y = t.iterate(step);
    const float* next = t.iterate(step + 1);
    float sum[4] = {};
    for (int first = 0; first < classes; first += kStrip) {
      float a[4][4] = {};
      for (int r = 0; r < 4 && p.row + r < n; ++r) {
        const int i = p.row + r;
        const RowBack row(t, step, i, sums[i]);
        for (int c = 0; c < 4; ++c) {
          const int column = first + p.column + c, place = i * kLd + p.column + c;
          float before = 0.0F, after = 0.0F, da = 0.0F;
          if (column < classes) {
            const int at = i * classes + column;
            before = y[at];
            after = next[at];
            da = row.last ? 0.0F : gradient.a[at];
          }
          const EntryBack entry(row, column, before, after, da);
          x[place] = entry.x;
          v[place] = entry.v;
          a[r][c] = entry.a;
        }
      }
      __syncthreads();
      if (p.row < n) {
        float g[4][4] = {};
        multiply_transposed<kWidth>(t, p, v, g);
        for (int r = 0; r < 4 && p.row + r < n; ++r) {
          const int i = p.row + r;
          for (int c = 0; c < 4; ++c) {
            const int column = first + p.column + c;
            if (column < classes) {
              const float da = fmaf(x[i * kLd + p.column + c], g[r][c], a[r][c]);
              gradient.a[i * classes + column] = da;
              sum[r] += da;
            }
          }
        }
      }
      if (gradient.dw) {
        for (int c = 0; c < kStrip; c += 4) {
          Floats<4> left[kEach];
          for (int r = 0; r < kEach; ++r) {
            left[r] = load<4>(v + (dw_row + r * kSide) * kLd + c);
          }
          for (int s = 0; s < kEach; ++s) {
            const auto right = load<4>(x + (dw_column + s * kSide) * kLd + c);
            for (int r = 0; r < kEach; ++r) {
              for (int k = 0; k < 4; ++k) {
                dw[r][s] = fmaf(left[r].at[k], right.at[k], dw[r][s]);
              }
            }
          }
        }
      }
      __syncthreads();
    }
    for (int r = 0; r < 4; ++r) {
      const float total = across(sum[r]);
      if (p.row + r < n && p.column == 0) {
        sums[p.row + r] = total;
      }
    }
    __syncthreads();
  }
  if (gradient.dw) {
    for (int r = 0; r < kEach; ++r) {
      for (int s = 0; s < kEach; ++s) {
        const int i = dw_row + r * kSide, j = dw_column + s * kSide;
        if (i < n && j < n) {
          gradient.dw[i * n + j] = dw[r][s];
        }
      }
    }
  }
}

// One step of many blocks: A' to X, V and A' - X' r; then the product with W; then dW.
struct RowsBack {
  RefineTask t;
  RefineGradient gradient;
  int step;
  float *x, *v;  // [n, classes]

  template <int kWidth, class Group>
  __device__ void row(const Group& group, int64_t i) const {
    const float* y = t.iterate(step) + i * t.classes;
    const float* next = t.iterate(step + 1) + i * t.classes;
    float* a = gradient.a + i * t.classes;
    const bool last = step + 1 == t.steps;
    float r = 0.0F;
    if (last) {
      r = slope_of(t, i, *gradient.dloss * gradient.weight);
    } else {
      for (int64_t c = group.lane; c < t.classes; c += Group::threads) {
        r += a[c];
      }
      r = group.sum(r);
    }
    const RowBack row(t, step, i, r);
    for (int64_t c = group.lane; c < t.classes; c += Group::threads) {
      const EntryBack entry(row, c, y[c], next[c], last ? 0.0F : a[c]);
      x[i * t.classes + c] = entry.x;
      v[i * t.classes + c] = entry.v;
      a[c] = entry.a;
    }
  }
};

struct SupportBack {
  static constexpr bool a_along_k = false, b_along_k = false;
  RefineTask t;
  float* gradient;
  const float *x, *v;

  __device__ float a(int64_t i, int64_t j) const { return t.similarities[j * t.n + i]; }
  __device__ float b(int64_t j, int64_t c) const { return v[j * t.classes + c]; }
  __device__ void finish(int64_t, int64_t i, int64_t c, float product) const {
    const int64_t at = i * t.classes + c;
    gradient[at] = fmaf(x[at], product, gradient[at]);
  }
};

struct SimilarityGradient {
  static constexpr bool a_along_k = true, b_along_k = true;
  int64_t n, classes;
  const float *x, *v;
  float* parts;  // [slices, n, n]
  Accumulate mode;

  __device__ float a(int64_t i, int64_t c) const { return v[i * classes + c]; }
  __device__ float b(int64_t c, int64_t j) const { return x[j * classes + c]; }
  __device__ void finish(int64_t slice, int64_t i, int64_t j, float value) const {
    put<1>(parts + (slice * n + i) * n + j, {{value}}, mode);
  }
};

struct AddSlices {
  const float* parts;
  int64_t slices, entries;

  template <int kWidth>
  __device__ auto at(int64_t column) const {
    return [this, column](int64_t) {
      Floats<kWidth> sum{};
      for (int64_t s = 0; s < slices; ++s) {
        const auto part = load<kWidth>(parts + s * entries + column);
        for (int i = 0; i < kWidth; ++i) {
          sum.at[i] += part.at[i];
        }
      }
      return sum;
    };
  }
};

// Of the classes, for dW.
int64_t slice_length(const RefineTask& t) { return slice_of(t.n, t.n, t.classes, kTile); }

struct BackwardScratch {
  float *x, *v, *parts;
  int64_t floats;

  BackwardScratch(const RefineTask& t, float* memory) {
    Scratch scratch{memory};
    x = scratch.take(t.n * t.classes);
    v = scratch.take(t.n * t.classes);
    parts = scratch.take(pieces_of(t.classes, slice_length(t)) * t.n * t.n);
    floats = scratch.used;
  }
};

}  // namespace

int64_t refine_backward_scratch(const RefineTask& t) {
  return by_one_block(t) ? 0 : BackwardScratch(t, nullptr).floats;
}

void refine_backward(const Launch& where, const RefineTask& t, const RefineGradient& gradient, float* memory) {
  if (t.steps > 0 && by_one_block(t)) {
    const auto kernel = t.n <= kSamples / 2
                            ? (rows_in_fours(t) ? refine_backward_kernel<4, 4> : refine_backward_kernel<1, 4>)
                            : (rows_in_fours(t) ? refine_backward_kernel<4, 8> : refine_backward_kernel<1, 8>);
    launch(where, kernel, dim3(1), dim3(kThreads), 0, t, gradient);
    return;
  }
  const BackwardScratch scratch(t, memory);
  for (int step = t.steps - 1; step >= 0; --step) {
    for_rows_by_one(where, RowsBack{t, gradient, step, scratch.x, scratch.v}, t.n, t.classes);
    product(where, SupportBack{t, gradient.a, scratch.x, scratch.v}, {t.n, t.classes, t.n, t.n});
    if (gradient.dw) {
      const Accumulate mode = step + 1 == t.steps ? Accumulate::overwrite : Accumulate::add;
      product(where, SimilarityGradient{t.n, t.classes, scratch.x, scratch.v, scratch.parts, mode},
              {t.n, t.n, t.classes, slice_length(t)});
    }
  }
  if (gradient.dw) {
    const int64_t entries = t.n * t.n, slices = t.steps > 0 ? pieces_of(t.classes, slice_length(t)) : 0;
    map(where, entries % 4 == 0, AddSlices{scratch.parts, slices, entries}, 1, entries, Out(gradient.dw, entries));
  }
}

}  // namespace gle::cuda
