// dw[k,r,s,c] (+)= sum over n,p,q of dy[n,p,q,k] * x[n, p*stride_h + r - pad_h, q*stride_w + s - pad_w, c].
//
// A tile of dw, a few k by a few vectors of c for one (r, s), stays in registers while a chunk of pixels passes. Both
// operands are first copied so that the kernel reads them front to back: dy as [block of k][pixel][k of the block], x
// as a zero-padded window [row][column][vectors of c], which serves all (r, s) and all k. When c is small and fills
// vectors badly, all of (r, s, c) is copied for each pixel, and the kernel is a 1x1 kernel with that many channels.
//
// The sum runs over chunks in order, in a few groups that depend on the shape alone; the groups' sums are added in
// order at the end. Threads share out groups, and blocks of k and c, which changes no sum.
//
// Most 3x3 kernels of stride 1 go another way (conv2d_winograd.h).

#include "engine/cpu/conv2d_bands.h"
#include "engine/cpu/conv2d_kernels.h"
#include "engine/cpu/conv2d_winograd.h"
#include "engine/cpu/weight_tiles.h"

namespace gle::cpu::GLE_ISA {
namespace {

constexpr int64_t kChunkPixels = 400;
constexpr int64_t kGroupPixels = 3072;  // no group of fewer: adding the groups must stay cheap
constexpr int64_t kMostGroups = 8;
constexpr int64_t kSumPiece = 4096;  // floats of dw summed at a time

// dw as rows of k by `taps` runs of `run` floats, and the way the work is cut.
struct Plan {
  bool unrolled;             // a run is (r, s, c) and there is one tap; otherwise c and (r, s)
  bool pointwise;            // one tap: the window holds the outputs' pixels only
  int64_t run, taps, width;  // width: floats of a block of the run
  int64_t run_blocks, k_blocks;
  Bands chunks;  // of output rows
  int64_t window_columns;
  int64_t groups;                                  // of chunks
  int64_t run_parts, k_parts;                      // each group's blocks are cut in run_parts * k_parts pieces
  int64_t window_floats, dense_floats, dy_floats;  // scratch of a thread; dense is part of window

