// Similarities of the rows of E[n, D] and their gradient.
//   forward   c_i = f_i e_i - m_i,  P = C C^T,  u_i = 1 / sqrt(P_ii),  R_ij = P_ij u_i u_j
//             W = max(R, 0)  or  R - min R;  the diagonal 0 or R_ii
//   backward  M = dR + dR^T with its diagonal 0, d_i = sum_j M_ij R_ij:
//             dE = K C,  K_ij = f_i u_i (M_ij - [i = j] d_i) u_j
// m_i is the mean of f_i e_i (0 for the cosine). Rows of C sum to zero, so those of dE do: the gradient of the centring
// needs no pass of its own. f_i is 1 but for rows so large or small that their squares would leave the range of floats.
// A row with no more spread than rounding leaves, or smaller than 1e-12, points nowhere: u_i = 0.
//
// P is summed over slices of the features, one for each piece of work, only on and below the diagonal; dE is cut into
// stripes of features.

#include <cmath>
#include <cstring>

#include "engine/cpu/group_loss_kernels.h"
#include "engine/cpu/lanes.h"

namespace gle::cpu::GLE_ISA {

namespace {

constexpr int64_t kSlice = 256;         // features
constexpr int64_t kPanel = 2 * kLanes;  // samples
constexpr float kTiny = 1e-12F;
constexpr float kRounding = 1e-12F;  // of a centred row, squared, relative to its mean
constexpr float kSmall = 1e-15F, kLarge = 1e15F;

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

void find_means(const SimilarityTask& t, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; ++i) {
    const float* x = t.embeddings.data() + i * t.embeddings.pitch();
    float factor = 1.0F;
    RowSum row = row_sum(x, t.features, 1.0F);
    if (row.largest < kTiny) {
      factor = 0.0F;
      row.sum = 0.0F;
    } else if (row.largest < kSmall || row.largest > kLarge) {
      factor = 1.0F / row.largest;
      row = row_sum(x, t.features, factor);
    }
    t.factors()[i] = factor;
    t.means()[i] = t.options.similarity == Similarity::correlation ? row.sum / static_cast<float>(t.features) : 0.0F;
  }
}

// Columns [first, first + columns) of C, row after row.
GLE_INLINE void centre(const SimilarityTask& t, int64_t first, int64_t columns, float* to, int64_t ld) {
  for (int64_t i = 0; i < t.n; ++i) {
    const float* x = t.embeddings.data() + i * t.embeddings.pitch() + first;
    const vf factor = set1(t.factors()[i]), minus = set1(-t.means()[i]);
    for_vectors(columns,
                [&](int64_t c, auto lanes) { lanes.store(to + i * ld + c, fma(lanes.load(x + c), factor, minus)); });
  }
}

// The part of P, on and below the diagonal of panels, that a slice of the features adds up to.
void slice_product(const SimilarityTask& t, int64_t slice, float* rows, float* panel, float* p) {
  const int64_t first = slice * kSlice, run = at_most(kSlice, t.features - first), ld = padded_row(kSlice);
  centre(t, first, run, rows, ld);
  for (int64_t j = 0; j < t.n; j += kPanel) {
    const ChannelBlocks blocks{at_most(kPanel, t.n - j)};
    pack_columns(rows + j * ld, ld, run, blocks.channels, blocks.padded(), panel);
    multiply(rows + j * ld, ld, t.n - j, run, panel, blocks, p + j * t.n + j, t.n, false);
  }
}

// P to R, mirrored from below the diagonal through room for [n][padded_row(n)].
GLE_INLINE void normalise(const SimilarityTask& t, float* p, float* transposed) {
  float* inverses = t.inverses();
  for (int64_t i = 0; i < t.n; ++i) {
    const float square = p[i * t.n + i], mean = t.means()[i];
    const bool flat = square <= kRounding * static_cast<float>(t.features) * mean * mean || square == 0.0F;
    inverses[i] = flat ? 0.0F : 1.0F / sqrtf(square);
  }
  for (int64_t i = 0; i < t.n; ++i) {
    float* row = p + i * t.n;
    const float inverse = inverses[i];
    for_vectors(i, [&](int64_t j, auto lanes) {
      lanes.store(row + j, lanes.load(row + j) * (lanes.load(inverses + j) * inverse));
    });
    row[i] = inverse > 0.0F ? 1.0F : row[i] * inverse;
  }
  const int64_t ld = padded_row(t.n);
  pack_columns(p, t.n, t.n, t.n, ld, transposed);
  for (int64_t i = 0; i < t.n; ++i) {
    const float* column = transposed + i * ld + i + 1;
    float* row = p + i * t.n + i + 1;
    for_vectors(t.n - i - 1, [&](int64_t j, auto lanes) { lanes.store(row + j, lanes.load(column + j)); });
  }
}

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
  const int64_t slices = pieces_of(t.features, kSlice);
  const int64_t forward =
      slices * t.n * t.n + threads * (t.n * padded_row(kSlice) + kSlice * kPanel + 32) + t.n * padded_row(t.n);
  const int64_t backward = t.n * padded_row(t.n) + t.n + threads * (t.n * kSlice + 32);
  return at_least(forward, backward) + 64;
}

