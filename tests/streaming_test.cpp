// Results beyond the caches are stored past them where they fill whole lines (engine/cpu/lanes.h): the same kernel that
// writes them into lines which it shares with others must give the same bits.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <vector>

#include "tests/machines.h"
#include "tests/values.h"

namespace gle::test {
namespace {

constexpr int64_t kChannels = 64;
constexpr int64_t kImages = 16, kSide = 65;
constexpr Pool2dOptions kPool{.kernel_h = 3, .kernel_w = 3, .stride_h = 2, .stride_w = 2, .pad_h = 1, .pad_w = 1};
const Shape kShape{kImages, kSide, kSide, kChannels};
const Shape kRows{kImages * kSide * kSide, kChannels};
const Shape kPooled{kImages, 33, 33, kChannels};

class StreamingTest : public testing::TestWithParam<cpu::Isa> {
 protected:
  void SetUp() override {
    if (!cpu::supported(GetParam())) {
      GTEST_SKIP() << "this machine lacks the instructions";
    }
    backend_ = make_cpu_backend({.isa = GetParam(), .threads = 2, .library = false});
  }

  Tensor numbers(const Shape& shape, float seed) {
    std::vector<float> values(static_cast<size_t>(shape.elements()));
    for (size_t i = 0; i < values.size(); ++i) {
      values[i] = std::sin(seed + 0.37F * static_cast<float>(i % 100'003));
    }
    return tensor_of(*backend_, shape, values);
  }

  template <class Kernel>
  void same_bits(const Shape& shape, const Kernel& kernel) {
    ASSERT_GE(shape.elements(), int64_t{4} << 20) << "too small to be streamed";
    constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
    const Tensor streamed = filled(*backend_, shape, kNan);
    const Tensor stored = filled(*backend_, shape.with_channels(kChannels + 8), kNan).slice(0, kChannels);
    kernel(streamed);
    kernel(stored);
    EXPECT_EQ(read(*backend_, streamed), read(*backend_, stored));  // what nobody wrote is NaN and equals nothing
  }

  std::unique_ptr<Backend> backend_;
};

TEST_P(StreamingTest, Elementwise) {
  Backend& b = *backend_;
  const Tensor x = numbers(kShape, 1), z = numbers(kShape, 2), factor = numbers({1}, 3);
  same_bits(kShape, [&](const Tensor& y) { b.add(x, z, y); });
  same_bits(kShape, [&](const Tensor& y) { b.scale(3, x, {y}); });
  same_bits(kShape, [&](const Tensor& y) { b.scale_by(factor, x, {y}); });
  same_bits(kShape, [&](const Tensor& y) { b.activation_forward(x, {0.1F}, y); });
  same_bits(kShape, [&](const Tensor& y) { b.activation_backward(x, {0.1F}, z, {y}); });
  same_bits(kShape, [&](const Tensor& y) { b.dropout(x, 0.3F, {5, 6}, 0, {y}); });
}

TEST_P(StreamingTest, Rows) {
  Backend& b = *backend_;
  const Tensor x = numbers(kRows, 1), z = numbers(kRows, 2), norms = numbers({kRows[0]}, 3);
  same_bits(kRows, [&](const Tensor& y) { b.centre_rows(x, {y}); });
  same_bits(kRows, [&](const Tensor& y) { b.normalise_rows_forward(x, 0.1F, norms, y); });
  same_bits(kRows, [&](const Tensor& y) { b.normalise_rows_backward(x, norms, 0.1F, z, {y}); });
  same_bits(kRows, [&](const Tensor& y) { b.softmax_forward(x, y); });
  same_bits(kRows, [&](const Tensor& y) { b.softmax_backward(x, z, {y}); });
  same_bits(kRows, [&](const Tensor& y) { b.log_softmax_forward(x, y); });
  same_bits(kRows, [&](const Tensor& y) { b.log_softmax_backward(x, z, {y}); });

  std::vector<int32_t> classes(static_cast<size_t>(kRows[0]));
  for (size_t i = 0; i < classes.size(); ++i) {
    classes[i] = static_cast<int32_t>(i % kChannels);
  }
  const Tensor labels = labels_of(b, classes), sums = numbers({kRows[0], 2}, 4), loss = filled(b, {1}, 1);
  b.cross_entropy_forward(x, labels, 0.1F, sums, loss);
  same_bits(kRows, [&](const Tensor& y) { b.cross_entropy_backward(x, labels, 0.1F, sums, loss, {y}); });
}

TEST_P(StreamingTest, BatchNorm) {
  Backend& b = *backend_;
  const Tensor x = numbers(kShape, 1), dy = numbers(kShape, 2);
  const auto vector = [&](float seed) { return numbers({kChannels}, seed); };
  const Tensor mean = vector(3), inv_std = filled(b, {kChannels}, 1.5F), gamma = vector(4), beta = vector(5);
  const Tensor sums = numbers({2, kChannels}, 6), dgamma = vector(7), dbeta = vector(8);
  const int64_t rows = kRows[0];
  same_bits(kShape, [&](const Tensor& y) { b.batch_norm_forward(x, mean, inv_std, gamma, beta, kRelu, y); });
  for (const Statistics statistics : {Statistics::of_batch, Statistics::frozen}) {
    same_bits(kShape, [&](const Tensor& dx) {
      b.batch_norm_backward(x, mean, inv_std, gamma, beta, kRelu, statistics, dy, {dx}, {dgamma}, {dbeta});
    });
  }
  same_bits(kShape, [&](const Tensor& dx) {
    b.batch_norm_backward_data(x, mean, inv_std, gamma, beta, kRelu, dy, sums, rows, {dx});
  });
  same_bits(kShape, [&](const Tensor& dx) { b.moments_backward(x, sums, numbers({2, kChannels}, 9), rows, {dx}); });
}

TEST_P(StreamingTest, Pools) {
  Backend& b = *backend_;
  const Tensor x = numbers(kShape, 1), dy = numbers(kPooled, 2), y = numbers(kPooled, 3);
  const Tensor taps = b.new_tensor("taps", kPooled, DType::u8);
  b.max_pool_forward(x, kPool, y, taps);
  same_bits(kShape, [&](const Tensor& dx) { b.max_pool_backward(taps, kPool, dy, {dx}); });
  same_bits(kShape, [&](const Tensor& dx) { b.average_pool_backward(kPool, dy, {dx}); });
  const Tensor pooled = numbers({kImages, kChannels}, 4);
  const Tensor where = b.new_tensor("where", {kImages, kChannels}, DType::i32);
  b.global_pool_forward(x, 0.5F, pooled, where);
  same_bits(kShape, [&](const Tensor& dx) { b.global_pool_backward(where, 0.5F, pooled, {dx}); });
}

INSTANTIATE_TEST_SUITE_P(Isas, StreamingTest, testing::Values(cpu::Isa::baseline, cpu::Isa::avx2, cpu::Isa::avx512),
                         [](const auto& info) { return cpu::name_of(info.param); });

}  // namespace
}  // namespace gle::test
