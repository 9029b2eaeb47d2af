// What the tables of cases do not show: rows of zeros, logits that overflow, classes of no probability.
#include "layers/rows.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "losses/cross_entropy.h"
#include "tests/machines.h"
#include "tests/values.h"

namespace gle {
namespace {

using test::filled;
using test::labels_of;
using test::read;
using test::tensor_of;
using Floats = std::vector<float>;

class RowsTest : public testing::TestWithParam<test::Machine> {
 protected:
  void expect_finite(const Floats& values) {
    for (const float v : values) {
      ASSERT_TRUE(std::isfinite(v));
    }
  }
  Floats gradient(const Var& x, const Var& y) {
    tape_.backward(y, filled(backend_, y.shape(), 1));
    return read(backend_, tape_.gradient(x));
  }

  Backend& backend_ = test::backend_of(GetParam(), 2);
  Tape tape_{backend_};
  Context ctx_{.backend = backend_, .tape = &tape_, .mode = Mode::training};
};

TEST_P(RowsTest, NormalisingZerosGivesZerosAndSmallGradients) {
  for (const float beta : {0.0F, 0.004F}) {
    const Var x = tape_.leaf(filled(backend_, {3, 37}, 0));
    const Var y = normalise_rows(ctx_, x, beta);
    EXPECT_EQ(read(backend_, y.value()), Floats(111, 0));
    EXPECT_EQ(gradient(x, y), Floats(111, beta));
    tape_.clear();
  }
}

TEST_P(RowsTest, ANormBeyondFloatsShows) {
  const Var x = tape_.leaf(filled(backend_, {2, 16}, 1e20F));
  const Var y = normalise_rows(ctx_, x);
  const Floats values = read(backend_, y.value()), gradients = gradient(x, y);
  for (size_t i = 0; i < values.size(); ++i) {
    EXPECT_TRUE(std::isnan(values[i]) && std::isnan(gradients[i])) << i;
  }
}

TEST_P(RowsTest, NormalisingHugeAndTinyRowsGivesUnitRows) {
  for (const float size : {1e15F, 1e-9F}) {
    const Var x = tape_.leaf(filled(backend_, {2, 16}, size));
    const Var y = normalise_rows(ctx_, x);
    for (const float v : read(backend_, y.value())) {
      EXPECT_NEAR(v, 0.25, 1e-5);
    }
    expect_finite(gradient(x, y));
    tape_.clear();
  }
}

TEST_P(RowsTest, SoftmaxOfHugeLogitsIsOneHot) {
  const Var x = tape_.leaf(tensor_of(backend_, {2, 3}, {1e4F, -1e4F, 0, -1e4F, -1e4F, 1e4F}));
  const Var y = softmax(ctx_, x);
  EXPECT_EQ(read(backend_, y.value()), (Floats{1, 0, 0, 0, 0, 1}));
  EXPECT_EQ(gradient(x, y), Floats(6, 0));
}

TEST_P(RowsTest, SoftmaxRowsSumToOne) {
  Floats values(7 * 1000);
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>(i % 97) / 10;
  }
  const Var y = softmax(ctx_, Var(tensor_of(backend_, {7, 1000}, values)));
  const Floats p = read(backend_, y.value());
  for (size_t row = 0; row < 7; ++row) {
    EXPECT_NEAR(
        std::accumulate(p.begin() + static_cast<long>(row) * 1000, p.begin() + static_cast<long>(row + 1) * 1000, 0.0),
        1, 1e-5);
  }
}

TEST_P(RowsTest, LogSoftmaxOfHugeLogitsIsFinite) {
  const Var x = tape_.leaf(tensor_of(backend_, {1, 3}, {1e4F, -1e4F, 0}));
  const Var y = log_softmax(ctx_, x);
  EXPECT_EQ(read(backend_, y.value()), (Floats{0, -2e4F, -1e4F}));
  EXPECT_EQ(gradient(x, y), (Floats{-2, 1, 1}));
}

TEST_P(RowsTest, CrossEntropyOfHugeLogitsIsFinite) {
  for (const float smoothing : {0.0F, 0.1F}) {
    const Var x = tape_.leaf(tensor_of(backend_, {2, 2}, {1e4F, -1e4F, 1e4F, -1e4F}));
    const Var loss = cross_entropy(ctx_, x, labels_of(backend_, {0, 1}), smoothing);
    const float expected = 1e4F;  // half of (smoothing / 2 + 1 - smoothing / 2) * 2e4
    EXPECT_NEAR(read(backend_, loss.value())[0], expected, 0.1);
    const Floats g = gradient(x, loss);
    expect_finite(g);
    EXPECT_NEAR(g[2], 0.5F - smoothing / 4, 1e-6);
    EXPECT_NEAR(g[3], -0.5F + smoothing / 4, 1e-6);
    tape_.clear();
  }
}

TEST_P(RowsTest, CrossEntropyOfEqualLogitsIsLogOfClasses) {
  const Var x(filled(backend_, {5, 100}, 3));
  const Var loss = cross_entropy(ctx_, x, labels_of(backend_, {0, 1, 50, 98, 99}), 0.1F);
  EXPECT_NEAR(read(backend_, loss.value())[0], std::log(100.0), 1e-5);
}

INSTANTIATE_TEST_SUITE_P(All, RowsTest, testing::ValuesIn(test::machines()), [](const auto& info) {
  return std::string(cpu::name_of(info.param.isa)) + (info.param.library() ? "_library" : "");
});

}  // namespace
}  // namespace gle
