// Pictures from bytes: y = (x - shift[c]) * factor[c], a rectangle of each erased. An image is a row of map.h, so a
// thread knows its pixel's place once for all images. A difference times a factor cannot be fused: the bits are the
// CPU's.
//
// Bytes that must move, for e values of n images: 5e + 16n

#include "engine/cuda/cuda_backend.h"
#include "engine/cuda/map.h"

namespace gle::cuda {

namespace {

template <int kWidth>
__device__ inline Floats<kWidth> load_bytes(const uint8_t* p) {
  if constexpr (kWidth == 4) {
    const uint32_t word = *reinterpret_cast<const uint32_t*>(p);
    return each<4>([&](int i) { return static_cast<float>(word >> (8 * i) & 255U); });
  } else {
    return {{static_cast<float>(*p)}};
  }
}

struct FromBytes {
  const uint8_t* x;
  int64_t values;      // of an image
  int width;           // in pixels
  const int4* erased;  // or null
  PixelScale scale;

  // Chosen, not indexed: an array that is indexed would lie in local memory.
  __device__ static float of(int colour, const float (&list)[3]) {
    return colour == 0 ? list[0] : colour == 1 ? list[1] : list[2];
  }
  __device__ static bool within(int at, int begin, int length) {
    return static_cast<unsigned>(at - begin) < static_cast<unsigned>(length);
  }

  template <int kWidth>
  __device__ auto at(int64_t column) const {
    const auto first = static_cast<int>(column);
    const auto shift = each<kWidth>([&](int i) { return of((first + i) % 3, scale.shift); });
    const auto factor = each<kWidth>([&](int i) { return of((first + i) % 3, scale.factor); });
    return [this, first, shift, factor](int64_t image) {
      const auto v = load_bytes<kWidth>(x + image * values + first);
      auto y = each<kWidth>([&](int i) { return (v.at[i] - shift.at[i]) * factor.at[i]; });
      if (erased) {
        const int4 r = erased[image];
        for (int i = 0; i < kWidth; ++i) {
          const int pixel = (first + i) / 3;
          y.at[i] = within(pixel % width, r.x, r.z) && within(pixel / width, r.y, r.w) ? scale.erased : y.at[i];
        }
      }
      return y;
    };
  }
};

}  // namespace

void CudaBackend::images_from_bytes(const Tensor& x, const PixelScale& scale, const Tensor& erased, const Tensor& y) {
  const int64_t images = y.shape()[0];
  const int64_t values = y.elements() / images;
  const bool fours = values % 4 == 0 && reinterpret_cast<uintptr_t>(x.bytes()) % 4 == 0 && begin_in_fours({&y});
  map(at("images_from_bytes"), fours,
      FromBytes{x.bytes(), values, static_cast<int>(y.shape()[2]), reinterpret_cast<const int4*>(erased.ints()), scale},
      images, values, Out(y.data(), values));
}

}  // namespace gle::cuda
