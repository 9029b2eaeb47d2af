// The refinement of the Group Loss and its gradient. X[n, C] rows of probabilities, W[n, n], G = W X:
//   forward   S = X * G, q = rowsum(S), X' = S / q
//   backward  in A = X * dL/dX rather than in dL/dX, which has no bound where X is small:
//             r = rowsum(A'),  V = (A' / X' - r) * X / q,  A = A' - X' r + X * (W^T V),  dW += V X^T
// The sum of |A| grows at most fourfold a step. A row with q = 0 keeps its value: X' = X, A = A', V = 0. An iterate is
// stored as Y = S with a scale 1 / q for each row, [n, C] without a gap.
//
// Columns need each other for q and r only. So a batch of the usual size is refined by one block, all steps in one
// launch: a strip of columns of X (and V) at a time in shared memory, every row of it; G, and dW over all strips and
// steps, in registers. That beats sharing the columns out among blocks as long as a step takes a block no longer than
// the launches that would keep many blocks in step: on paper n^2 C = 2^21. Larger ones take a product (product.h) and a
// pass over rows for each step forward, two products and a pass backward.
//
// Support G below kNoSupport and S below kNoMass count as 0: then V <= A' / kNoSupport, and nothing is subnormal.
// L = -log X_T[target]: A_T is one-hot, of value a. With miss = 1 - X_T[target] summed from the other classes, the
// target's entry of A' - X' r is a * miss, without the cancellation of 1 - X_T.
//
// Bytes that must move: forward 4 (n^2 + (T + 1) n C), one launch or 2T; backward 4 (2 n^2 + (T + 2) n C), one launch
// or 3T + 1.

#include "engine/cuda/group_loss_kernels.h"
#include "engine/cuda/map.h"
#include "engine/cuda/product.h"
#include "engine/cuda/row_groups.h"

namespace gle::cuda {

namespace {

constexpr int kSamples = 128;  // at most, in one block
constexpr int kStrip = 32;     // columns
constexpr int kLd = kStrip + 4;
constexpr int kAcross = kStrip / 4;  // threads, of four columns and four rows each
constexpr int kThreads = kSamples / 4 * kAcross;
constexpr int kSide = 16;  // threads along a side of dW

bool by_one_block(const RefineTask& t) { return t.n <= kSamples && t.n * t.n * t.classes <= int64_t{1} << 21; }

bool rows_in_fours(const RefineTask& t) {
  return t.n % 4 == 0 && reinterpret_cast<uintptr_t>(t.similarities) % 16 == 0;
}

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

// This thread's four rows and four columns of a strip.
struct Patch {
  int row, column;

  __device__ Patch()
      : row(static_cast<int>(threadIdx.x) / kAcross * 4), column(static_cast<int>(threadIdx.x) % kAcross * 4) {}
};

// w[i][j ...], kWidth of them, or of the last row there is.
template <int kWidth>
__device__ inline Floats<kWidth> similarities_at(const RefineTask& t, int64_t i, int64_t j) {
  return load<kWidth>(t.similarities + (i < t.n ? i : t.n - 1) * t.n + j);
}

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

// The same with W transposed.
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

// Over the threads of a row.
__device__ inline float across(float mine) {
  for (int distance = kAcross / 2; distance > 0; distance /= 2) {
    mine += __shfl_xor_sync(0xffffffffU, mine, distance, kAcross);
  }
  return mine;
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
