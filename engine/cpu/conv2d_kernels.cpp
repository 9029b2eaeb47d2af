// Convolution forward and the gradient of its input, without im2col: both are runs of the tile kernel
// (tile_kernels.h) over a band of pixels. For a kernel larger than 1x1 the band's rows are first copied, padded with
// zeros and dense, to the thread's scratch, so that for every kernel row r the (s, c) range of a pixel is one
// contiguous run of s * c floats and borders cost nothing. 1x1 kernels read the input in place.
//
// The gradient of x is the convolution of dy with the kernel turned around. A stride cuts it in phases: the inputs
// (h, w) with the same ((h + pad_h) mod stride_h, (w + pad_w) mod stride_w) meet the same subset of the kernel, and
// among themselves form a convolution of stride 1. A phase without kernel elements has gradient 0.
//
// 3x3 kernels of stride 1 with enough channels go another way in both directions (conv2d_winograd.h).

#include "engine/cpu/conv2d_kernels.h"

#include "engine/cpu/conv2d_bands.h"
#include "engine/cpu/conv2d_winograd.h"
#include "engine/cpu/tile_kernels.h"

namespace gle::cpu::GLE_ISA {
namespace {

constexpr int64_t kBandPixels = 1024;       // pointers to this many pixels are kept on the stack
constexpr int64_t kBandFloats = 96 * 1024;  // of input read by one band: stays in the second-level cache
constexpr int64_t kSmallestBand = 96;       // pixels

// Output rows in a band, for rows of `pixels` outputs of which each reads `floats` more of the input: what the cache
// holds, but four bands to a thread if they do not get too small for that.
GLE_INLINE int64_t rows_per_band(int64_t total_rows, int64_t pixels, int64_t floats, int threads) {
  const int64_t for_threads = divide_up(total_rows, 4 * threads);
  const int64_t for_cache = smaller(kBandFloats / larger(floats, 1), kBandPixels / larger(pixels, 1));
  const int64_t least = divide_up(kSmallestBand, larger(pixels, 1));
  return larger(1, smaller(for_cache, larger(for_threads, least)));
}

// Pixels gathered until the stack array is full, then run through all blocks of channels.
struct Gather {
  Tile tile;
  ChannelBlocks blocks;
  int64_t first_block, last_block;
  int64_t count;
  const float* x[kBandPixels];
  float* y[kBandPixels];

  GLE_INLINE Gather(ChannelBlocks blocks, int64_t first_block, int64_t last_block)
      : blocks(blocks), first_block(first_block), last_block(last_block), count(0) {}
  GLE_INLINE void push(const float* from, float* to) {
    x[count] = from;
    y[count] = to;
    if (++count == kBandPixels) flush();
  }
  GLE_INLINE void flush() {
    if (count == 0) return;
    tile.x = x;
    tile.y = y;
    run_tiles(tile, count, blocks, first_block, last_block);
    count = 0;
  }
};

// Pieces of work: bands, and groups of channel blocks when there are too few bands for the threads.
struct Pieces {
  int64_t bands, groups, blocks;

  GLE_INLINE Pieces(int64_t bands, int64_t blocks, int threads)
      : bands(bands), groups(larger(1, smaller(blocks, divide_up(4 * threads, larger(bands, 1))))), blocks(blocks) {
    if (bands >= 2 * threads) groups = 1;
  }
  GLE_INLINE int64_t count() const { return bands * groups; }
  GLE_INLINE int64_t first_block(int64_t piece) const { return blocks * (piece % groups) / groups; }
  GLE_INLINE int64_t last_block(int64_t piece) const { return blocks * (piece % groups + 1) / groups; }
};

// ---- forward

struct Forward {
  bool in_place;    // x is read where it is, not from a padded copy
  int64_t columns;  // of the copied window
  Bands bands;

