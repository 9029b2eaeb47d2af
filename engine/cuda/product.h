#pragma once

// Small matrix products c[M,N] = a[M,K] b[K,N] whose factors are made while they are loaded and whose result is used
// while it is stored. A block makes a tile of c from tiles in shared memory, two by two numbers a thread; K may be cut
// into slices, a block for each.
//
// An op has  a(i, k), b(k, j);  a_along_k, b_along_k: which index of theirs is that of neighbours in memory;
//            finish(slice, i, j, value).

#include "engine/cuda/lanes.h"

namespace gle::cuda {

inline constexpr int kTile = 32;
inline constexpr int kProductThreads = 256;

struct ProductSize {
  int64_t m, n, k;
  int64_t slice;  // of k
};

// So many of k to a slice that there are blocks for any device, and no more slices than that: they have to be added up.
inline int64_t slice_of(int64_t m, int64_t n, int64_t k, int64_t least) {
  constexpr int64_t kBlocks = 512;
  const int64_t tiles = pieces_of(m, kTile) * pieces_of(n, kTile);
  const int64_t most = tiles < kBlocks ? kBlocks / tiles : 1;
  const int64_t fair = pieces_of(pieces_of(k, most), kTile) * kTile;
  return fair > least ? fair : least;
}

template <class Op>
__global__ void __launch_bounds__(kProductThreads, 2) product_kernel(Op op, ProductSize size) {
  constexpr int kLd = kTile + 2;
  constexpr int kSteps = kTile * kTile / kProductThreads;
  using Row = float[kLd];
  GLE_SHARED(Row, a, kTile);  // [k][i]
  GLE_SHARED(Row, b, kTile);  // [k][j]
  const auto thread = static_cast<int>(threadIdx.x);
  const int64_t first_i = int64_t{blockIdx.y} * kTile, first_j = int64_t{blockIdx.x} * kTile;
  const int64_t begin = blockIdx.z * size.slice;
  const int64_t end = begin + size.slice < size.k ? begin + size.slice : size.k;
  const int i = thread / (kTile / 2) * 2, j = thread % (kTile / 2) * 2;
  float c[2][2] = {};
  for (int64_t first_k = begin; first_k < end; first_k += kTile) {
    for (int step = 0; step < kSteps; ++step) {
      const int slow = (thread + step * kProductThreads) / kTile, fast = thread % kTile;
      const int ak = Op::a_along_k ? fast : slow, ai = Op::a_along_k ? slow : fast;
      const int bk = Op::b_along_k ? fast : slow, bj = Op::b_along_k ? slow : fast;
      a[ak][ai] = first_i + ai < size.m && first_k + ak < end ? op.a(first_i + ai, first_k + ak) : 0.0F;
      b[bk][bj] = first_j + bj < size.n && first_k + bk < end ? op.b(first_k + bk, first_j + bj) : 0.0F;
    }
    __syncthreads();
    for (int k = 0; k < kTile; ++k) {
      for (int u = 0; u < 2; ++u) {
        for (int v = 0; v < 2; ++v) {
          c[u][v] = fmaf(a[k][i + u], b[k][j + v], c[u][v]);
        }
      }
    }
    __syncthreads();
  }
  for (int u = 0; u < 2; ++u) {
    for (int v = 0; v < 2; ++v) {
      if (first_i + i + u < size.m && first_j + j + v < size.n) {
        op.finish(blockIdx.z, first_i + i + u, first_j + j + v, c[u][v]);
      }
    }
  }
}

template <class Op>
void product(const Launch& where, const Op& op, const ProductSize& size) {
  launch(where, product_kernel<Op>,
         dim3(dim(pieces_of(size.n, kTile)), dim(pieces_of(size.m, kTile)), dim(pieces_of(size.k, size.slice))),
         dim3(kProductThreads), 0, op, size);
}

}  // namespace gle::cuda
