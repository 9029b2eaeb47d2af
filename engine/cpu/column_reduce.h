#pragma once

// Sums down the rows of x[rows, C], channel by channel: pieces of rows in parallel, each walked in groups of a few rows
// and a group line by line: a channel's sums are fetched from L1 and put back once in a group, and float sums stay
// short. Lines are fetched ahead in the order of memory (ahead.h), which makes it three times as fast on Zen 4. A piece
// leaves `sums` partial rows of C floats; they are put together in double, in order.

#include <cstdint>

#include "engine/cpu/ahead.h"
#include "engine/cpu/lanes.h"
#include "engine/cpu/partition.h"

namespace gle::cpu::GLE_ISA {

inline constexpr int64_t kNarrow = 256;  // channels of all tensors walked
inline constexpr int64_t kCombine = 64;  // channels put together at once

// At least 64 rows to a piece, so that partials stay small next to x.
GLE_INLINE Pieces cut_for_columns(int64_t rows, int64_t channels) {
  constexpr int64_t kMultiple = 32;
  const Pieces pieces = cut_rows(rows, channels);
  const int64_t multiples = (pieces.rows_per_piece + kMultiple - 1) / kMultiple;
  return {rows, (multiples < 2 ? 2 : multiples) * kMultiple};
}

template <int n>
struct Rows {
  static constexpr int count = n;
};

// group(row, Rows<r>, before, c, Vectors<n>, lanes, partial): r rows from `row` on and n vectors of channels from c on
// of the tensors `walked`, to join the `before` rows of the piece that are in partial[s * C] already (0.0 of none).
template <size_t tensors, class Group>
GLE_INLINE void reduce_columns(ThreadPool& pool, const Pieces& pieces, const Tensor* const (&walked)[tensors],
                               int64_t sums, float* partials, const Group& group) {
  pool.parallel_for(pieces.count(), [&](int64_t piece, int) {
    const Group here = group;  // what it captures is in registers then: nothing that is stored can change it
    const int64_t channels = walked[0]->channels();
    float* partial = partials + piece * sums * channels;
    const int64_t begin = pieces.begin(piece);
    const int64_t end = pieces.end(piece);
    for (int64_t i = 0; i < sums * channels; ++i) {
      partial[i] = 0.0F;
    }
    int64_t row = begin;
    const auto walk = [&](auto rows) {
      Ahead ahead[tensors];
      for (size_t t = 0; t < tensors; ++t) {
        ahead[t] = Ahead(*walked[t], rows.count, 2 * rows.count * static_cast<int64_t>(tensors) * channels);
      }
      for (; row + rows.count <= end; row += rows.count) {
        for (size_t t = 0; t < tensors; ++t) {
          ahead[t].start(walked[t]->data() + row * walked[t]->pitch());
        }
        for_channel_blocks<kLine / kLanes>(channels, [&](int64_t c, auto vectors, auto lanes) {
          for (Ahead& lines : ahead) {
            lines.template fetch_lines<rows.count>();
          }
          here(row, rows, row - begin, c, vectors, lanes, partial + c);
        });
      }
    };
    // More rows to a group mean less work, as long as two groups find room in L1.
    if (static_cast<int64_t>(tensors) * channels <= kNarrow) {
      walk(Rows<4>{});
    } else {
      walk(Rows<2>{});
    }
    walk(Rows<1>{});
    stream_fence();  // a group may stream
  });
}

// total[i] = sum over pieces of partials[piece][s][c + i], i < n <= kCombine
GLE_INLINE void add_partials(const Pieces& pieces, int64_t channels, int64_t sums, const float* partials, int64_t s,
                             int64_t c, int64_t n, double* total) {
  for (int64_t i = 0; i < n; ++i) {
    total[i] = 0.0;
  }
  for (int64_t piece = 0; piece < pieces.count(); ++piece) {
    const float* partial = partials + (piece * sums + s) * channels + c;
    for (int64_t i = 0; i < n; ++i) {
      total[i] += static_cast<double>(partial[i]);
    }
  }
}

}  // namespace gle::cpu::GLE_ISA
