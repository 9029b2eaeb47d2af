#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "layers/elementwise.h"
#include "tests/machines.h"
#include "tests/values.h"

namespace gle {
namespace {

using test::filled;
using test::read;
using Floats = std::vector<float>;

class DropoutTest : public testing::Test {
 protected:
  Floats masked(uint64_t seed, uint64_t step, float probability = 0.5F) {
    Context ctx{.backend = backend_, .mode = Mode::training, .seed = seed, .step = step};
    return read(backend_, dropout(ctx, x_, probability).value());
  }

  Backend& backend_ = test::any_backend();
  Var x_{filled(backend_, {100, 1000}, 1)};
};

TEST_F(DropoutTest, DropsTheShareAskedForAndScalesTheRest) {
  for (const float p : {0.1F, 0.5F, 0.9F}) {
    const Floats y = masked(1, 2, p);
    const auto dropped = static_cast<double>(std::count(y.begin(), y.end(), 0.0F));
    const double deviation = std::sqrt(1e5 * p * (1 - p));
    EXPECT_NEAR(dropped, 1e5 * p, 4 * deviation);
    for (const float v : y) {
      ASSERT_TRUE(v == 0 || std::abs(v * (1 - p) - 1) < 1e-6);
    }
  }
}

TEST_F(DropoutTest, DropsEvenlyOverRowsAndChannels) {
  const Floats y = masked(1, 2);
  for (size_t c = 0; c < 4; ++c) {  // the words of one Philox block
    int64_t dropped = 0;
    for (size_t i = c; i < y.size(); i += 4) {
      dropped += y[i] == 0 ? 1 : 0;
    }
    EXPECT_NEAR(static_cast<double>(dropped), 12500, 350);
  }
}

TEST_F(DropoutTest, SameSeedAndStepGiveTheSameMask) {
  const Floats y = masked(1, 2);
  EXPECT_EQ(y, masked(1, 2));
  EXPECT_NE(y, masked(1, 3));
  EXPECT_NE(y, masked(2, 2));
}

TEST_F(DropoutTest, SeveralOfOneStepHaveMasksOfTheirOwn) {
  Context ctx{.backend = backend_, .mode = Mode::training};
  const Floats first = read(backend_, dropout(ctx, x_, 0.5F).value());
  const Floats second = read(backend_, dropout(ctx, x_, 0.5F).value());
  EXPECT_NE(first, second);
}

TEST_F(DropoutTest, BackwardHasTheMaskOfForward) {
  Tape tape(backend_);
  Context ctx{.backend = backend_, .tape = &tape, .mode = Mode::training, .seed = 3};
  const Var x = tape.leaf(x_.value());
  const Var y = dropout(ctx, x, 0.3F);
  const Floats forward = read(backend_, y.value());
  tape.backward(add(ctx, y, x), x_.value());
  Floats expected = forward;
  for (float& v : expected) {
    v += 1;
  }
  EXPECT_EQ(read(backend_, tape.gradient(x)), expected);
}

TEST_F(DropoutTest, InInferenceIsTheInputItself) {
  Context ctx{.backend = backend_};
  EXPECT_EQ(dropout(ctx, x_, 0.5F).value().data(), x_.value().data());
  EXPECT_EQ(ctx.random_streams, 0U);
  ctx.mode = Mode::training;
  EXPECT_EQ(dropout(ctx, x_, 0).value().data(), x_.value().data());
}

}  // namespace
}  // namespace gle
