// What the table of cases in kernels/pool2d.cpp does not show: NaN and infinities.
#include "layers/pool2d.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/machines.h"
#include "tests/placed.h"
#include "tests/values.h"

namespace gle {
namespace {

using test::filled;
using test::read;

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

// A NaN anywhere in the window must come out: a diverged network may not look healthy behind a pooling layer.
TEST(MaxPool, NaNWins) {
  for (const test::Machine& machine : test::machines()) {
    Backend& backend = test::backend_of(machine, 2);
    Context ctx{.backend = backend};
    for (size_t place = 0; place < 4; ++place) {
      for (const int64_t channels : {1, 7, 37}) {
        std::vector<float> values(static_cast<size_t>(4 * channels), 5);
        values[place * static_cast<size_t>(channels)] = kNaN;
        const Var x(test::tensor_of(backend, {1, 2, 2, channels}, values));
        const Tensor taps = backend.new_tensor("test", {1, 1, 1, channels}, DType::u8);
        const Tensor y = filled(backend, {1, 1, 1, channels}, 0);
        backend.max_pool_forward(x.value(), {}, y, taps);
        EXPECT_TRUE(std::isnan(read(backend, y)[0])) << test::name_of(machine);
        EXPECT_EQ(taps.bytes()[0], place) << test::name_of(machine);
        EXPECT_TRUE(std::isnan(read(backend, max_pool(ctx, x, {}).value())[0]));
        EXPECT_TRUE(std::isnan(read(backend, global_pool(ctx, x, 1).value())[0])) << test::name_of(machine);
        if (channels > 1) {
          EXPECT_EQ(read(backend, y)[1], 5);
        }
      }
    }
  }
}

TEST(MaxPool, MinusInfinityIsANumberLikeAnyOther) {
  Backend& backend = test::any_backend();
  Tape tape(backend);
  Context ctx{.backend = backend, .tape = &tape, .mode = Mode::training};
  const Var x = tape.leaf(filled(backend, {1, 2, 2, 3}, -kInfinity));
  const Var y = max_pool(ctx, x, {.kernel_h = 2, .kernel_w = 2, .stride_h = 2, .stride_w = 2, .pad_h = 1, .pad_w = 1});
  EXPECT_EQ(read(backend, y.value()), std::vector<float>(12, -kInfinity));
  tape.backward(y, filled(backend, y.shape(), 1));
  EXPECT_EQ(read(backend, tape.gradient(x)), std::vector<float>(12, 1));
}

TEST(MaxPool, PaddingNeverWins) {
  Backend& backend = test::any_backend();
  Context ctx{.backend = backend};
  const Var x(filled(backend, {1, 3, 3, 2}, -7));
  const Var y = max_pool(ctx, x, {.kernel_h = 3, .kernel_w = 3, .stride_h = 1, .stride_w = 1, .pad_h = 1, .pad_w = 1});
  EXPECT_EQ(read(backend, y.value()), std::vector<float>(18, -7));
}

TEST(GlobalPool, MixesMaximumAndMean) {
  Backend& backend = test::any_backend();
  Context ctx{.backend = backend};
  const Var x(test::tensor_of(backend, {1, 2, 2, 1}, {1, 2, 3, 6}));
  EXPECT_EQ(read(backend, global_pool(ctx, x, 0).value()), std::vector<float>{3});
  EXPECT_EQ(read(backend, global_pool(ctx, x, 1).value()), std::vector<float>{6});
  EXPECT_EQ(read(backend, global_pool(ctx, x, 0.5F).value()), std::vector<float>{4.5F});
}

}  // namespace
}  // namespace gle
