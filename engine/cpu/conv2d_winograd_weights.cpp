// The gradient of a 3x3 kernel, by the transposed steps of F(2x2, 3x3), winograd_transforms.h:
//   dw = G^T [sum over squares of (A dy A^T) * (B^T d B)] G
// The sum is 16 products of matrices, [k, squares] by [squares, c]. It runs over chunks of squares in order, in a few
// groups that depend on the shape alone; the groups' sums are added in order at the end. Threads share out groups, and
// blocks of k, which changes no sum.

#include <cstring>

#include "engine/cpu/weight_tiles.h"
#include "engine/cpu/winograd_squares.h"

namespace gle::cpu::GLE_ISA {

namespace {

constexpr int64_t kEntries = entries(2);
constexpr int64_t kChunk = 240;               // squares, at most
constexpr int64_t kChunkFloats = 640 * 1024;  // transformed
constexpr int64_t kGroupSquares = 768;        // no group of fewer: adding the groups must stay cheap
constexpr int64_t kMostGroups = 8;

struct Plan {
  int64_t chunk, chunks, groups;
  int64_t width, padded;  // of a block of c; of all
  int64_t k_blocks, k_parts;
  int64_t of_thread;

  GLE_INLINE Plan(const ConvShape& s, int64_t squares, int threads) {
    const TileSize tile = tile_size(divide_up(s.c, kLanes));
    chunk = smaller(kChunk, larger(48, kChunkFloats / (kEntries * (s.c + s.k))));
    chunks = divide_up(squares, chunk);
    groups = smaller(chunks, larger(1, smaller(kMostGroups, squares / kGroupSquares)));
    width = tile.vectors * kLanes;
    padded = divide_up(s.c, kLanes) * kLanes;
    k_blocks = divide_up(s.k, tile.rows);
    k_parts = groups < 2 * threads ? smaller(k_blocks, divide_up(4 * threads, groups)) : 1;
    of_thread = divide_up(kEntries * (chunk * (padded + s.k) + kLanes) + s.c, 16) * 16;
  }
  GLE_INLINE int64_t first_k(const ConvShape& s, int64_t block) const { return s.k * block / k_blocks; }
};

// One side of A d A^T and of G^T u G.
GLE_INLINE void to_sums(const vf (&d)[2], vf (&out)[4]) {
  out[0] = d[0];
  out[1] = d[0] + d[1];
  out[2] = d[0] - d[1];
  out[3] = zero() - d[1];
}
GLE_INLINE void to_taps(const vf (&u)[4], vf (&out)[3]) {
  const vf half = set1(0.5F), both = (u[1] + u[2]) * half;
  out[0] = u[0] + both;
  out[1] = (u[1] - u[2]) * half;
  out[2] = both + u[3];
}

// A dy A^T of one square, `count` channels from the first that dy points at: entry e to z + e * step. A store writes a
// whole vector: what follows is overwritten by the next square or block, or is room for it.
GLE_INLINE void transform_gradient(const ConvShape& s, const Square& at, const float* dy, int64_t count, float* z,
                                   int64_t step) {
  vf rows[2][4];
#pragma GCC unroll 2
  for (int i = 0; i < 2; ++i) {
    const float* from = dy + ((at.image * s.p + at.row + i) * s.q + at.column) * s.y_pitch;
    const bool inside = at.row + i < s.p;
    const vf in[2] = {inside ? load_partial(from, count) : zero(),
                      inside && at.column + 1 < s.q ? load_partial(from + s.y_pitch, count) : zero()};
    to_sums(in, rows[i]);
  }
#pragma GCC unroll 4
  for (int j = 0; j < 4; ++j) {
    const vf in[2] = {rows[0][j], rows[1][j]};
    vf out[4];
    to_sums(in, out);
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      store(z + (i * 4 + j) * step, out[i]);
    }
  }
}

// Squares [begin, begin + count) and blocks [first, last) of k: sums[16][k][c] (+)= their products.
void run_chunk(const ConvShape& s, const Squares& squares, const Plan& plan, int64_t begin, int64_t count,
               int64_t first, int64_t last, const float* x, const float* dy, bool add, float* sums, float* scratch) {
  // [16][block of c][square][width of the block] and [16][block of k][square][k of the block], with room at the end
  float* inputs = scratch;
  float* gradients = inputs + kEntries * count * plan.padded;
  float* nothing = scratch + plan.of_thread - s.c;
  std::memset(nothing, 0, static_cast<size_t>(s.c) * sizeof(float));
  const auto width_of = [&](int64_t c) { return smaller(plan.width, plan.padded - c / plan.width * plan.width); };
  for (int64_t i = 0; i < count; ++i) {
    transform_input<2>(s, squares[begin + i], x, nothing, inputs, count * plan.padded, [&](int64_t c) {
      const int64_t block = c / plan.width * plan.width;
      return block * count + i * width_of(c) + c - block;
    });
  }
  const int64_t k_begin = plan.first_k(s, first), k_end = plan.first_k(s, last),
                step = count * (k_end - k_begin) + kLanes;
  for (int64_t block = first; block < last; ++block) {
    const int64_t k = plan.first_k(s, block), rows = plan.first_k(s, block + 1) - k;
    for (int64_t i = 0; i < count; ++i) {
      transform_gradient(s, squares[begin + i], dy + k, rows, gradients + (k - k_begin) * count + i * rows, step);
    }
  }
  for (int64_t e = 0; e < kEntries; ++e) {
    for (int64_t c = 0; c < s.c; c += plan.width) {
      const int64_t width = width_of(c);
      WeightTile tile{.x = inputs + (e * plan.padded + c) * count,
                      .pixel_step = width,
                      .row_step = 0,
                      .image_step = 0,
                      .dy = gradients + e * step,
                      .images = 1,
                      .rows = 1,
                      .columns = count,
                      .dw = nullptr,
                      .dw_step = s.c,
                      .channels = smaller(plan.width, s.c - c),
                      .add = add};
      for (int64_t block = first; block < last; ++block) {
        const int64_t k = plan.first_k(s, block), rows = plan.first_k(s, block + 1) - k;
        tile.dw = sums + (e * s.k + k) * s.c + c;
        run_weight_tile(tile, rows, width / kLanes);
        tile.dy += count * rows;
      }
    }
  }
}

}  // namespace

