// The refinement of the Group Loss and its gradient. X[n, C] rows of probabilities, W[n, n], G = W X:
//   forward   S = X * G, q = rowsum(S), X' = S / q
//   backward  in A = X * dL/dX rather than in dL/dX, which has no bound where X is small:
//             r = rowsum(A'),  V = (A' / X' - r) * X / q,  A = A' - X' r + X * (W^T V),  dW += V X^T
// The sum of |A| grows at most fourfold a step. A row with q = 0 keeps its value: X' = X, A = A', V = 0.
// An anchor is one-hot and has V = 0: it adds W_ij to one column of G, and one column of V to dW.
//
// An iterate is stored as Y = S with a scale 1 / q for each row, so a step is one pass over the columns: the scales of
// X go into W. Columns are cut into pieces (shared out among threads) of tiles (which stay in the cache with W); sums
// over columns are taken for each piece, and added up in the order of the pieces.
//
// Support G below kNoSupport and S below kNoMass count as 0: then V <= A' / kNoSupport, and nothing is subnormal.
// L = -log X_T[target]: A_T is one-hot, of value a. With miss = 1 - X_T[target] summed from the other classes, the
// target's entry of A' - X' r is a * miss, without the cancellation of 1 - X_T.

#include <cstring>

#include "engine/cpu/group_loss_kernels.h"
#include "engine/cpu/lanes.h"

