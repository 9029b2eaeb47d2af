#include <gtest/gtest.h>

#include <cmath>

#include "tests/kernel_test.h"
#include "tests/reference/reference.h"
#include "tests/shapes.h"

namespace gle::test {

namespace {

constexpr PixelScale kScale{
    .shift = {123.675F, 116.28F, 103.53F}, .factor = {0.0171F, 0.0175F, 0.0174F}, .erased = -2.5F};

// A difference, rounded, times a factor, rounded: on every device.
void check_bits(Backend& backend) {
  for (const Shape& shape : {Shape{2, 9, 19, 3}, Shape{2, 16, 16, 3}}) {
    std::vector<uint8_t> bytes(static_cast<size_t>(shape.elements()));
    for (size_t i = 0; i < bytes.size(); ++i) {
      bytes[i] = static_cast<uint8_t>(i / 3);
    }
    const Tensor x = backend.new_tensor("test", shape, DType::u8);
    const Tensor y = backend.new_tensor("test", shape);
    backend.upload(bytes.data(), x);
    backend.images_from_bytes(x, kScale, Tensor(), y);
    std::vector<float> found(bytes.size());
    backend.download(y, found.data());
    for (size_t i = 0; i < bytes.size(); ++i) {
      const float difference = static_cast<float>(bytes[i]) - kScale.shift[i % 3];
      ASSERT_EQ(found[i], difference * kScale.factor[i % 3]) << "byte " << int{bytes[i]};
    }
  }
}

// Values an image that are and are not a multiple of four; rectangles of none, of all, at the edges and within.
Kernel images_from_bytes() {
  Kernel kernel{"images_from_bytes", {}, check_bits};
  Draw draw(60);
  for (const Shape& shape : {Shape{1, 1, 1, 3}, Shape{4, 5, 7, 3}, Shape{3, 8, 12, 3}, Shape{5, 19, 33, 3}}) {
    Array x = draw.array(shape);
    for (double& value : x.values) {
      value = std::floor(std::abs(value) * 1e4);
      value -= std::floor(value / 256) * 256;
    }
    x[0] = 255;
    x[1] = 0;
    Array erased({shape[0], 4});
    const auto height = static_cast<double>(shape[1]), width = static_cast<double>(shape[2]);
    const std::vector<std::vector<double>> rectangles = {{0, 0, 0, 0},
                                                         {0, 0, width, height},
                                                         {width - 1, height - 1, 1, 1},
                                                         {std::floor(width / 3), 1, std::floor(width / 2), height - 2}};
    for (int64_t n = 0; n < shape[0]; ++n) {
      for (int64_t i = 0; i < 4; ++i) {
        erased(n, i) = rectangles[static_cast<size_t>(n) % rectangles.size()][static_cast<size_t>(i)];
      }
    }
    for (const Array& of : {erased, Array()}) {
      kernel.cases.push_back({name_of(shape) + (of ? " with rectangles" : ""),
                              {{x, DType::u8, false}, {of, DType::i32, false}},
                              {{.expected = reference::images_from_bytes(x, kScale, of),
                                .sliceable = false,
                                .adds = false,
                                .tolerance = 1e-6}},
                              [=](Backend& b, KernelCase::Inputs in, KernelCase::Outputs out) {
                                b.images_from_bytes(in[0], kScale, in[1], out[0].grad);
                              }});
    }
  }
  return kernel;
}

}  // namespace

void add_image_kernels(std::vector<Kernel>& to) { to.push_back(images_from_bytes()); }

}  // namespace gle::test