  GLE_INLINE int64_t window_rows(const ConvShape& s, int64_t rows) const {
    return pointwise ? rows : (rows - 1) * s.stride_h + s.r;
  }
  GLE_INLINE int64_t first_k(const ConvShape& s, int64_t block) const { return s.k * block / k_blocks; }
};

GLE_INLINE Plan make_plan(const ConvShape& s, int threads) {
  const int64_t vectors = s.r * s.s * divide_up(s.c, kLanes), vectors_unrolled = divide_up(s.r * s.s * s.c, kLanes);
  const bool unrolled = vectors_unrolled * 5 < vectors * 4;
  const bool pointwise = unrolled || s.r * s.s == 1;
  const int64_t run = unrolled ? s.r * s.s * s.c : s.c;
  const TileSize tile = tile_size(divide_up(run, kLanes));
  Plan p{.unrolled = unrolled,
         .pointwise = pointwise,
         .run = run,
         .taps = unrolled ? 1 : s.r * s.s,
         .width = tile.vectors * kLanes,
         .run_blocks = divide_up(run, tile.vectors * kLanes),
         .k_blocks = divide_up(s.k, tile.rows),
         .chunks = Bands(s.n, s.p, divide_up(kChunkPixels, larger(s.q, 1))),
         .window_columns = pointwise ? s.q : (s.q - 1) * s.stride_w + s.s,
         .groups = 1,
         .run_parts = 1,
         .k_parts = 1,
         .window_floats = 0,
         .dense_floats = 0,
         .dy_floats = 0};
  p.groups = smaller(p.chunks.count(), larger(1, smaller(kMostGroups, s.n * s.p * s.q / kGroupPixels)));
  const int64_t parts = divide_up(2 * threads, larger(p.groups, 1));
  if (p.groups < 2 * threads) {
    if (p.run * p.taps >= s.k) {  // cutting the runs copies dy once for each part, cutting k copies x
      p.run_parts = smaller(p.run_blocks, parts);
      p.k_parts = smaller(p.k_blocks, divide_up(parts, p.run_parts));
    } else {
      p.k_parts = smaller(p.k_blocks, parts);
      p.run_parts = smaller(p.run_blocks, divide_up(parts, p.k_parts));
    }
  }
  const int64_t window_pixels = p.chunks.images * p.window_rows(s, p.chunks.most_rows()) * p.window_columns;
  p.window_floats = window_pixels * p.width;
  if (unrolled) {
    p.dense_floats = ((p.chunks.most_rows() - 1) * s.stride_h + s.r) * ((s.q - 1) * s.stride_w + s.s) * s.c + kLanes;
    p.window_floats = window_pixels * divide_up(run, kLanes) * kLanes + kLanes + p.dense_floats;
  }
  p.dy_floats = divide_up(p.chunks.images * p.chunks.most_rows() * s.q * s.k + kLanes, 16) * 16;
  return p;
}

// dst[pixel][rows] of pixels `step` apart.
template <int Rows = kMostRows>
GLE_INLINE void copy_pixels(const float* from, int64_t step, int64_t pixels, int64_t rows, float* dst) {
  if (rows == Rows) {
    for (int64_t i = 0; i < pixels; ++i, from += step, dst += Rows) {
      __builtin_prefetch(from + 8 * step);
      std::memcpy(dst, from, Rows * sizeof(float));
    }
  } else if constexpr (Rows > 1) {
    copy_pixels<Rows - 1>(from, step, pixels, rows, dst);
  }
}

// All of the chunk's pixels, but of k only the blocks [first, last): dst[block][pixel][k of the block].
GLE_INLINE void pack_dy(const Plan& plan, const ConvShape& s, const float* dy, int64_t pixels, int64_t first,
                        int64_t last, float* dst) {
  for (int64_t block = first; block < last; ++block) {
    const int64_t k = plan.first_k(s, block), rows = plan.first_k(s, block + 1) - k;
    copy_pixels(dy + k, s.y_pitch, pixels, rows, dst);
    dst += pixels * rows;
  }
}

// One image's part of the chunk: dst[row][column][width], the channels [c, c + channels) and zeros up to width.
GLE_INLINE void pack_window(const ConvShape& s, const float* image, const Window& window, int64_t c, int64_t channels,
                            int64_t width, float* dst) {
  const int64_t left = smaller(larger(-window.column, 0), window.columns);
  const int64_t right = larger(left, smaller(window.columns, s.w - window.column));
  for (int64_t i = 0; i < window.rows; ++i, dst += window.columns * width) {
    const int64_t row = window.row + i;
    if (row < 0 || row >= s.h) {
      std::memset(dst, 0, sizeof(float) * static_cast<size_t>(window.columns * width));
      continue;
    }
    std::memset(dst, 0, sizeof(float) * static_cast<size_t>(left * width));
    pack_rows(image + (row * s.w + window.column + left) * s.x_pitch + c, s.x_pitch, right - left, channels, width,
              dst + left * width);
    std::memset(dst + right * width, 0, sizeof(float) * static_cast<size_t>((window.columns - right) * width));
  }
}

// The (r, s, c) of the pixels in `rows` rows of outputs, from a dense window: dst[row][column][width]. Vectors are
// written whole; what they write beyond a run is overwritten by the next one or belongs to channels that do not exist.
GLE_INLINE void unroll(const ConvShape& s, const float* dense, int64_t rows, int64_t columns, int64_t width,
                       float* dst) {
  for (int64_t p = 0; p < rows; ++p) {
    for (int64_t q = 0; q < s.q; ++q, dst += width) {
      const float* from = dense + (p * s.stride_h * columns + q * s.stride_w) * s.c;
      for (int64_t r = 0; r < s.r; ++r, from += columns * s.c) {
        for (int64_t i = 0; i < s.s * s.c; i += kLanes) store(dst + r * s.s * s.c + i, load(from + i));
      }
    }
  }
}

// Blocks [first_k, last_k) by [first_run, last_run) of one chunk.
struct Blocks {
  int64_t first_run, last_run, first_k, last_k;
};

GLE_INLINE void run_chunk(const Plan& plan, const ConvShape& s, const Bands::Band& chunk, const Blocks& blocks,
                          const float* x, const float* dy, bool add, float* dw, float* window, float* packed_dy) {
  const int64_t pixels = chunk.images * chunk.rows * s.q;
  pack_dy(plan, s, dy + (chunk.image * s.p + chunk.row) * s.q * s.y_pitch, pixels, blocks.first_k, blocks.last_k,
          packed_dy);

  const int64_t window_rows = plan.window_rows(s, chunk.rows);
  for (int64_t block = blocks.first_run; block < blocks.last_run; ++block) {
    const int64_t first = block * plan.width, channels = smaller(plan.width, plan.run - first);
    const int64_t vectors = divide_up(channels, kLanes);
    const int64_t width = plan.unrolled ? divide_up(plan.run, kLanes) * kLanes : vectors * kLanes;
    for (int64_t n = 0; n < chunk.images; ++n) {
      const float* image = x + (chunk.image + n) * s.h * s.w * s.x_pitch;
      float* to = window + n * window_rows * plan.window_columns * width;
      if (plan.unrolled) {
        if (block > blocks.first_run) continue;  // the first one has done it for all
        const Window all{chunk.row * s.stride_h - s.pad_h, (chunk.rows - 1) * s.stride_h + s.r, -s.pad_w,
                         (s.q - 1) * s.stride_w + s.s};
        float* dense = window + plan.window_floats - plan.dense_floats;
        copy_window(image, s.h, s.w, s.c, s.x_pitch, all, dense);
        unroll(s, dense, chunk.rows, all.columns, width, to);
      } else if (plan.pointwise && (s.stride_h > 1 || s.stride_w > 1)) {
        for (int64_t p = chunk.row; p < chunk.row + chunk.rows; ++p) {
          for (int64_t q = 0; q < s.q; ++q, to += width) {
            const Window pixel{p * s.stride_h - s.pad_h, 1, q * s.stride_w - s.pad_w, 1};
            pack_window(s, image, pixel, first, channels, width, to);
          }
        }
      } else {
        const Window part{chunk.row * s.stride_h - s.pad_h, window_rows, -s.pad_w, plan.window_columns};
        pack_window(s, image, part, first, channels, width, to);
      }
    }
    WeightTile tile{.x = nullptr,
                    .pixel_step = s.stride_w * width,
                    .row_step = s.stride_h * plan.window_columns * width,
                    .image_step = window_rows * plan.window_columns * width,
                    .dy = nullptr,
                    .images = chunk.images,
                    .rows = chunk.rows,
                    .columns = s.q,
                    .dw = nullptr,
                    .dw_step = s.r * s.s * s.c,
                    .channels = channels,
                    .add = add};
    if (plan.pointwise) tile.pixel_step = width, tile.images = 1, tile.rows = 1, tile.columns = pixels;
    for (int64_t tap = 0; tap < plan.taps; ++tap) {
      tile.x = window + (plan.unrolled ? first : (tap / s.s * plan.window_columns + tap % s.s) * width);
      tile.dy = packed_dy;
      for (int64_t i = blocks.first_k; i < blocks.last_k; ++i) {
        const int64_t k = plan.first_k(s, i), rows = plan.first_k(s, i + 1) - k;
        tile.dw = dw + k * tile.dw_step + tap * plan.run + first;
        run_weight_tile(tile, rows, vectors);
        tile.dy += pixels * rows;
      }
    }
  }
}

}  // namespace

int64_t conv2d_backward_weights_scratch_floats(const ConvShape& s, int threads) {
  if (winograd_suits_weights(s)) {
    return winograd_weights_scratch_floats(s, threads);
  }
  const Plan plan = make_plan(s, threads);
  const int64_t sums = plan.groups > 1 ? plan.groups * s.k * s.r * s.s * s.c : 0;
  return threads * (plan.window_floats + plan.dy_floats) + sums;
}

void conv2d_backward_weights(ThreadPool& pool, const ConvShape& s, const float* x, const float* dy, Accumulate mode,
                             float* dw, float* scratch) {
  if (winograd_suits_weights(s)) {
    winograd_weights(pool, s, x, dy, mode, dw, scratch);
    return;
  }
  const Plan plan = make_plan(s, pool.size());
  const int64_t size = s.k * s.r * s.s * s.c, chunks = plan.chunks.count();
  const bool one_group = plan.groups <= 1, add = mode == Accumulate::add;
  if (chunks == 0) {
    if (!add) std::memset(dw, 0, sizeof(float) * static_cast<size_t>(size));
    return;
  }
  float* sums = scratch + pool.size() * (plan.window_floats + plan.dy_floats);

  const int64_t parts = plan.run_parts * plan.k_parts;
  pool.parallel_for(plan.groups * parts, [&](int64_t piece, int thread) {
    const int64_t group = piece / parts, part = piece % parts;
    const int64_t run_part = part / plan.k_parts, k_part = part % plan.k_parts;
    const Blocks blocks{plan.run_blocks * run_part / plan.run_parts, plan.run_blocks * (run_part + 1) / plan.run_parts,
                        plan.k_blocks * k_part / plan.k_parts, plan.k_blocks * (k_part + 1) / plan.k_parts};
    float* window = scratch + thread * (plan.window_floats + plan.dy_floats);
    const int64_t begin = chunks * group / plan.groups, end = chunks * (group + 1) / plan.groups;
    for (int64_t chunk = begin; chunk < end; ++chunk) {
      run_chunk(plan, s, plan.chunks[chunk], blocks, x, dy, chunk > begin || (one_group && add),
                one_group ? dw : sums + group * size, window, window + plan.window_floats);
    }
  });
  if (one_group) return;

  pool.parallel_for(divide_up(size, kSumPiece), [&](int64_t piece, int) {
    const int64_t end = smaller(size, (piece + 1) * kSumPiece);
    for (int64_t i = piece * kSumPiece; i < end; i += kLanes) {
      const int64_t lanes = smaller(kLanes, end - i);
      vf sum = load_partial(sums + i, lanes);
      for (int64_t g = 1; g < plan.groups; ++g) sum += load_partial(sums + g * size + i, lanes);
      if (add) sum += load_partial(dw + i, lanes);
      store_partial(dw + i, sum, lanes);
    }
  });
}

}  // namespace gle::cpu::GLE_ISA