void similarity_forward(ThreadPool& pool, const SimilarityTask& t, float* memory) {
  float* w = t.similarities;
  const int64_t entries = t.n * t.n;
  if (t.embeddings) {
    Scratch scratch{memory};
    const int64_t slices = pieces_of(t.features, kSlice);
    float* parts = scratch.take(slices * entries);
    const int64_t of_rows = t.n * padded_row(kSlice), of_thread = of_rows + kSlice * kPanel;
    float* threads = scratch.take(pool.size() * of_thread);
    float* transposed = scratch.take(t.n * padded_row(t.n));
    const int64_t rows = pieces_of(int64_t{1} << 14, t.features);
    pool.parallel_for(pieces_of(t.n, rows),
                      [&](int64_t piece, int) { find_means(t, piece * rows, at_most((piece + 1) * rows, t.n)); });
    pool.parallel_for(slices, [&](int64_t slice, int thread) {
      float* rows = threads + thread * of_thread;
      slice_product(t, slice, rows, rows + of_rows, parts + slice * entries);
    });
    for (int64_t i = 0; i < t.n; ++i) {
      // What lies above the diagonal was never written.
      const int64_t end = at_most(i / kPanel * kPanel + kPanel, t.n);
      for_vectors(end, [&](int64_t j, auto lanes) {
        vf sum = lanes.load(parts + i * t.n + j);
        for (int64_t slice = 1; slice < slices; ++slice) {
          sum += lanes.load(parts + slice * entries + i * t.n + j);
        }
        lanes.store(w + i * t.n + j, sum);
      });
    }
    normalise(t, w, transposed);
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

void similarity_backward(ThreadPool& pool, const SimilarityTask& t, float* dw, const GradTarget& dembeddings,
                         const GradTarget& dgiven, float* memory) {
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
  Scratch scratch{memory};
  const int64_t ld = padded_row(n);
  float* k = scratch.take(n * ld);
  float* dots = scratch.take(n);
  float* threads = scratch.take(pool.size() * n * kSlice);

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
  const bool add = dembeddings.mode == Accumulate::add;
  pool.parallel_for(pieces_of(t.features, kSlice), [&](int64_t stripe, int thread) {
    const int64_t first = stripe * kSlice, columns = at_most(kSlice, t.features - first);
    const ChannelBlocks blocks{columns};
    float* panels = threads + thread * n * kSlice;
    for (int64_t b = 0; b < blocks.count; ++b) {
      const int64_t width = blocks.vectors_in(b) * kLanes;
      if (blocks.channels_in(b) < width) {
        std::memset(panels + blocks.first(b) * n, 0, static_cast<size_t>(n * width) * sizeof(float));
      }
      centre(t, first + blocks.first(b), blocks.channels_in(b), panels + blocks.first(b) * n, width);
    }
    multiply(k, ld, n, n, panels, blocks, dembeddings.grad.data() + first, dembeddings.grad.pitch(), add);
  });
}

}  // namespace gle::cpu::GLE_ISA
