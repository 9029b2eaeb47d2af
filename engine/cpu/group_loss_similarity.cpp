// Similarities of the rows of E[n, D] and their gradient.
//   forward   c_i = f_i e_i - m_i,  P = C C^T,  u_i = 1 / sqrt(P_ii),  R_ij = P_ij u_i u_j
//             W = max(R, 0)  or  R - min R;  the diagonal 0 or R_ii
//   backward  M = dR + dR^T with its diagonal 0, d_i = sum_j M_ij R_ij:
//             dE = K C,  K_ij = f_i u_i (M_ij - [i = j] d_i) u_j
// m_i is the mean of f_i e_i (0 for the cosine). Rows of C sum to zero, so those of dE do: the gradient of the centring
// needs no pass of its own. f_i is 1 but for rows so large that their squares would leave the range of floats.
// A row with no more spread than rounding leaves, or smaller than 1e-12, points nowhere: u_i = 0.
//
// P is summed over slices of the features, one for each piece of work: what a thread centres no other reads. A slice
// is cut into squares of dot products, on and below the diagonal, each kept in the registers. dE is cut into stripes of
// features.

#include <cmath>
#include <cstring>

#include "engine/cpu/group_loss_kernels.h"
#include "engine/cpu/lanes.h"

namespace gle::cpu::GLE_ISA {

namespace {

constexpr int64_t kSlice = 512, kStripe = 64;  // features
constexpr int kSide = kLanes == 16 ? 4 : 3;    // samples: a square and one row more fit in the registers
constexpr float kTiny = 1e-12F;
constexpr float kRounding = 1e-12F;  // of a centred row, squared, relative to its mean
constexpr float kLarge = 1e15F;

struct RowSum {
  float sum, largest;
};

GLE_INLINE RowSum row_sum(const float* x, int64_t features, float factor) {
  vf sum[4] = {zero(), zero(), zero(), zero()}, largest[4] = {zero(), zero(), zero(), zero()};
  const auto take = [&](const float* p, auto lanes, int v) {
    const vf one = lanes.load(p) * factor;
    sum[v] += one;
    largest[v] = max(largest[v], abs(one));
  };
  int64_t c = 0;
  for (; c + 4 * kLanes <= features; c += 4 * kLanes) {
    for (int v = 0; v < 4; ++v) {
      take(x + c + v * kLanes, FullLanes{}, v);
    }
  }
  for_vectors(features - c, [&](int64_t i, auto lanes) { take(x + c + i, lanes, 0); });
  return {horizontal_sum((sum[0] + sum[1]) + (sum[2] + sum[3])),
          horizontal_max(max(max(largest[0], largest[1]), max(largest[2], largest[3])))};
}

// Columns [first, first + columns) of row i of C.
GLE_INLINE void centre(const SimilarityTask& t, int64_t i, int64_t first, int64_t columns, float* to) {
  const float* x = t.embeddings.data() + i * t.embeddings.pitch() + first;
  const vf factor = set1(t.factors()[i]), minus = set1(-t.means()[i]);
  for_vectors(columns,
              [&](int64_t c, auto lanes) { store(to + c, lanes.keep(fma(lanes.load(x + c), factor, minus), zero())); });
}

GLE_INLINE int64_t slices_of(const SimilarityTask& t) { return divide_up(t.features, kSlice); }
constexpr int64_t kSquare = (kSide * kSide + 15) / 16 * 16;

// body(square, i, j) for the squares on and below the diagonal: its number and its first samples.
template <class Body>
GLE_INLINE void for_squares(int64_t n, const Body& body) {
  int64_t square = 0;
  for (int64_t i = 0; i < n; i += kSide) {
    for (int64_t j = 0; j <= i; j += kSide) {
      body(square++, i, j);
    }
  }
}

GLE_INLINE int64_t floats_of_squares(int64_t n) {
  const int64_t side = divide_up(n, kSide);
  return side * (side + 1) / 2 * kSquare;
}

// out[i] = the sum of the lanes of m[i].
template <int count>
GLE_INLINE void add_lanes(const vf (&m)[count], float* out) {
#pragma GCC unroll 4
  for (int first = 0; first + kLanes <= count; first += kLanes) {
    vf rows[kLanes];
#pragma GCC unroll 16
    for (int i = 0; i < kLanes; ++i) rows[i] = m[first + i];
    store(out + first, horizontal_sums(rows));
  }
#pragma GCC unroll 16
  for (int i = count / kLanes * kLanes; i < count; ++i) {
    out[i] = horizontal_sum(m[i]);
  }
}

// Samples i and j on from `rows` of C, ld apart, of so many features.
GLE_INLINE void square_product(const float* rows, int64_t ld, int64_t features, int64_t n, int64_t i, int64_t j,
                               float* square) {
  const float *left[kSide], *right[kSide];
  for (int k = 0; k < kSide; ++k) {
    left[k] = rows + smaller(i + k, n - 1) * ld;
    right[k] = rows + smaller(j + k, n - 1) * ld;
  }
  vf sums[kSide * kSide] = {};
  for (int64_t c = 0; c < features; c += kLanes) {
    vf b[kSide];
#pragma GCC unroll 4
    for (int l = 0; l < kSide; ++l) b[l] = load(right[l] + c);
#pragma GCC unroll 4
    for (int k = 0; k < kSide; ++k) {
      const vf a = load(left[k] + c);
#pragma GCC unroll 4
      for (int l = 0; l < kSide; ++l) sums[k * kSide + l] = fma(a, b[l], sums[k * kSide + l]);
    }
  }
  add_lanes(sums, square);
}

void slice_product(const SimilarityTask& t, int64_t slice, float* rows, float* squares) {
  const int64_t first = slice * kSlice, run = smaller(kSlice, t.features - first), ld = padded_row(kSlice);
  for (int64_t i = 0; i < t.n; ++i) {
    centre(t, i, first, run, rows + i * ld);
  }
  for_squares(t.n, [&](int64_t square, int64_t i, int64_t j) {
    square_product(rows, ld, run, t.n, i, j, squares + square * kSquare);
  });
}

// P from the squares of all slices.
GLE_INLINE void add_slices(const SimilarityTask& t, float* squares) {
  const int64_t floats = floats_of_squares(t.n), slices = slices_of(t);
  for_squares(t.n, [&](int64_t square, int64_t i, int64_t j) {
    float* sum = squares + square * kSquare;
    for (int64_t slice = 1; slice < slices; ++slice) {
      for_vectors(kSide * kSide, [&](int64_t l, auto lanes) {
        lanes.store(sum + l, lanes.load(sum + l) + lanes.load(sum + slice * floats + l));
      });
    }
    const int64_t rows = smaller(kSide, t.n - i), columns = smaller(kSide, t.n - j);
    for (int64_t k = 0; k < rows; ++k) {
      for (int64_t l = 0; l < columns; ++l) {
        t.similarities[(i + k) * t.n + j + l] = t.similarities[(j + l) * t.n + i + k] = sum[k * kSide + l];
      }
    }
  });
}

// P to R.
GLE_INLINE void normalise(const SimilarityTask& t) {
  float *p = t.similarities, *inverses = t.inverses();
  for (int64_t i = 0; i < t.n; ++i) {
    const float square = p[i * t.n + i], mean = t.means()[i];
    const bool flat = square <= kRounding * static_cast<float>(t.features) * mean * mean || square == 0.0F;
    inverses[i] = flat ? 0.0F : 1.0F / sqrtf(square);
  }
  for (int64_t i = 0; i < t.n; ++i) {
    float* row = p + i * t.n;
    const vf inverse = set1(inverses[i]);
    for_vectors(t.n, [&](int64_t j, auto lanes) {
      lanes.store(row + j, lanes.load(row + j) * (lanes.load(inverses + j) * inverse));
    });
    row[i] = inverses[i] > 0.0F ? 1.0F : row[i];
  }
}

struct BackwardMemory {
  float *k, *dots, *threads;

