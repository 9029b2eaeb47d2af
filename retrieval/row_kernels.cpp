#include "retrieval/row_kernels.h"

#include "engine/cpu/lanes.h"
#include "engine/cpu/simd.h"

namespace gle::cpu::GLE_ISA {

namespace {

void to_distances(float norm, const float* norms, int64_t count, float* row) {
  const vf own = set1(norm);
  for_vectors(count, [&](int64_t i, const auto& lanes) {
    // Twice a number is exact, so that a fused multiply-add rounds as a product and a sum do.
    const vf distance = own + lanes.load(norms + i) - 2.0f * lanes.load(row + i);
    lanes.store(row + i, max(zero(), distance));
  });
}

// The lanes count; a row is shorter than 2^31.
template <class Counts>
GLE_INLINE int64_t count_where(const float* row, int64_t count, const Counts& counts) {
  vi sum = {}, sum2 = {};
  const vi one = set1i(1), none = {};
  int64_t i = 0;
  for (; i + 2 * kLanes <= count; i += 2 * kLanes) {
    sum += selecti(counts(load(row + i)), one, none);
    sum2 += selecti(counts(load(row + i + kLanes)), one, none);
  }
  sum += sum2;
  int64_t total = 0;
  for (int lane = 0; lane < kLanes; ++lane) {
    total += sum[lane];
  }
  for (; i < count; ++i) {
    total += selecti(counts(set1(row[i])), one, none)[0];
  }
  return total;
}

int64_t count_below(const float* row, int64_t count, float bound) {
  const vf limit = set1(bound);
  return count_where(row, count, [&](vf v) { return lt(v, limit); });
}

int64_t count_up_to(const float* row, int64_t count, float bound) {
  const vf limit = set1(bound);
  return count_where(row, count, [&](vf v) { return le(v, limit); });
}

// Most stretches of a row hold none: their minimum says so.
int64_t find_below(const float* row, int64_t count, float bound, int32_t* found) {
  constexpr int64_t kStretch = 8 * kLanes;
  int64_t number = 0;
  int64_t begin = 0;
  for (; begin + kStretch <= count; begin += kStretch) {
    vf least = load(row + begin);
    for (int64_t i = kLanes; i < kStretch; i += kLanes) {
      least = min(least, load(row + begin + i));
    }
    if (-horizontal_max(-least) >= bound) {
      continue;
    }
    for (int64_t i = begin; i < begin + kStretch; ++i) {
      found[number] = static_cast<int32_t>(i);
      number += row[i] < bound ? 1 : 0;
    }
  }
  for (; begin < count; ++begin) {
    if (row[begin] < bound) {
      found[number++] = static_cast<int32_t>(begin);
    }
  }
  return number;
}

float largest(const float* row, int64_t count) {
  vf most = set1(row[0]);
  for_vectors(count, [&](int64_t i, const auto& lanes) { most = max(most, lanes.keep(lanes.load(row + i), most)); });
  return horizontal_max(most);
}

int64_t smallest(const float* row, int64_t count) {
  vf least = set1(row[0]);
  for_vectors(count, [&](int64_t i, const auto& lanes) { least = min(least, lanes.keep(lanes.load(row + i), least)); });
  const float value = -horizontal_max(-least);
  int64_t i = 0;
  while (row[i] != value) {
    ++i;
  }
  return i;
}

void accumulate(const float* values, int64_t count, double* sum) {
  for (int64_t i = 0; i < count; ++i) {
    sum[i] += static_cast<double>(values[i]);
  }
}

}  // namespace

extern const RowKernels row_kernels;
const RowKernels row_kernels = {to_distances, count_below, count_up_to, find_below, smallest, largest, accumulate};

}  // namespace gle::cpu::GLE_ISA