  GLE_INLINE int64_t window_rows(const ConvShape& s, int64_t rows) const { return (rows - 1) * s.stride_h + s.r; }
};

GLE_INLINE Forward plan_forward(const ConvShape& s, int threads) {
  const bool inside =
      s.pad_h == 0 && s.pad_w == 0 && (s.p - 1) * s.stride_h + s.r <= s.h && (s.q - 1) * s.stride_w + s.s <= s.w;
  const int64_t columns = (s.q - 1) * s.stride_w + s.s;
  return {inside && (s.s == 1 || s.x_pitch == s.c), columns,
          Bands(s.n, s.p, rows_per_band(s.n * s.p, s.q, columns * s.stride_h * s.c, threads))};
}

}  // namespace

int64_t conv2d_forward_packed_floats(const ConvShape& s) {
  return winograd_suits(s) ? winograd_packed_floats(winograd_side(s), s.c, s.k)
                           : s.r * s.s * s.c * ChannelBlocks{s.k}.padded();
}

void conv2d_forward_pack(ThreadPool& pool, const ConvShape& s, const float* w, float* packed) {
  if (winograd_suits(s)) {
    winograd_pack(pool, winograd_side(s), s.c, s.k, w, packed);
    return;
  }
  const ChannelBlocks blocks{s.k};
  const int64_t taps = s.r * s.s * s.c;
  pool.parallel_for(blocks.count, [&](int64_t block, int) {
    pack_columns(w + blocks.first(block) * taps, taps, taps, blocks.channels_in(block),
                 blocks.vectors_in(block) * kLanes, packed + blocks.first(block) * taps);
  });
}

int64_t conv2d_forward_scratch_floats(const ConvShape& s, int threads) {
  if (winograd_suits(s)) {
    return winograd_scratch_floats(s, threads);
  }
  const Forward f = plan_forward(s, threads);
  return f.in_place ? 0 : threads * f.bands.images * f.window_rows(s, f.bands.most_rows()) * f.columns * s.c;
}

void conv2d_forward(ThreadPool& pool, const ConvShape& s, const float* x, const float* packed, const float* bias,
                    float slope, float* y, float* scratch) {
  if (winograd_suits(s)) {
    winograd(pool, s, x, packed, bias, slope, Accumulate::overwrite, y, scratch);
    return;
  }
  const Forward f = plan_forward(s, pool.size());
  const int64_t per_thread = conv2d_forward_scratch_floats(s, pool.size()) / pool.size();
  const ChannelBlocks blocks{s.k};
  const Pieces pieces(f.bands.count(), blocks.count, pool.size());

  pool.parallel_for(pieces.count(), [&](int64_t piece, int thread) {
    const Bands::Band band = f.bands[piece / pieces.groups];
    Gather gather(blocks, pieces.first_block(piece), pieces.last_block(piece));
    gather.tile = {.x = nullptr,
                   .w = packed,
                   .rows = s.r,
                   .run = s.s * s.c,
                   .row_step = f.in_place ? s.w * s.x_pitch : f.columns * s.c,
                   .ahead = f.in_place ? s.stride_w * s.x_pitch : 0,
                   .y = nullptr,
                   .y_next = nullptr,
                   .first = 0,
                   .channels = 0,
                   .bias = bias,
                   .slope = slope,
                   .add = false};
    float* copy = scratch + thread * per_thread;
    for (int64_t n = band.image; n < band.image + band.images; ++n) {
      const float* from = x + (n * s.h + band.row * s.stride_h) * s.w * s.x_pitch;
      if (!f.in_place) {
        const int64_t rows = f.window_rows(s, band.rows);
        copy_window(x + n * s.h * s.w * s.x_pitch, s.h, s.w, s.c, s.x_pitch,
                    {band.row * s.stride_h - s.pad_h, rows, -s.pad_w, f.columns}, copy);
        from = copy;
        copy += rows * f.columns * s.c;
      }
      const int64_t pitch = f.in_place ? s.x_pitch : s.c;
      float* to = y + (n * s.p + band.row) * s.q * s.y_pitch;
      for (int64_t p = 0; p < band.rows; ++p) {
        const float* row = from + p * s.stride_h * gather.tile.row_step;
        for (int64_t q = 0; q < s.q; ++q, to += s.y_pitch) gather.push(row + q * s.stride_w * pitch, to);
      }
    }
    gather.flush();
  });
}

// ---- backward data

namespace {

// Inputs u = (h + pad_h) / stride_h by v = (w + pad_w) / stride_w, the same for all phases; the window of dy that they
// need reaches (kernel rows of the largest phase - 1) above and to the left.
struct BackwardData {
  bool in_place;
  int64_t first_u, first_v, columns_v;
  int64_t reach_h, reach_w, columns;  // of the copied window
  Bands bands;