  GLE_INLINE BackwardMemory(int64_t n, float* memory) {
    Scratch scratch{memory};
    k = scratch.take(n * padded_row(n));
    dots = scratch.take(n);
    threads = scratch.take(0);
  }
};

GLE_INLINE float smallest(const SimilarityTask& t) {
  float low = __builtin_inff();
  for (int64_t i = 0; i < t.n; ++i) {
    for (int64_t j = 0; j < t.n; ++j) {
      const float w = t.similarities[i * t.n + j];
      low = w < low && !t.is_given(i, j) ? w : low;
    }
  }
  return low < __builtin_inff() ? low : 0.0F;
}

}  // namespace

int64_t similarity_scratch(const SimilarityTask& t, int threads) {
  const int64_t forward = slices_of(t) * floats_of_squares(t.n) + threads * t.n * padded_row(kSlice);
  const int64_t backward = t.n * padded_row(t.n) + t.n + threads * t.n * kStripe;
  return larger(forward, backward) + 48;
}

void find_mean(const SimilarityTask& t, int64_t i) {
  const float* x = t.embeddings.data() + i * t.embeddings.pitch();
  float factor = 1.0F;
  RowSum row = row_sum(x, t.features, 1.0F);
  if (row.largest < kTiny) {
    factor = 0.0F;
    row.sum = 0.0F;
  } else if (row.largest > kLarge) {
    factor = 1.0F / row.largest;
    row = row_sum(x, t.features, factor);
  }
  t.factors()[i] = factor;
  t.means()[i] = t.options.similarity == Similarity::correlation ? row.sum / static_cast<float>(t.features) : 0.0F;
}

void similarity_forward(ThreadPool& pool, const SimilarityTask& t, float* memory) {
  float* w = t.similarities;
  const int64_t entries = t.n * t.n;
  if (t.embeddings) {
    Scratch scratch{memory};
    const int64_t of_slice = floats_of_squares(t.n), of_thread = t.n * padded_row(kSlice);
    float* squares = scratch.take(slices_of(t) * of_slice);
    float* threads = scratch.take(pool.size() * of_thread);
    pool.parallel_for(slices_of(t), [&](int64_t slice, int thread) {
      slice_product(t, slice, threads + thread * of_thread, squares + slice * of_slice);
    });
    add_slices(t, squares);
    normalise(t);
  } else {
    std::memset(w, 0, static_cast<size_t>(entries) * sizeof(float));
    std::memset(t.rows, 0, static_cast<size_t>(3 * t.n) * sizeof(float));
  }
  t.shift() = 0.0F;
  if (t.embeddings && t.options.negatives == Negatives::shift) {
    const float low = t.shift() = smallest(t);
    for_vectors(entries, [&](int64_t i, auto lanes) { lanes.store(w + i, lanes.load(w + i) - low); });
  } else {
    for_vectors(entries, [&](int64_t i, auto lanes) { lanes.store(w + i, max(zero(), lanes.load(w + i))); });
  }
  if (t.options.diagonal == Diagonal::zero) {
    for (int64_t i = 0; i < t.n; ++i) {
      w[i * t.n + i] = 0.0F;
    }
  }
  if (t.given) {
    for (int64_t i = 0; i < t.n; ++i) {
      const float* given = t.given.data() + i * t.given.pitch();
      for (int64_t j = 0; j < t.n; ++j) {
        w[i * t.n + j] = given[j] < 0.0F ? w[i * t.n + j] : given[j];
      }
    }
  }
}

int64_t stripes_of(const SimilarityTask& t) { return divide_up(t.features, kStripe); }

void similarity_backward(const SimilarityTask& t, float* dw, const GradTarget& dembeddings, const GradTarget& dgiven,
                         float* scratch) {
  const int64_t n = t.n;
  const float* w = t.similarities;
  if (dgiven) {
    const Put mode = dgiven.mode == Accumulate::add ? Put::add : Put::overwrite;
    for (int64_t i = 0; i < n; ++i) {
      const float* given = t.given.data() + i * t.given.pitch();
      float* to = dgiven.grad.data() + i * dgiven.grad.pitch();
      for_vectors(n, [&](int64_t j, auto lanes) {
        lanes.put(to + j, select(gt(lanes.load(given + j), zero()), lanes.load(dw + i * n + j), zero()), mode);
      });
    }
  }
  if (!dembeddings) {
    return;
  }
  const int64_t ld = padded_row(n);
  const BackwardMemory memory(n, scratch);
  float *k = memory.k, *dots = memory.dots;

  const bool shift = t.options.negatives == Negatives::shift;
  const auto clear_diagonal = [&] {
    for (int64_t i = 0; i < n; ++i) {
      dw[i * n + i] = 0.0F;
    }
  };
  if (t.options.diagonal == Diagonal::zero) {
    clear_diagonal();
  }
  if (t.given) {
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        dw[i * n + j] = t.is_given(i, j) ? 0.0F : dw[i * n + j];
      }
    }
  }
  if (shift) {
    // The smallest entry was taken from all others; where several are smallest they share its gradient.
    double sum = 0.0;
    int64_t count = 0;
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        sum += static_cast<double>(dw[i * n + j]);
        count += i != j && w[i * n + j] == 0.0F && !t.is_given(i, j) ? 1 : 0;
      }
    }
    const float share = count > 0 ? static_cast<float>(sum / static_cast<double>(count)) : 0.0F;
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        dw[i * n + j] -= i != j && w[i * n + j] == 0.0F && !t.is_given(i, j) ? share : 0.0F;
      }
    }
  } else {
    for_vectors(n * n, [&](int64_t i, auto lanes) {
      lanes.store(dw + i, select(gt(lanes.load(w + i), zero()), lanes.load(dw + i), zero()));
    });
  }
  clear_diagonal();  // R_ii = 1 whatever the embeddings
  const float* inverses = t.inverses();
  const vf low = set1(t.shift());
  std::memset(dots, 0, static_cast<size_t>(n) * sizeof(float));
  for (int64_t i = 0; i < n; ++i) {
    // With given entries R_ij may be known only from dR_ij's own side, so each side is multiplied by its own.
    vf along = zero();
    for_vectors(n, [&](int64_t j, auto lanes) {
      const vf both = lanes.load(dw + i * n + j) * (lanes.load(w + i * n + j) + low);
      along += both;
      lanes.store(dots + j, lanes.load(dots + j) + both);
    });
    dots[i] += horizontal_sum(along);
  }
  pack_columns(dw, n, n, n, ld, k);
  for (int64_t i = 0; i < n; ++i) {
    float* row = k + i * ld;
    const float outer = t.factors()[i] * inverses[i];
    for_vectors(n, [&](int64_t j, auto lanes) {
      const vf both = lanes.load(dw + i * n + j) + lanes.load(row + j);
      lanes.store(row + j, both * outer * lanes.load(inverses + j));
    });
    row[i] = -outer * inverses[i] * dots[i];
  }
}

void stripe_backward(const SimilarityTask& t, int64_t stripe, int thread, const GradTarget& dembeddings,
                     float* scratch) {
  const int64_t first = stripe * kStripe, n = t.n;
  const ChannelBlocks blocks{smaller(kStripe, t.features - first)};
  const BackwardMemory memory(n, scratch);
  float* panels = memory.threads + thread * n * kStripe;
  for (int64_t b = 0; b < blocks.count; ++b) {
    const int64_t width = blocks.vectors_in(b) * kLanes;
    for (int64_t i = 0; i < n; ++i) {
      centre(t, i, first + blocks.first(b), blocks.channels_in(b), panels + blocks.first(b) * n + i * width);
    }
  }
  multiply(memory.k, padded_row(n), n, n, panels, blocks, dembeddings.grad.data() + first, dembeddings.grad.pitch(),
           dembeddings.mode == Accumulate::add);
}

}  // namespace gle::cpu::GLE_ISA
