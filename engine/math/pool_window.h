#pragma once

#include <cstdint>

#include "engine/math/hd.h"
#include "engine/options.h"

namespace gle {

// Pooling along one axis: `size` inputs with `pad` more on either side. The other axis is the same; areas are products.
struct PoolAxis {
  int64_t size, kernel, stride, pad;
};

GLE_HD static inline PoolAxis pool_rows(const Pool2dOptions& options, int64_t height) {
  return {height, options.kernel_h, options.stride_h, options.pad_h};
}

GLE_HD static inline PoolAxis pool_columns(const Pool2dOptions& options, int64_t width) {
  return {width, options.kernel_w, options.stride_w, options.pad_w};
}

// The inputs [begin, end) that output `out` sees. `start` is where its window begins, maybe on the padding; the first
// tap seen is begin - start. `padded` counts the taps up to the end of the padding on the far side: in ceil mode a
// window may reach beyond, and what lies there is never counted (PyTorch's avg_pool2d).
struct PoolWindow {
  int64_t start, begin, end, padded;
};

GLE_HD static inline PoolWindow pool_window(const PoolAxis& axis, int64_t out) {
  const int64_t start = out * axis.stride - axis.pad;
  const int64_t reach = start + axis.kernel < axis.size + axis.pad ? start + axis.kernel : axis.size + axis.pad;
  return {start, start > 0 ? start : 0, reach < axis.size ? reach : axis.size, reach - start};
}

// Average pooling divides by this along the one axis times this along the other.
GLE_HD static inline int64_t pool_length(const PoolWindow& window, Padding padding) {
  return padding == Padding::counted ? window.padded : window.end - window.begin;
}

// The outputs [begin, end), of `outputs`, whose windows see input `in`.
struct PoolCover {
  int64_t begin, end;
};

GLE_HD static inline PoolCover pool_cover(const PoolAxis& axis, int64_t outputs, int64_t in) {
  const int64_t place = in + axis.pad;
  const int64_t begin = place < axis.kernel ? 0 : (place - axis.kernel) / axis.stride + 1;
  const int64_t end = place / axis.stride + 1;
  return {begin, end < outputs ? end : outputs};
}

}  // namespace gle
