#pragma once

// How the memory-bound kernels cut their work: by rows (the channels of one pixel), into pieces that depend on the
// tensor alone, so that sums come out the same on any number of threads.

#include <cstdint>

#include "engine/cpu/isa.h"
#include "engine/cpu/simd.h"
#include "engine/thread_pool.h"

namespace gle::cpu::GLE_ISA {

// Some 20 us of one core's share of the memory bandwidth; less is not worth waking a thread for.
inline constexpr int64_t kPieceFloats = 1 << 16;

struct Pieces {
  int64_t rows;
  int64_t rows_per_piece;

  GLE_INLINE int64_t count() const { return (rows + rows_per_piece - 1) / rows_per_piece; }
  GLE_INLINE int64_t begin(int64_t piece) const { return piece * rows_per_piece; }
  GLE_INLINE int64_t end(int64_t piece) const {
    return begin(piece) + rows_per_piece < rows ? begin(piece) + rows_per_piece : rows;
  }
};

// `floats_per_row`: what a row costs, in floats of a plain pass over memory.
GLE_INLINE Pieces cut_rows(int64_t rows, int64_t floats_per_row) {
  const int64_t wanted = (rows * floats_per_row + kPieceFloats - 1) / kPieceFloats;
  return {rows, wanted > 1 ? (rows + wanted - 1) / wanted : rows};
}

// body(first row, end row), in parallel.
template <class Body>
GLE_INLINE void for_row_ranges(ThreadPool& pool, const Pieces& pieces, const Body& body) {
  pool.parallel_for(pieces.count(), [&](int64_t piece, int) {
    body(pieces.begin(piece), pieces.end(piece));
    stream_fence();
  });
}

// body(row, column, n) for stretches that together cover every element once, in parallel. With `dense` (all tensors of
// the op are) a stretch runs across rows: it lies in row 0 and begins at a column that is a multiple of 64.
template <class Body>
GLE_INLINE void for_stretches(ThreadPool& pool, int64_t rows, int64_t channels, bool dense, const Body& body) {
  if (dense) {
    const int64_t total = rows * channels;
    for_row_ranges(pool, cut_rows((total + 63) / 64, 64), [&](int64_t begin, int64_t end) {
      body(int64_t{0}, begin * 64, (end * 64 < total ? end * 64 : total) - begin * 64);
    });
  } else {
    for_row_ranges(pool, cut_rows(rows, channels), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        body(row, int64_t{0}, channels);
      }
    });
  }
}

}  // namespace gle::cpu::GLE_ISA
