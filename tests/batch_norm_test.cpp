// What the table of cases in ops/batch_norm.cpp does not show: running statistics, large means, folding over time.
#include "layers/batch_norm.h"

#include <gtest/gtest.h>

#include <cmath>

#include "layers/conv_batch_norm.h"
#include "tests/machines.h"
#include "tests/placed.h"
#include "tests/reference/reference.h"
#include "tests/values.h"

namespace gle {
namespace {

using test::Array;
using test::difference;
using test::Draw;
using test::filled;
using test::Layout;
using test::Placed;
using test::read;

std::vector<double> doubles(const std::vector<float>& values) { return {values.begin(), values.end()}; }

class BatchNormTest : public testing::Test {
 protected:
  void make_layer(int64_t channels) {
    layer_ = make_batch_norm(set_, "norm", channels);
    set_.allocate(backend_);
    backend_.fill(1, layer_.gamma->value);
    backend_.fill(2, layer_.running_var->value);
    backend_.fill(3, layer_.running_mean->value);
  }

  Backend& backend_ = test::any_backend();
  ParameterSet set_;
  BatchNorm layer_;
  Context training_{.backend = backend_, .mode = Mode::training};
  Context inference_{.backend = backend_};
};

TEST_F(BatchNormTest, TrainingMovesTheRunningStatistics) {
  make_layer(5);
  layer_.momentum = 0.25F;
  const Array x = Draw(1).array({3, 2, 2, 5}, 1, 4);
  const Var in(Placed(backend_, x, Layout::dense).tensor());
  const reference::BatchStatistics s = reference::batch_statistics(x);
  Array mean(Shape{5}, 3), variance(Shape{5}, 2);
  for (int step = 0; step < 3; ++step) {
    batch_norm(training_, in, layer_);
    mean = reference::add(reference::scale(mean, 0.75), reference::scale(s.mean, 0.25));
    variance = reference::add(reference::scale(variance, 0.75), reference::scale(s.unbiased_variance, 0.25));
    EXPECT_EQ(difference(doubles(read(backend_, layer_.running_mean->value)), mean.values, 1e-6), "");
    EXPECT_EQ(difference(doubles(read(backend_, layer_.running_var->value)), variance.values, 1e-6), "");
  }
}

TEST_F(BatchNormTest, FrozenAndInferenceLeaveTheRunningStatistics) {
  make_layer(5);
  const Var x(filled(backend_, {4, 5}, 7));
  batch_norm(inference_, x, layer_);
  layer_.frozen = true;
  batch_norm(training_, x, layer_);
  EXPECT_EQ(read(backend_, layer_.running_mean->value), std::vector<float>(5, 3));
  EXPECT_EQ(read(backend_, layer_.running_var->value), std::vector<float>(5, 2));
}

TEST_F(BatchNormTest, TrainedStatisticsNormaliseInInference) {
  make_layer(2);
  layer_.momentum = 1;
  const Array x = Draw(2).array({500, 2}, 10, 14);
  const Var in(Placed(backend_, x, Layout::dense).tensor());
  const std::vector<double> trained = doubles(read(backend_, batch_norm(training_, in, layer_).value()));
  const std::vector<double> inferred = doubles(read(backend_, batch_norm(inference_, in, layer_).value()));
  EXPECT_EQ(difference(inferred, trained, 2e-3), "");  // the two differ by unbiased against biased variance
}

// A mean of a thousand times the deviation: the textbook E[x^2] - E[x]^2 in single precision is all rounding here.
TEST_F(BatchNormTest, LargeMeansKeepTheirVariance) {
  make_layer(17);
  Array x = Draw(3).array({8, 16, 16, 17}, 998.25, 1001.75);
  const Var in(Placed(backend_, x, Layout::dense).tensor());
  const std::vector<double> y = doubles(read(backend_, batch_norm(training_, in, layer_).value()));
  const reference::BatchStatistics s = reference::batch_statistics(x);
  const Array expected = reference::batch_norm(x, s.mean, reference::inv_std(s.variance, 1e-5), Array(Shape{17}, 1),
                                               Array(Shape{17}, 0), kIdentity);
  EXPECT_EQ(difference(y, expected.values, 1e-4), "");
}

TEST_F(BatchNormTest, ConstantChannelsGiveBeta) {
  make_layer(3);
  backend_.fill(0.5F, layer_.beta->value);
  const Var y = batch_norm(training_, Var(filled(backend_, {64, 3}, 123.456F)), layer_);
  EXPECT_EQ(difference(doubles(read(backend_, y.value())), std::vector<double>(192, 0.5), 1e-5), "");
}

class FoldingTest : public BatchNormTest {
 protected:
  FoldingTest()
      : conv_(make_conv2d(set_, "conv", {.in = 2, .out = 3, .kernel_h = 3, .kernel_w = 3}, {1, 1, 1, 1}, true)) {
    make_layer(3);
    folded_ = ConvBatchNorm(conv_, layer_);
    Draw draw(4);
    backend_.upload(floats(draw.array({3, 3, 3, 2})).data(), conv_.weight->value);
    backend_.upload(floats(draw.array(Shape{3})).data(), conv_.bias->value);
  }

  static std::vector<float> floats(const Array& a) { return {a.values.begin(), a.values.end()}; }

  // Both forms on a picture of this size.
  void expect_equal(int64_t size, const char* when) {
    const Var x(Placed(backend_, Draw(5).array({2, size, size + 1, 2}), Layout::dense).tensor());
    const Var apart = batch_norm(inference_, conv2d(inference_, x, conv_), layer_, kRelu);
    const Var folded = conv_batch_norm(inference_, x, folded_, set_, kRelu);
    EXPECT_EQ(difference(doubles(read(backend_, folded.value())), doubles(read(backend_, apart.value())), 1e-5), "")
        << when;
  }

  Conv2d conv_;
  ConvBatchNorm folded_;
};

TEST_F(FoldingTest, FollowsTheParameters) {
  expect_equal(5, "at first");
  expect_equal(5, "from the cache");
  backend_.fill(0.5F, layer_.running_var->value);
  backend_.fill(2, layer_.gamma->value);
  set_.values_changed();
  expect_equal(5, "after a change");
}

TEST_F(FoldingTest, FollowsTheSizeOfThePicture) {
  for (const int64_t size : {5, 9, 2, 5, 24}) {
    expect_equal(size, "for another size");
  }
}

TEST_F(FoldingTest, FoldsOnceUntilTheParametersChange) {
  expect_equal(5, "at first");
  backend_.fill(5, layer_.gamma->value);  // without values_changed()
  const Var x(filled(backend_, {1, 4, 4, 2}, 1));
  const std::vector<float> stale = read(backend_, conv_batch_norm(inference_, x, folded_, set_, kIdentity).value());
  set_.values_changed();
  EXPECT_NE(read(backend_, conv_batch_norm(inference_, x, folded_, set_, kIdentity).value()), stale);
}

}  // namespace
}  // namespace gle
