// The bytes of device memory that each kernel asks for, counted by the emulator, against those that it must move: every
// input read once and every output written once. What is asked for twice within a launch comes from a cache if that is
// perfect: `distinct` counts it once. Prints the table of docs/cuda.md, with the time that the distinct bytes take at
// the bandwidth of two GPUs.
#include <gtest/gtest.h>

#include <cstdio>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "engine/cuda/cuda.h"
#include "fake_cuda/fake_cuda.h"
#include "simt/simt.h"
#include "tests/array.h"
#include "tests/device_watch.h"

namespace gle {

namespace {

constexpr double kA100 = 2039e9;  // bytes/s: A100 SXM 80 GB, H100 SXM
constexpr double kH100 = 3350e9;
// A feature map of BN-Inception at a batch of 54, on which the times are.
constexpr double kElements = 54.0 * 56 * 56 * 64;

class CudaTrafficTest : public testing::Test {
 protected:
  CudaTrafficTest() {
    test::watch_device();
    fake_cuda::reset({});
    simt::set_options({.order = simt::Order::random});
    backend_ = make_cuda_backend();
  }

  Tensor random(const Shape& shape) {
    const test::Array drawn = test::Draw(++drawn_).array(shape);
    const std::vector<float> values(drawn.values.begin(), drawn.values.end());
    const Tensor tensor = backend_->new_tensor("test", shape);
    backend_->upload(values.data(), tensor);
    return tensor;
  }
  Tensor zeros(const Shape& shape) {
    const Tensor tensor = backend_->new_tensor("test", shape);
    backend_->fill(0, tensor);
    return tensor;
  }
  Tensor bytes(const Shape& shape) { return filled(shape, DType::u8); }
  Tensor integers(const Shape& shape) { return filled(shape, DType::i32); }

  // `needed`: bytes an element, of `elements`. Fails if the kernel moves 5% more than `distinct` times that, or asks
  // for more than `asked` times.
  void expect(const char* name, double needed, int64_t elements, double distinct, double asked,
              const std::function<void()>& kernel) {
    backend_->synchronise();
    (void)simt::take_traffic();
    kernel();
    backend_->synchronise();
    double all = 0;
    double once = 0;
    for (const simt::Traffic& traffic : simt::take_traffic()) {
      all += static_cast<double>(traffic.loaded + traffic.stored) / static_cast<double>(elements);
      once += static_cast<double>(traffic.distinct_loaded + traffic.distinct_stored) / static_cast<double>(elements);
    }
    EXPECT_GE(once, 0.95 * needed) << name;
    EXPECT_LE(once, 1.05 * distinct * needed) << name;
    EXPECT_LE(all, 1.05 * asked * needed) << name;
    std::printf("| %s | %.1f | %.1f | %.1f |", name, needed, once, all);
    if (timed_) {
      std::printf(" %.3f | %.3f |", kElements * once / kA100 * 1e3, kElements * once / kH100 * 1e3);
    }
    std::printf("\n");
  }

  std::unique_ptr<Backend> backend_;
  bool timed_ = true;  // whether the kernel works on feature maps

 private:
  Tensor filled(const Shape& shape, DType type) {
    const Tensor tensor = backend_->new_tensor("test", shape, type);
    const std::vector<int32_t> zero(static_cast<size_t>(shape.elements()), 0);
    backend_->upload(zero.data(), tensor);
    return tensor;
  }

