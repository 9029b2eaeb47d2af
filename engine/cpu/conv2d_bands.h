#pragma once

// What the convolution kernels share: images cut into bands of output rows, and padded copies of their input.

#include <cstring>

#include "engine/cpu/whole_numbers.h"

namespace gle::cpu::GLE_ISA {

struct Bands {
  int64_t total_images, total_rows;
  int64_t images;     // in a band: more than one only when a band holds all rows of each
  int64_t per_image;  // bands that share the rows of an image: more than one only when images is 1

  struct Band {
    int64_t image, images, row, rows;
  };

  GLE_INLINE Bands(int64_t total_images, int64_t total_rows, int64_t rows_per_band)
      : total_images(total_images), total_rows(total_rows) {
    images = rows_per_band >= total_rows ? smaller(rows_per_band / larger(total_rows, 1), total_images) : 1;
    per_image = rows_per_band >= total_rows ? 1 : divide_up(total_rows, rows_per_band);
  }

  GLE_INLINE int64_t count() const { return images > 1 ? divide_up(total_images, images) : total_images * per_image; }
  GLE_INLINE int64_t most_rows() const { return divide_up(total_rows, per_image); }
  GLE_INLINE Band operator[](int64_t i) const {
    if (per_image == 1) return {i * images, smaller(images, total_images - i * images), 0, total_rows};
    const int64_t begin = total_rows * (i % per_image) / per_image, end = total_rows * (i % per_image + 1) / per_image;
    return {i / per_image, 1, begin, end - begin};
  }
};

// A window of one image, copied to a dense [rows, columns, c]; outside of the image it is 0.
struct Window {
  int64_t row, rows, column, columns;
};

GLE_INLINE void copy_window(const float* image, int64_t h, int64_t w, int64_t c, int64_t pitch, const Window& window,
                            float* dst) {
  const int64_t left = smaller(larger(-window.column, 0), window.columns);
  const int64_t right = larger(left, smaller(window.columns, w - window.column));
  for (int64_t i = 0; i < window.rows; ++i, dst += window.columns * c) {
    const int64_t row = window.row + i;
    if (row < 0 || row >= h) {
      std::memset(dst, 0, sizeof(float) * static_cast<size_t>(window.columns * c));
      continue;
    }
    std::memset(dst, 0, sizeof(float) * static_cast<size_t>(left * c));
    const float* src = image + (row * w + window.column) * pitch;
    if (pitch == c) {
      std::memcpy(dst + left * c, src + left * c, sizeof(float) * static_cast<size_t>((right - left) * c));
    } else {
      for (int64_t j = left; j < right; ++j) {
        std::memcpy(dst + j * c, src + j * pitch, sizeof(float) * static_cast<size_t>(c));
      }
    }
    std::memset(dst + right * c, 0, sizeof(float) * static_cast<size_t>((window.columns - right) * c));
  }
}

}  // namespace gle::cpu::GLE_ISA