namespace gle::cpu::GLE_ISA {

namespace {

constexpr float kNoSupport = 1e-20F;
constexpr int64_t kPanel = ChannelBlocks::kWide * kLanes;

// Work of some microseconds.
GLE_INLINE int64_t columns_of_piece(const RefineTask& t) {
  const int64_t wanted = larger((int64_t{1} << 16) / (t.n * t.n), divide_up(t.classes, 32));
  return divide_up(wanted, kTile) * kTile;
}

struct Layout {
  int64_t pieces, ld;
  float* w;       // by place in the order
  float* scaled;  // with the scales of X
  float *partial_sums, *partial_dw, *threads;
  int64_t of_thread;
};

GLE_INLINE Layout layout(const RefineTask& t, int threads, float* memory, int64_t* used) {
  Scratch scratch{memory};
  Layout l{};
  l.pieces = divide_up(t.classes, columns_of_piece(t));
  l.ld = padded_row(t.all);
  l.w = scratch.take(t.n * l.ld);
  l.scaled = scratch.take(t.n * l.ld);
  l.partial_sums = scratch.take(l.pieces * t.n);
  l.partial_dw = scratch.take(l.pieces * t.n * t.all);
  // A panel, two tiles, the transposed tile, and the row sums before their lanes are added.
  l.of_thread = t.n * (kPanel + 2 * kTile) + kTile * (t.n + 4 * kLanes) + t.n * kLanes;
  l.threads = scratch.take(threads * l.of_thread);
  *used = scratch.used;
  return l;
}

// body(column, panel) for a tile[n, columns] in panels as use_products() wants them. One that is a panel is not copied.
template <class Body>
GLE_INLINE void for_panels(const float* tile, int64_t n, int64_t columns, float* memory, const Body& body) {
  for (int64_t c = 0; c < columns; c += kPanel) {
    const float* panel = tile;
    if (columns != kPanel) {
      pack_rows(tile + c, columns, n, smaller(kPanel, columns - c), kPanel, memory);
      panel = memory;
    }
    body(c, panel);
  }
}

// body(vector, its column, lanes) for the vectors of a panel at column c of a tile that has so many.
template <class Body>
GLE_INLINE void for_vectors_of_panel(int64_t c, int64_t columns, const Body& body) {
#pragma GCC unroll 4
  for (int v = 0; v < ChannelBlocks::kWide; ++v, c += kLanes) {
    if (c + kLanes <= columns) {
      body(v, c, FullLanes{});
    } else if (c < columns) {
      body(v, c, PartialLanes{columns - c});
    }
  }
}

// body(first column, columns) for the tiles of a piece.
template <class Body>
GLE_INLINE void for_tiles(const RefineTask& t, int64_t piece, const Body& body) {
  const int64_t begin = piece * columns_of_piece(t), end = smaller(begin + columns_of_piece(t), t.classes);
  for (int64_t c = begin; c < end; c += kTile) {
    body(c, smaller(kTile, end - c));
  }
}

// body(i, column) for the anchors, from n on, whose class is in these columns.
template <class Body>
GLE_INLINE void for_anchors(const RefineTask& t, int64_t first, int64_t columns, const Body& body) {
  for (int64_t i = t.n; i < t.all; ++i) {
    const int64_t column = t.target(i) - first;
    if (column >= 0 && column < columns) {
      body(i, column);
    }
  }
}

// What the anchors add to the support in these columns, [n, kPanel], or null where there are none.
GLE_INLINE const float* support_of_anchors(const RefineTask& t, const Layout& l, int64_t first, int64_t columns,
                                           float* support) {
  const float* result = nullptr;
  for_anchors(t, first, columns, [&](int64_t anchor, int64_t column) {
    if (!result) {
      std::memset(support, 0, static_cast<size_t>(t.n * kPanel) * sizeof(float));
      result = support;
    }
    for (int64_t i = 0; i < t.n; ++i) {
      support[i * kPanel + column] += l.w[i * l.ld + anchor];
    }
  });
  return result;
}

GLE_INLINE void add_lanes(const float* sums, int64_t n, float* out) {
  for (int64_t i = 0; i < n; ++i) {
    out[i] = horizontal_sum(load(sums + i * kLanes));
  }
}

GLE_INLINE float add_pieces(const Layout& l, int64_t n, int64_t row) {
  float sum = 0.0F;
  for (int64_t piece = 0; piece < l.pieces; ++piece) {
    sum += l.partial_sums[piece * n + row];
  }
  return sum;
}

// One step's columns: y and scales to `next`, and for each row the sum of `next` without the target.
void refine_piece(const RefineTask& t, const Layout& l, int64_t piece, int thread, const float* y, const float* scales,
                  float* next) {
  float* memory = l.threads + thread * l.of_thread;
  float* support = memory + t.n * kPanel;
  float* sums = support + t.n * kPanel;
  std::memset(sums, 0, static_cast<size_t>(t.n * kLanes) * sizeof(float));
  for_tiles(t, piece, [&](int64_t first, int64_t columns) {
    const float* from = y + first * t.n;
    float* to = next + first * t.n;
    for_panels(from, t.n, columns, memory, [&](int64_t c, const float* panel) {
      const float* start = support_of_anchors(t, l, first + c, smaller(kPanel, columns - c), support);
      use_products(l.scaled, l.ld, t.n, t.n, panel, start, [&](int64_t i, const vf(&weights)[ChannelBlocks::kWide]) {
        const vf scale = set1(scales[i]);
        const vi target = set1i(static_cast<int32_t>(t.target(i) - first));
        vf sum = load(sums + i * kLanes);
        for_vectors_of_panel(c, columns, [&](int v, int64_t at, auto lanes) {
          const vf weight = weights[v];
          vf s = select(lt(weight, set1(kNoSupport)), zero(), weight) * (lanes.load(from + i * columns + at) * scale);
          s = select(lt(s, set1(kNoMass)), zero(), s);
          lanes.store(to + i * columns + at, s);
          sum += select(eqi(lane_numbers() + static_cast<int32_t>(at), target), zero(), lanes.keep(s, zero()));
        });
        store(sums + i * kLanes, sum);
      });
    });
  });
  add_lanes(sums, t.n, l.partial_sums + piece * t.n);
}

struct BackwardStep {
  int t;      // from iterate t + 1 to t
  bool last;  // t + 1 is the last: A' is one-hot
  const float* slopes;
  const float* sums;  // r
  float* a;           // A' becomes A
};

GLE_INLINE void one_row_back(const RefineTask& t, const BackwardStep& s, int64_t i, int64_t first, int64_t columns,
                             float* x, float* v) {
  const int64_t n = t.n;
  const int64_t at = first * n + i * columns;
  const float* y = t.iterate(s.t) + at;
  const float* next = t.iterate(s.t + 1) + at;
  float* a = s.a + at;
  const float inverse_sum = t.inverse_sums[(s.t + 1) * n + i];
  const vf scale = set1(t.scales[s.t * n + i]);
  const int64_t target = t.target(i) - first;
  const bool here = target >= 0 && target < columns;
  if (inverse_sum == 0.0F) {
    for_vectors(columns, [&](int64_t c, auto lanes) {
      lanes.store(x + c, lanes.load(y + c) * scale);
      lanes.store(v + c, zero());
      if (s.last) {
        lanes.store(a + c, zero());
      }
    });
    if (s.last && here) {
      a[target] = s.slopes[i];
    }
    return;
  }
  const vf inverse = set1(inverse_sum);
  if (s.last) {
    const float slope = s.slopes[i];
    const vf minus = set1(-slope);
    for_vectors(columns, [&](int64_t c, auto lanes) {
      const vf after = lanes.load(next + c), before = lanes.load(y + c) * scale;
      lanes.store(x + c, before);
      lanes.store(v + c, select(gt(after, zero()), minus * (before * inverse), zero()));
      lanes.store(a + c, minus * (after * inverse));
    });
    if (here) {
      a[target] = slope * t.misses[i];
      v[target] = next[target] > 0.0F ? slope * t.misses[i] * (x[target] / next[target]) : 0.0F;
    }
    return;
  }
  const vf r = set1(s.sums[i]);
  for_vectors(columns, [&](int64_t c, auto lanes) {
    const vf after = lanes.load(next + c), before = lanes.load(y + c) * scale, da = lanes.load(a + c);
    const vmask some = gt(after, zero());
    lanes.store(x + c, before);
    lanes.store(v + c, select(some, da * (before / select(some, after, set1(1.0F))) - r * (before * inverse), zero()));
    lanes.store(a + c, da - r * (after * inverse));
  });
}

void backward_piece(const RefineTask& t, const Layout& l, int64_t piece, int thread, const BackwardStep& s) {
  const int64_t n = t.n;
  float* dw = l.partial_dw + piece * n * t.all;
  float* memory = l.threads + thread * l.of_thread;
  float* x = memory + n * kPanel;
  float* v = x + n * kTile;
  float* transposed = v + n * kTile;
  float* sums = transposed + kTile * (n + 4 * kLanes);
  const ChannelBlocks samples{n};
  std::memset(sums, 0, static_cast<size_t>(n * kLanes) * sizeof(float));
  bool add = !s.last;
  if (s.last) {
    for (int64_t i = 0; i < n; ++i) {
      std::memset(dw + i * t.all + n, 0, static_cast<size_t>(t.all - n) * sizeof(float));
    }
  }
  for_tiles(t, piece, [&](int64_t first, int64_t columns) {
    for (int64_t i = 0; i < n; ++i) {
      one_row_back(t, s, i, first, columns, x + i * columns, v + i * columns);
    }
    float* a = s.a + first * n;
    for_panels(v, n, columns, memory, [&](int64_t c, const float* panel) {
      use_products(l.w, l.ld, n, n, panel, nullptr, [&](int64_t i, const vf(&products)[ChannelBlocks::kWide]) {
        vf sum = load(sums + i * kLanes);
        for_vectors_of_panel(c, columns, [&](int k, int64_t at, auto lanes) {
          const int64_t place = i * columns + at;
          const vf da = fma(lanes.load(x + place), products[k], lanes.load(a + place));
          lanes.store(a + place, da);
          sum += lanes.keep(da, zero());
        });
        store(sums + i * kLanes, sum);
      });
    });
    for (int64_t b = 0; b < samples.count; ++b) {
      pack_columns(x + samples.first(b) * columns, columns, columns, samples.channels_in(b),
                   samples.vectors_in(b) * kLanes, transposed + samples.first(b) * columns);
    }
    multiply(v, columns, n, columns, transposed, samples, dw, t.all, add);
    for_anchors(t, first, columns, [&](int64_t anchor, int64_t column) {
      for (int64_t i = 0; i < n; ++i) {
        dw[i * t.all + anchor] += v[i * columns + column];
      }
    });
    add = true;
  });
  add_lanes(sums, n, l.partial_sums + piece * n);
}

}  // namespace

int64_t refine_scratch(const RefineTask& task, int threads) {
  int64_t used = 0;
  if (task.n == 0) {
    return used;
  }
  layout(task, threads, nullptr, &used);
  return used;
}

void refine_forward(ThreadPool& pool, const RefineTask& t, float* scratch) {
  int64_t used = 0;
  const Layout l = layout(t, pool.size(), scratch, &used);
  for (int64_t i = 0; i < t.n; ++i) {
    for (int64_t j = 0; j < t.all; ++j) {
      l.w[i * l.ld + j] = t.similarity(i, j);
    }
  }
  for (int step = 0; step < t.steps; ++step) {
    const float* y = t.iterate(step);
    const float* scales = t.scales + step * t.n;
    float* next = t.iterate(step + 1);
    for (int64_t i = 0; i < t.n; ++i) {
      const int64_t row = i * l.ld;
      for_vectors(t.n, [&](int64_t j, auto lanes) {
        lanes.store(l.scaled + row + j, lanes.load(l.w + row + j) * lanes.load(scales + j));
      });
    }
    pool.parallel_for(l.pieces, [&](int64_t piece, int thread) { refine_piece(t, l, piece, thread, y, scales, next); });
    for (int64_t i = 0; i < t.n; ++i) {
      const float others = add_pieces(l, t.n, i);
      const float sum = others + next[tile_entry(t, i, t.target(i))];
      float* inverse_sum = t.inverse_sums + (step + 1) * t.n + i;
      float* scale = t.scales + (step + 1) * t.n + i;
      if (sum < kNoMass) {
        *inverse_sum = 0.0F;
        *scale = scales[i];
        for (int64_t c = 0; c < t.classes; c += kTile) {
          const int64_t at = tile_row(t, c, i);
          std::memcpy(next + at, y + at, static_cast<size_t>(tile_columns(t, c)) * sizeof(float));
        }
      } else {
        *inverse_sum = *scale = 1.0F / sum;
        t.misses[i] = others / sum;
      }
    }
  }
}

void refine_backward(ThreadPool& pool, const RefineTask& t, const float* slopes, float* a, float* sums, float* dw,
                     float* scratch) {
  std::memset(dw, 0, static_cast<size_t>(t.all * t.all) * sizeof(float));
  if (t.n == 0 || t.steps == 0) {
    return;
  }
  int64_t used = 0;
  const Layout l = layout(t, pool.size(), scratch, &used);
  for (int64_t i = 0; i < t.n; ++i) {
    for (int64_t j = 0; j < t.n; ++j) {
      l.w[i * l.ld + j] = t.similarity(j, i);
    }
  }
  for (int step = t.steps - 1; step >= 0; --step) {
    const BackwardStep s{.t = step, .last = step + 1 == t.steps, .slopes = slopes, .sums = sums, .a = a};
    pool.parallel_for(l.pieces, [&](int64_t piece, int thread) { backward_piece(t, l, piece, thread, s); });
    for (int64_t i = 0; i < t.n; ++i) {
      sums[i] = add_pieces(l, t.n, i);
    }
  }
  const int64_t entries = t.n * t.all;
  for (int64_t piece = 1; piece < l.pieces; ++piece) {
    const float* part = l.partial_dw + piece * entries;
    for_vectors(entries, [&](int64_t i, auto lanes) {
      lanes.store(l.partial_dw + i, lanes.load(l.partial_dw + i) + lanes.load(part + i));
    });
  }
  for (int64_t i = 0; i < t.n; ++i) {
    for (int64_t j = 0; j < t.all; ++j) {
      dw[t.order[i] * t.all + t.order[j]] = l.partial_dw[i * t.all + j];
    }
  }
}

}  // namespace gle::cpu::GLE_ISA