  uint64_t drawn_ = 0;
};

GradTarget over(const Tensor& t) { return {t, Accumulate::overwrite}; }
GradTarget add_to(const Tensor& t) { return {t, Accumulate::add}; }

TEST_F(CudaTrafficTest, Elementwise) {
  Backend& b = *backend_;
  const Tensor x = random({2, 14, 14, 64}), y = random(x.shape()), z = random(x.shape());
  const int64_t e = x.elements();
  const Tensor two = random({1});
  expect("fill", 4, e, 1, 1, [&] { b.fill(1, z); });
  expect("add", 12, e, 1, 1, [&] { b.add(x, y, z); });
  expect("scale", 8, e, 1, 1, [&] { b.scale(2, x, over(z)); });
  expect("scale, adding", 12, e, 1, 1, [&] { b.scale(2, x, add_to(z)); });
  expect("scale_by", 8, e, 1, 1.2, [&] { b.scale_by(two, x, over(z)); });
  expect("activation_forward", 8, e, 1, 1, [&] { b.activation_forward(x, kRelu, z); });
  expect("activation_backward", 12, e, 1, 1, [&] { b.activation_backward(y, kRelu, x, over(z)); });
  expect("dropout", 8, e, 1, 1, [&] { b.dropout(x, 0.5F, {1, 2}, 0, over(z)); });
  expect("all_finite", 4, e, 1, 1, [&] { (void)b.all_finite(x); });
  const Tensor pictures = bytes({4, 56, 56, 3}), numbers = zeros({4, 56, 56, 3}), erased = integers({4, 4});
  const int64_t values = pictures.elements();
  expect("images_from_bytes", 5, values, 1, 1, [&] { b.images_from_bytes(pictures, {}, Tensor(), numbers); });
  expect("images_from_bytes, erasing", 5, values, 1, 1.8, [&] { b.images_from_bytes(pictures, {}, erased, numbers); });
}

TEST_F(CudaTrafficTest, Rows) {
  Backend& b = *backend_;
  const Tensor x = random({54, 512}), y = random(x.shape()), z = random(x.shape()), norms = random({54});
  const Tensor sums = random({512}), loss = random({1}), labels = integers({54}), log_sums = random({54, 2});
  const int64_t e = x.elements();
  expect("column_sums", 4, e, 1.1, 1.1, [&] { b.column_sums(x, over(sums)); });
  expect("centre_rows", 8, e, 1, 1.5, [&] { b.centre_rows(x, over(z)); });
  expect("normalise_rows_forward", 8, e, 1, 1.5, [&] { b.normalise_rows_forward(x, 0.1F, norms, z); });
  expect("normalise_rows_backward", 12, e, 1, 1.9, [&] { b.normalise_rows_backward(x, norms, 0.1F, y, over(z)); });
  expect("softmax_forward", 8, e, 1, 2, [&] { b.softmax_forward(x, z); });
  expect("softmax_backward", 12, e, 1, 1.7, [&] { b.softmax_backward(y, x, over(z)); });
  expect("log_softmax_forward", 8, e, 1, 2, [&] { b.log_softmax_forward(x, z); });
  expect("log_softmax_backward", 12, e, 1, 1.4, [&] { b.log_softmax_backward(y, x, over(z)); });
  expect("cross_entropy_forward", 4, e, 1, 4, [&] { b.cross_entropy_forward(x, labels, 0.1F, log_sums, loss); });
  expect("cross_entropy_backward", 8, e, 1, 2,
         [&] { b.cross_entropy_backward(x, labels, 0.1F, log_sums, loss, over(z)); });
}

TEST_F(CudaTrafficTest, BatchNorm) {
  Backend& b = *backend_;
  const Tensor x = random({2, 14, 14, 64}), y = random(x.shape()), z = random(x.shape());
  const Tensor mean = random({64}), inv_std = zeros({64}), gamma = random({64}), beta = random({64});
  const Tensor running_mean = zeros({64}), running_var = zeros({64}), dgamma = random({64}), dbeta = random({64});
  const int64_t e = x.elements();
  b.fill(1, inv_std);
  expect("batch_norm_statistics", 4, e, 1.1, 1.3,
         [&] { b.batch_norm_statistics(x, 1e-5F, 0.1F, running_mean, running_var, mean, inv_std); });
  expect("batch_norm_forward", 8, e, 1, 3.1, [&] { b.batch_norm_forward(x, mean, inv_std, gamma, beta, kRelu, z); });
  expect("batch_norm_backward", 12, e, 1.7, 4, [&] {
    b.batch_norm_backward(x, mean, inv_std, gamma, beta, kRelu, Statistics::of_batch, y, over(z), over(dgamma),
                          over(dbeta));
  });
  const Tensor gradient_sums = zeros({2, 64});
  expect("batch_norm_backward_sums", 8, e, 1.1, 4, [&] {
    b.batch_norm_backward_sums(x, mean, inv_std, gamma, beta, kRelu, y, gradient_sums, over(dgamma), over(dbeta));
  });
  expect("batch_norm_backward_data", 12, e, 1, 4, [&] {
    b.batch_norm_backward_data(x, mean, inv_std, gamma, beta, kRelu, y, gradient_sums, 2 * x.rows(), over(z));
  });
}

// An element is one of the input's.
TEST_F(CudaTrafficTest, Pooling) {
  Backend& b = *backend_;
  const Pool2dOptions window{.kernel_h = 3, .kernel_w = 3, .stride_h = 2, .stride_w = 2, .rounding = Rounding::ceil};
  const Tensor x = random({2, 15, 15, 64}), dx = random(x.shape());
  const Tensor y = random({2, 7, 7, 64}), taps = bytes({2, 7, 7, 64});
  const Tensor row = random({2, 64}), where = integers({2, 64});
  const int64_t e = x.elements();
  const double outputs = static_cast<double>(y.elements()) / static_cast<double>(e);
  const double rows = static_cast<double>(row.elements()) / static_cast<double>(e);
  expect("max_pool_forward 3x3/2", 4 + 5 * outputs, e, 1, 2, [&] { b.max_pool_forward(x, window, y, taps); });
  expect("max_pool_backward 3x3/2", 4 + 5 * outputs, e, 1, 2.7,
         [&] { b.max_pool_backward(taps, window, y, over(dx)); });
  expect("average_pool_forward 3x3/2", 4 + 4 * outputs, e, 1, 1.8, [&] { b.average_pool_forward(x, window, y); });
  expect("average_pool_backward 3x3/2", 4 + 4 * outputs, e, 1, 2.4,
         [&] { b.average_pool_backward(window, y, over(dx)); });
  expect("global_pool_forward", 4 + 8 * rows, e, 1, 1, [&] { b.global_pool_forward(x, 0.5F, row, where); });
  expect("global_pool_backward", 4 + 8 * rows, e, 1, 3, [&] { b.global_pool_backward(where, 0.5F, row, over(dx)); });
}

TEST_F(CudaTrafficTest, Optimisers) {
  Backend& b = *backend_;
  const Tensor g = random({20000}), m = zeros({20000}), v = zeros({20000}), x = random({20000});
  expect("adam_step", 28, 20000, 1, 1, [&] { b.adam_step({.step_size = 0.1F}, g, m, v, x); });
  expect("momentum_step", 20, 20000, 1, 1, [&] { b.momentum_step({.step_size = 0.1F}, g, m, x); });
  expect("moving_average", 12, 20000, 1, 1, [&] { b.moving_average(0.9F, x, m); });
  expect("sum_of_squares", 4, 20000, 1, 1, [&] { (void)b.sum_of_squares(x); });
}

// The bias and activation after a convolution; the convolution itself is not counted.
TEST_F(CudaTrafficTest, Epilogue) {
  Backend& b = *backend_;
  const Tensor x = random({2, 14, 14, 4}), w = random({64, 1, 1, 4}), bias = random({64}), y = random({2, 14, 14, 64});
  expect("bias and activation", 8, y.elements(), 1, 1.5, [&] { b.conv2d_forward(x, w, bias, {}, kRelu, nullptr, y); });
}

// Kilobytes of a batch of 54 samples, 512 features and 100 classes, one refinement: everything is saved for backward.
TEST_F(CudaTrafficTest, GroupLoss) {
  constexpr int64_t kN = 54, kD = 512, kC = 100;
  Backend& b = *backend_;
  timed_ = false;
  const Tensor embeddings = random({kN, kD}), logits = random({kN, kC}), loss = random({1});
  const Tensor dembeddings = random({kN, kD}), dlogits = random({kN, kC});
  const GroupColumns batch{.targets = integers({kN}), .anchors = bytes({kN}), .columns = Tensor()};
  const GroupSaved saved{.similarities = zeros({kN, kN}),
                         .rows = zeros({3 * kN + 1}),
                         .iterates = zeros({2, kN, kC}),
                         .scales = zeros({2, kN}),
                         .inverse_sums = zeros({2, kN}),
                         .misses = zeros({kN})};
  const GroupRefinement options;
  const auto kilobytes = [](int64_t floats) { return static_cast<double>(floats) * sizeof(float) / 1000; };
  expect("group_loss_forward", kilobytes(kN * kD + kN * kC + kN * kN + 2 * kN * kC), 1000, 2.3, 12.3,
         [&] { b.group_loss_forward(embeddings, Tensor(), logits, batch, options, 1.0F / kN, saved, loss); });
  b.fill(1, loss);
  expect("group_loss_backward", kilobytes(2 * kN * kD + kN * kN + 2 * kN * kC + kN * kC), 1000, 1.5, 5.6, [&] {
    b.group_loss_backward(embeddings, Tensor(), batch, options, 1.0F / kN, saved, loss, over(dembeddings), {},
                          over(dlogits));
  });
}

// An element is a similarity.
TEST_F(CudaTrafficTest, PairLoss) {
  Backend& b = *backend_;
  timed_ = false;
  const Tensor s = random({54, 54}), ds = random({54, 54}), loss = random({1});
  std::vector<int32_t> numbers(54);
  std::iota(numbers.begin(), numbers.end(), 0);
  for (int32_t& label : numbers) {
    label /= 9;
  }
  const Tensor labels = backend_->new_tensor("labels", {54}, DType::i32);
  backend_->upload(numbers.data(), labels);
  expect("pair_loss, contrastive", 8, s.elements(), 6.1, 11, [&] {
    b.pair_loss(s, labels, labels, Pairs::of_batch, {.kind = PairLossKind::contrastive, .margin = 1}, loss, ds);
  });
  expect("pair_loss, multi-similarity", 8, s.elements(), 1.1, 8.5, [&] {
    b.pair_loss(
        s, labels, labels, Pairs::of_batch,
        {.kind = PairLossKind::multi_similarity, .margin = 0.1F, .scale = 2, .negative_scale = 40, .base = 0.5F}, loss,
        ds);
  });
}

}  // namespace

}  // namespace gle