  GLE_INLINE int64_t window_rows(int64_t rows) const { return rows + reach_h; }
};

GLE_INLINE BackwardData plan_backward_data(const ConvShape& s, int threads) {
  const int64_t first_u = s.pad_h / s.stride_h, first_v = s.pad_w / s.stride_w;
  const int64_t rows_u = (s.h - 1 + s.pad_h) / s.stride_h + 1 - first_u;
  const int64_t columns_v = (s.w - 1 + s.pad_w) / s.stride_w + 1 - first_v;
  const int64_t reach_h = divide_up(s.r, s.stride_h) - 1, reach_w = divide_up(s.s, s.stride_w) - 1;
  const bool in_place = s.r == 1 && s.s == 1 && s.pad_h == 0 && s.pad_w == 0 && rows_u <= s.p && columns_v <= s.q;
  return {in_place,
          first_u,
          first_v,
          columns_v,
          reach_h,
          reach_w,
          columns_v + reach_w,
          Bands(s.n, rows_u, rows_per_band(s.n * rows_u, columns_v, (columns_v + reach_w) * s.k, threads))};
}

// Kernel rows r = phase, phase + stride, ...
GLE_INLINE int64_t phase_taps(int64_t kernel, int64_t stride, int64_t phase) {
  return phase < kernel ? divide_up(kernel - phase, stride) : 0;
}

// The convolution of dy that gives the gradient of x, for stride 1.
GLE_INLINE ConvShape turned(const ConvShape& s) {
  return {.n = s.n,
          .h = s.p,
          .w = s.q,
          .c = s.k,
          .k = s.c,
          .r = s.r,
          .s = s.s,
          .p = s.h,
          .q = s.w,
          .stride_h = 1,
          .stride_w = 1,
          .pad_h = static_cast<int>(s.r) - 1 - s.pad_h,
          .pad_w = static_cast<int>(s.s) - 1 - s.pad_w,
          .x_pitch = s.y_pitch,
          .y_pitch = s.x_pitch};
}

}  // namespace

int64_t conv2d_backward_data_packed_floats(const ConvShape& s) {
  return winograd_suits(s) ? winograd_packed_floats(2, s.k, s.c) : s.r * s.s * s.k * ChannelBlocks{s.c}.padded();
}

// Phase after phase, each [block][its kernel rows, last first][its columns, last first][k][channels of the block].
void conv2d_backward_data_pack(ThreadPool& pool, const ConvShape& s, const float* w, float* packed) {
  if (winograd_suits(s)) {
    winograd_pack_turned(pool, s.k, s.c, w, packed);
    return;
  }
  const ChannelBlocks blocks{s.c};
  pool.parallel_for(blocks.count, [&](int64_t block, int) {
    const int64_t first = blocks.first(block), width = blocks.vectors_in(block) * kLanes;
    float* phase = packed;
    for (int64_t a = 0; a < s.stride_h; ++a) {
      for (int64_t b = 0; b < s.stride_w; ++b) {
        const int64_t rows = phase_taps(s.r, s.stride_h, a), columns = phase_taps(s.s, s.stride_w, b);
        float* to = phase + rows * columns * s.k * first;
        for (int64_t i = rows - 1; i >= 0; --i) {
          for (int64_t j = columns - 1; j >= 0; --j, to += s.k * width) {
            const int64_t tap = (a + i * s.stride_h) * s.s + b + j * s.stride_w;
            pack_rows(w + tap * s.c + first, s.r * s.s * s.c, s.k, blocks.channels_in(block), width, to);
          }
        }
        phase += rows * columns * s.k * blocks.padded();
      }
    }
  });
}

int64_t conv2d_backward_data_scratch_floats(const ConvShape& s, int threads) {
  if (winograd_suits(s)) {
    return winograd_scratch_floats(turned(s), threads);
  }
  const BackwardData f = plan_backward_data(s, threads);
  return f.in_place ? 0 : threads * f.bands.images * f.window_rows(f.bands.most_rows()) * f.columns * s.k;
}

void conv2d_backward_data(ThreadPool& pool, const ConvShape& s, const float* packed, const float* dy, Accumulate mode,
                          float* dx, float* scratch) {
  if (winograd_suits(s)) {
    winograd(pool, turned(s), dy, packed, nullptr, 1.0F, mode, dx, scratch);
    return;
  }
  const BackwardData f = plan_backward_data(s, pool.size());
  const int64_t per_thread = conv2d_backward_data_scratch_floats(s, pool.size()) / pool.size();
  const ChannelBlocks blocks{s.c};
  const Pieces pieces(f.bands.count(), blocks.count, pool.size());

  pool.parallel_for(pieces.count(), [&](int64_t piece, int thread) {
    const Bands::Band band = f.bands[piece / pieces.groups];
    const int64_t first_u = f.first_u + band.row, rows = f.window_rows(band.rows);
    float* copy = scratch + thread * per_thread;
    if (!f.in_place) {
      for (int64_t n = 0; n < band.images; ++n) {
        copy_window(dy + (band.image + n) * s.p * s.q * s.y_pitch, s.p, s.q, s.k, s.y_pitch,
                    {first_u - f.reach_h, rows, f.first_v - f.reach_w, f.columns}, copy + n * rows * f.columns * s.k);
      }
    }
    Gather gather(blocks, pieces.first_block(piece), pieces.last_block(piece));
    const float* panels = packed;
    for (int64_t a = 0; a < s.stride_h; ++a) {
      for (int64_t b = 0; b < s.stride_w; ++b) {
        const int64_t taps_h = phase_taps(s.r, s.stride_h, a), taps_w = phase_taps(s.s, s.stride_w, b);
        if (taps_h * taps_w == 0 && mode == Accumulate::add) continue;
        gather.tile = {.x = nullptr,
                       .w = panels,
                       .rows = taps_h,
                       .run = taps_w * s.k,
                       .row_step = f.columns * s.k,
                       .ahead = f.in_place ? s.y_pitch : 0,
                       .y = nullptr,
                       .y_next = nullptr,
                       .first = 0,
                       .channels = 0,
                       .bias = nullptr,
                       .slope = 1.0F,
                       .add = mode == Accumulate::add};
        const int64_t pitch = f.in_place ? s.y_pitch : s.k;
        for (int64_t n = 0; n < band.images; ++n) {
          const float* image =
              f.in_place ? dy + (band.image + n) * s.p * s.q * s.y_pitch : copy + n * rows * f.columns * s.k;
          for (int64_t i = 0; i < band.rows; ++i) {
            const int64_t h = (first_u + i) * s.stride_h + a - s.pad_h;
            if (h < 0 || h >= s.h) continue;
            const float* row =
                f.in_place ? image + (first_u + i) * s.q * pitch
                           : image + ((i + f.reach_h + 1 - taps_h) * f.columns + f.reach_w + 1 - taps_w) * pitch;
            float* to = dx + ((band.image + n) * s.h + h) * s.w * s.x_pitch;
            for (int64_t j = 0; j < f.columns_v; ++j) {
              const int64_t column = (f.first_v + j) * s.stride_w + b - s.pad_w;
              if (column >= 0 && column < s.w) gather.push(row + j * pitch, to + column * s.x_pitch);
            }
          }
        }
        gather.flush();
        panels += taps_h * taps_w * s.k * blocks.padded();
      }
    }
  });
}

}  // namespace gle::cpu::GLE_ISA
