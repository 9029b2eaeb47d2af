// The rows of op(a) are the pixels and the columns of op(b) the channels of the tile kernel (tile_kernels.h). k is cut
// into slices; for each, a block of op(b) is packed into panels of a few vectors that stay in the second-level cache
// while the rows of a pass over them. a is read in place, its transpose from a copy.
// The slices depend on k alone; how m and n are shared out changes no sum.

#include "engine/cpu/gemm_kernels.h"

#include "engine/cpu/tile_kernels.h"
#include "engine/cpu/whole_numbers.h"

namespace gle::cpu::GLE_ISA {
namespace {

constexpr int64_t kSlice = 512;                           // of k
constexpr int64_t kBlockRows = 240;                       // of op(a): with a slice of k, half of the second-level cache
constexpr int64_t kBlockFloats = 128 * 1024;              // of op(b), packed: the other half
constexpr int64_t kUnit = ChannelBlocks::kWide * kLanes;  // columns are shared out in multiples of this
constexpr int64_t kPad = 16;  // floats between the rows of the copy, against rows that share a cache set

struct Plan {
  bool copy_a;
  int64_t slices, slice;            // of k, and the longest
  int64_t row_parts, column_parts;  // pieces of work
  int64_t a_floats, b_floats;       // scratch of a thread
};

GLE_INLINE Plan make_plan(const GemmShape& s, int threads) {
  Plan p{};
  p.copy_a = s.transpose_a == Transpose::yes;
  p.slices = larger(1, divide_up(s.k, kSlice));
  p.slice = divide_up(s.k, p.slices);
  const int64_t columns = larger(4 * kUnit, smaller(kBlockFloats / larger(p.slice, 1), 4096) / kUnit * kUnit);
  const int64_t pieces = 4 * threads, units = divide_up(s.n, kUnit), tiles = divide_up(s.m, kMaxPixels);
  p.column_parts = divide_up(s.n, columns);
  p.row_parts = 1;
  if (p.column_parts < pieces) {
    if (s.m >= pieces * kBlockRows) {
      p.row_parts = divide_up(pieces, p.column_parts);
    } else {  // cutting the rows packs b once more for each part
      p.column_parts = larger(p.column_parts, smaller(units, pieces));
      if (p.column_parts < 2 * threads) p.row_parts = smaller(tiles, divide_up(pieces, p.column_parts));
    }
  }
  p.a_floats = p.copy_a ? smaller(kBlockRows, s.m) * (divide_up(p.slice, 16) * 16 + kPad) : 0;
  p.b_floats = divide_up(units, p.column_parts) * kUnit * p.slice;
  return p;
}

}  // namespace

int64_t gemm_scratch_floats(const GemmShape& s, int threads) {
  const Plan p = make_plan(s, threads);
  return threads * (p.a_floats + p.b_floats);
}

void gemm(ThreadPool& pool, const GemmShape& s, const float* a, const float* b, const float* bias, Accumulate mode,
          float* c, float* scratch) {
  const Plan plan = make_plan(s, pool.size());
  const int64_t units = divide_up(s.n, kUnit);

  pool.parallel_for(plan.column_parts * plan.row_parts, [&](int64_t piece, int thread) {
    const int64_t column_part = piece / plan.row_parts, row_part = piece % plan.row_parts;
    const int64_t first = units * column_part / plan.column_parts * kUnit;
    const int64_t last = smaller(s.n, units * (column_part + 1) / plan.column_parts * kUnit);
    const int64_t first_row = s.m * row_part / plan.row_parts, last_row = s.m * (row_part + 1) / plan.row_parts;
    const ChannelBlocks blocks{last - first};
    float* a_copy = scratch + thread * (plan.a_floats + plan.b_floats);
    float* b_panels = a_copy + plan.a_floats;

    for (int64_t slice = 0; slice < plan.slices; ++slice) {
      const int64_t k = s.k * slice / plan.slices, run = s.k * (slice + 1) / plan.slices - k;
      for (int64_t i = 0; i < blocks.count; ++i) {
        const int64_t column = first + blocks.first(i), width = blocks.vectors_in(i) * kLanes;
        float* panel = b_panels + blocks.first(i) * run;
        if (s.transpose_b == Transpose::yes) {
          pack_columns(b + column * s.ldb + k, s.ldb, run, blocks.channels_in(i), width, panel);
        } else {
          pack_rows(b + k * s.ldb + column, s.ldb, run, blocks.channels_in(i), width, panel);
        }
      }
      for (int64_t row = first_row; row < last_row; row += kBlockRows) {
        const int64_t rows = smaller(kBlockRows, last_row - row);
        const int64_t copied = divide_up(run, 16) * 16 + kPad;
        if (s.transpose_a == Transpose::yes) {
          pack_columns(a + k * s.lda + row, s.lda, rows, run, copied, a_copy);
        }
        const float* from[kBlockRows];
        float* to[kBlockRows];
        for (int64_t j = 0; j < rows; ++j) {
          from[j] = plan.copy_a ? a_copy + j * copied : a + (row + j) * s.lda + k;
          to[j] = c + (row + j) * s.ldc + first;
        }
        run_tiles({.x = from,
                   .w = b_panels,
                   .rows = 1,
                   .run = run,
                   .row_step = 0,
                   .ahead = plan.copy_a ? 0 : s.lda,
                   .y = to,
                   .y_next = nullptr,
                   .first = 0,
                   .channels = 0,
                   .bias = bias && slice == 0 ? bias + first : nullptr,
                   .slope = 1.0F,
                   .add = slice > 0 || mode == Accumulate::add},
                  rows, blocks, 0, blocks.count);
      }
    }
  });
}

}  // namespace gle::cpu::GLE_ISA
