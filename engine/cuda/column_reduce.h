#pragma once

// Sums over the rows of x[rows, C] for each column, in an order that sizes alone decide. Rows are cut into pieces; a
// block takes some columns of a piece, its threads side by side along the columns first, then down the rows. What the
// threads of a column have is joined, the lower half taking the upper, and handed to finish().
//
// An op has  at<kWidth>(column): what belongs to the column;  Sums<kWidth>: zero at first, with join();
//            take<kRows>(at, column, row, step, sums): rows row, row + step, ...;  finish(at, piece, column, sums).

#include "engine/cuda/lanes.h"

namespace gle::cuda {

inline constexpr int kColumnThreads = 256;

struct RowPieces {
  int64_t rows, length;

  int64_t count() const { return pieces_of(rows, length); }
  __device__ int64_t begin(int64_t piece) const { return piece * length; }
  __device__ int64_t end(int64_t piece) const { return (piece + 1) * length < rows ? (piece + 1) * length : rows; }
};

// Of a block, at most: for many rows, and for the few that are left as sums of pieces, where a thread should not have
// to walk far.
inline constexpr int64_t kAcrossRows = 32, kAcrossPieces = 4;

inline int64_t threads_across(int64_t vectors, int64_t most) {
  int64_t x = 1;
  while (x < most && x < vectors) {
    x *= 2;
  }
  return x;
}

// Enough blocks for any device, none of too few rows.
inline RowPieces cut_rows(int64_t rows, int64_t vectors) {
  constexpr int64_t kBlocks = 1024, kRowsOfThread = 8;
  const int64_t x = threads_across(vectors, kAcrossRows), across = pieces_of(vectors, x);
  const int64_t least = kColumnThreads / x * kRowsOfThread;
  const int64_t most = across < kBlocks ? kBlocks / across : 1;
  const int64_t fair = pieces_of(rows, most);
  return {rows, fair > least ? fair : least};
}

template <int kWidth, class Op>
__device__ void reduce_piece(const Op& op, RowPieces pieces, int64_t piece, int64_t column, bool here,
                             typename Op::template Sums<kWidth>* shared) {
  const int64_t end = pieces.end(piece), step = blockDim.y;
  const auto at = op.template at<kWidth>(here ? column : 0);
  typename Op::template Sums<kWidth> sums{};
  if (here) {
    int64_t row = pieces.begin(piece) + threadIdx.y;
    for (; row + 3 * step < end; row += 4 * step) {
      op.template take<4>(at, column, row, step, sums);
    }
    for (; row < end; row += step) {
      op.template take<1>(at, column, row, step, sums);
    }
  }
  const unsigned place = threadIdx.y * blockDim.x + threadIdx.x;
  shared[place] = sums;
  for (unsigned half = blockDim.y / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.y < half) {
      sums.join(shared[place + half * blockDim.x]);
      shared[place] = sums;
    }
  }
  if (here && threadIdx.y == 0) {
    op.finish(at, piece, column, sums);
  }
}

template <int kWidth, class Op>
__global__ void __launch_bounds__(kColumnThreads, 3) columns_kernel(Op op, RowPieces pieces, int64_t channels) {
  using Sums = typename Op::template Sums<kWidth>;
  GLE_SHARED(Sums, shared, kColumnThreads);
  const int64_t column = (int64_t{blockIdx.x} * blockDim.x + threadIdx.x) * kWidth;
  for (int64_t piece = blockIdx.y; piece * pieces.length < pieces.rows; piece += gridDim.y) {
    reduce_piece<kWidth>(op, pieces, piece, column, column < channels, shared);
    __syncthreads();
  }
}

// `fours`: in_fours() holds for all that the op touches, and channels is a multiple of 4.
template <class Op>
void for_columns(const Launch& where, bool fours, const Op& op, RowPieces pieces, int64_t channels,
                 int64_t most_across = kAcrossRows) {
  constexpr int64_t kMost = 32768;
  const int64_t vectors = fours ? channels / 4 : channels;
  const int64_t x = threads_across(vectors, most_across);
  launch(where, fours ? columns_kernel<4, Op> : columns_kernel<1, Op>,
         dim3(dim(pieces_of(vectors, x)), dim(pieces.count() < kMost ? pieces.count() : kMost)),
         dim3(dim(x), dim(kColumnThreads / x)), 0, op, pieces, channels);
}

// The second launch: what the first made of each piece is a row here.
template <class Op>
void join_pieces(const Launch& where, bool fours, const Op& op, RowPieces pieces, int64_t channels) {
  for_columns(where, fours, op, {pieces.count(), pieces.count()}, channels, kAcrossPieces);
}

}  // namespace gle::cuda