int64_t winograd_weights_scratch_floats(const ConvShape& s, int threads) {
  const Plan plan(s, Squares(s, 2).total, threads);
  return threads * plan.of_thread + plan.groups * kEntries * s.k * s.c;
}

void winograd_weights(ThreadPool& pool, const ConvShape& s, const float* x, const float* dy, Accumulate mode, float* dw,
                      float* scratch) {
  const Squares squares(s, 2);
  const Plan plan(s, squares.total, pool.size());
  const int64_t size = kEntries * s.k * s.c;
  float* sums = scratch + pool.size() * plan.of_thread;
  pool.parallel_for(plan.groups * plan.k_parts, [&](int64_t piece, int thread) {
    const int64_t group = piece / plan.k_parts, part = piece % plan.k_parts;
    const int64_t begin = plan.chunks * group / plan.groups, end = plan.chunks * (group + 1) / plan.groups;
    for (int64_t chunk = begin; chunk < end; ++chunk) {
      const int64_t from = chunk * plan.chunk;
      run_chunk(s, squares, plan, from, smaller(plan.chunk, squares.total - from), plan.k_blocks * part / plan.k_parts,
                plan.k_blocks * (part + 1) / plan.k_parts, x, dy, chunk > begin, sums + group * size,
                scratch + thread * plan.of_thread);
    }
  });

  const Put put = mode == Accumulate::add ? Put::add : Put::overwrite;
  pool.parallel_for(s.k, [&](int64_t k, int) {
    for_vectors(s.c, [&](int64_t c, auto lanes) {
      vf u[4][4], rows[4][3];
#pragma GCC unroll 16
      for (int64_t e = 0; e < kEntries; ++e) {
        const float* from = sums + (e * s.k + k) * s.c + c;
        vf sum = lanes.load(from);
        for (int64_t group = 1; group < plan.groups; ++group) {
          sum += lanes.load(from + group * size);
        }
        u[e / 4][e % 4] = sum;
      }
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i) {
        to_taps(u[i], rows[i]);
      }
#pragma GCC unroll 3
      for (int j = 0; j < 3; ++j) {
        const vf in[4] = {rows[0][j], rows[1][j], rows[2][j], rows[3][j]};
        vf out[3];
        to_taps(in, out);
#pragma GCC unroll 3
        for (int i = 0; i < 3; ++i) {
          lanes.put(dw + (k * 9 + i * 3 + j) * s.c + c, out[i], put);
        }
      }
    });
  });
}

}  // namespace gle::cpu::GLE_ISA
