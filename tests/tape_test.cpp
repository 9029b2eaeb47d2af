#include "engine/tape.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "engine/context.h"
#include "layers/elementwise.h"
#include "layers/rows.h"
#include "tests/expect_error.h"
#include "tests/machines.h"
#include "tests/values.h"

namespace gle {
namespace {

using test::filled;
using test::read;
using test::tensor_of;
using Floats = std::vector<float>;

class TapeTest : public testing::Test {
 protected:
  // Every test starts on memory full of NaN: a gradient that nobody wrote shows.
  TapeTest() : backend_(make_cpu_backend({.threads = 2, .library = false})) {
    filled(*backend_, {1 << 20}, std::numeric_limits<float>::quiet_NaN());
  }

  Floats gradient(const Var& leaf) { return read(*backend_, tape_.gradient(leaf)); }
  Tensor ones(const Shape& shape) { return filled(*backend_, shape, 1); }
  size_t live() { return backend_->allocator().statistics().live; }

  std::unique_ptr<Backend> backend_;
  Tape tape_{*backend_};
  Context ctx_{.backend = *backend_, .tape = &tape_, .mode = Mode::training};
};

TEST_F(TapeTest, GradientOfAChain) {
  const Var x = tape_.leaf(tensor_of(*backend_, {2, 2}, {1, -2, 3, -4}));
  const Var y = scale(ctx_, activation(ctx_, x, kRelu), 3);
  tape_.backward(y, ones({2, 2}));
  EXPECT_EQ(gradient(x), (Floats{3, 0, 3, 0}));
}

TEST_F(TapeTest, SingleNumberNeedsNoCotangent) {
  const Var x = tape_.leaf(ones({1}));
  tape_.backward(scale(ctx_, x, -2));
  EXPECT_EQ(gradient(x), Floats{-2});
}

TEST_F(TapeTest, ReuseAddsUp) {
  const Var x = tape_.leaf(ones({1, 3}));
  const Var sum = add(ctx_, scale(ctx_, x, 2), add(ctx_, scale(ctx_, x, 3), x));
  tape_.backward(sum, ones({1, 3}));
  EXPECT_EQ(gradient(x), (Floats{6, 6, 6}));
}

TEST_F(TapeTest, SameInputTwiceInOneOp) {
  const Var x = tape_.leaf(ones({2, 1}));
  tape_.backward(add(ctx_, x, x), ones({2, 1}));
  EXPECT_EQ(gradient(x), (Floats{2, 2}));
}

TEST_F(TapeTest, SlicesConcatenate) {
  const Var a = tape_.leaf(ones({2, 2}));
  const Var b = tape_.leaf(ones({2, 1}));
  const Var wide = ctx_.new_var("concatenate", {2, 3});
  scale(ctx_, a, 2, wide.slice(0, 2));
  scale(ctx_, b, 3, wide.slice(2, 3));
  EXPECT_EQ(read(*backend_, wide.value()), (Floats{2, 2, 3, 2, 2, 3}));
  tape_.backward(scale(ctx_, wide, 10), tensor_of(*backend_, {2, 3}, {1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(gradient(a), (Floats{20, 40, 80, 100}));
  EXPECT_EQ(gradient(b), (Floats{90, 180}));
}

TEST_F(TapeTest, ChannelsThatNothingReadGetZero) {
  const Var a = tape_.leaf(ones({1, 2}));
  const Var b = tape_.leaf(ones({1, 2}));
  const Var wide = ctx_.new_var("concatenate", {1, 4});
  scale(ctx_, a, 2, wide.slice(0, 2));
  scale(ctx_, b, 3, wide.slice(2, 4));
  tape_.backward(scale(ctx_, wide.slice(1, 3), 5), ones({1, 2}));
  EXPECT_EQ(gradient(a), (Floats{0, 10}));
  EXPECT_EQ(gradient(b), (Floats{15, 0}));
}

TEST_F(TapeTest, OverlappingReadsOfAConcatenation) {
  const Var a = tape_.leaf(ones({1, 5}));
  const Var wide = ctx_.new_var("wide", {1, 5});
  scale(ctx_, a, 1, wide);
  const Var left = scale(ctx_, wide.slice(0, 3), 1);
  const Var right = scale(ctx_, wide.slice(2, 5), 10);
  const Var sum = add(ctx_, left, right);
  const Var all = scale(ctx_, wide, 100);
  const Var total = ctx_.new_var("total", {1, 8});
  scale(ctx_, sum, 1, total.slice(0, 3));
  scale(ctx_, all, 1, total.slice(3, 8));
  tape_.backward(total, ones({1, 8}));
  EXPECT_EQ(gradient(a), (Floats{101, 101, 111, 110, 110}));
}

TEST_F(TapeTest, OverlappingReadsWithoutTheWhole) {
  const Var a = tape_.leaf(ones({2, 5}));
  const Var wide = ctx_.new_var("wide", {2, 5});
  scale(ctx_, a, 1, wide);
  const Var left = scale(ctx_, wide.slice(0, 3), 1);
  const Var right = scale(ctx_, wide.slice(2, 5), 10);
  tape_.backward(add(ctx_, left, right), ones({2, 3}));
  EXPECT_EQ(gradient(a), (Floats{1, 1, 11, 10, 10, 1, 1, 11, 10, 10}));
}

// Dense blocks read growing prefixes of one buffer; each prefix is written part by part in backward.
TEST_F(TapeTest, GrowingPrefixesOfOneBuffer) {
  const Var x = tape_.leaf(ones({1, 2}));
  const Var wide = ctx_.new_var("block", {1, 8});
  scale(ctx_, x, 1, wide.slice(0, 2));
  for (int64_t begin = 2; begin < 8; begin += 2) {
    scale(ctx_, wide.slice(begin - 2, begin), 2, wide.slice(begin, begin + 2));
  }
  EXPECT_EQ(read(*backend_, wide.value()), (Floats{1, 1, 2, 2, 4, 4, 8, 8}));
  tape_.backward(wide, ones({1, 8}));
  EXPECT_EQ(gradient(x), (Floats{15, 15}));
}

TEST_F(TapeTest, LeafReadInPartHasZeroElsewhere) {
  const Var x = tape_.leaf(ones({2, 4}));
  tape_.backward(scale(ctx_, x.slice(1, 3), 2), ones({2, 2}));
  EXPECT_EQ(gradient(x), (Floats{0, 2, 2, 0, 0, 2, 2, 0}));
}

TEST_F(TapeTest, LeafThatNothingUsesHasNoGradient) {
  const Var x = tape_.leaf(ones({1}));
  const Var unused = tape_.leaf(ones({1}));
  const Var aside = tape_.leaf(ones({1}));
  scale(ctx_, aside, 2);
  tape_.backward(scale(ctx_, x, 2));
  EXPECT_TRUE(tape_.gradient(x));
  EXPECT_FALSE(tape_.gradient(unused));
  EXPECT_FALSE(tape_.gradient(aside));
}

TEST_F(TapeTest, OpsOfConstantsAreNotKept) {
  const Var x = ctx_.new_var("constant", {100000});
  const size_t before = live();
  const Var y = activation(ctx_, x, kRelu);
  EXPECT_EQ(tape_.size(), 0U);
  EXPECT_FALSE(tape_.needs_gradient(y));
  EXPECT_EQ(live(), before + 400000);
}

TEST_F(TapeTest, NothingToDoIsAnError) {
  const Var constant(ones({1}));
  EXPECT_ERROR(tape_.backward(constant), ErrorCode::usage, {"backward", "does not depend"});
  const Var y = scale(ctx_, ctx_.new_var("constant", {1}), 2);
  EXPECT_ERROR(tape_.backward(y), ErrorCode::usage, {"backward", "does not depend"});
}

TEST_F(TapeTest, WrongCotangentsAreErrors) {
  const Var y = scale(ctx_, tape_.leaf(ones({2, 3})), 2);
  EXPECT_ERROR(tape_.backward(y), ErrorCode::usage, {"backward", "single number", "[2,3]"});
  EXPECT_ERROR(tape_.backward(y, ones({3, 2})), ErrorCode::usage, {"backward", "cotangent", "[3,2]", "[2,3]"});
  EXPECT_ERROR(tape_.backward(y, backend_->new_tensor("bytes", {2, 3}, DType::u8)), ErrorCode::usage,
               {"backward", "floats"});
}

TEST_F(TapeTest, OnlyLeavesKeepGradients) {
  const Var x = tape_.leaf(ones({1}));
  const Var y = scale(ctx_, x, 2);
  EXPECT_ERROR(tape_.gradient(y), ErrorCode::usage, {"gradient", "leaves"});
  EXPECT_ERROR(tape_.gradient(Var(ones({1}))), ErrorCode::usage, {"gradient", "leaves"});
}

TEST_F(TapeTest, BackwardFreesAsItGoes) {
  constexpr int64_t kSize = 1 << 16;
  constexpr size_t kBytes = kSize * 4;
  std::vector<size_t> seen;
  const Var x = tape_.leaf(ones({1, kSize}));
  Var y = x;
  for (int i = 0; i < 10; ++i) {
    const Var in = y;
    y = ctx_.new_var("probe", in.shape());
    ctx_.backend.scale(1, in.value(), {y.value()});
    ctx_.record("probe", {in}, y, [&, saved = in.value()](Backend& b, const Tensor& dy, GradTargets to) {
      seen.push_back(live());
      b.scale(1, dy, to[0]);
    });
  }
  tape_.backward(y, ones({1, kSize}));
  ASSERT_EQ(seen.size(), 10U);
  for (size_t i = 2; i < seen.size(); ++i) {
    EXPECT_EQ(seen[i], seen[i - 1] - kBytes) << "step " << i;
  }
  EXPECT_EQ(live(), 3 * kBytes);  // x, its gradient, and y that this test holds
  tape_.clear();
  EXPECT_EQ(live(), 2 * kBytes);
}

TEST_F(TapeTest, LeafGradientsLastUntilClear) {
  const Var x = tape_.leaf(ones({1}));
  tape_.backward(scale(ctx_, x, 4));
  EXPECT_EQ(tape_.size(), 0U);
  EXPECT_EQ(gradient(x), Floats{4});
  tape_.clear();
  const Var again = tape_.leaf(ones({1}));
  EXPECT_FALSE(tape_.gradient(again));
  tape_.backward(scale(ctx_, again, 5));
  EXPECT_EQ(gradient(again), Floats{5});
}

TEST_F(TapeTest, ClearForgetsWhatWasRecorded) {
  const size_t before = live();
  {
    const Var x = tape_.leaf(ones({1000}));
    activation(ctx_, scale(ctx_, x, 2), kRelu);
  }
  EXPECT_GT(live(), before);
  tape_.clear();
  EXPECT_EQ(live(), before);
  EXPECT_EQ(tape_.size(), 0U);
}

TEST_F(TapeTest, AVarOfAnotherPassOrTapeIsAnError) {
  const Var old = tape_.leaf(ones({2}));
  tape_.clear();
  const Var now = tape_.leaf(ones({2}));
  EXPECT_ERROR(scale(ctx_, old, 2), ErrorCode::usage, {"another tape", "[2]"});
  Tape other(*backend_);
  EXPECT_ERROR(scale(ctx_, other.leaf(ones({2})), 2), ErrorCode::usage, {"another tape"});
  EXPECT_ERROR(add(ctx_, now, old), ErrorCode::usage, {"another tape"});
  EXPECT_EQ(tape_.size(), 0U);
  EXPECT_ERROR(activation(ctx_, now, kRelu, Var(ones({2}))), ErrorCode::usage, {"activation", "the tape that records"});
  tape_.backward(add(ctx_, now, Var(old.value())), ones({2}));
  EXPECT_EQ(gradient(now), (Floats{1, 1}));
}

TEST_F(TapeTest, AVarFromBeforeBackwardIsAnError) {
  ParameterSet set;
  Parameter& p = set.add("p", {1});
  set.allocate(*backend_);
  const Var x = tape_.leaf(ones({1})), w = ctx_.parameter(p);
  const Var y = add(ctx_, scale(ctx_, x, 2), scale(ctx_, w, 3));
  tape_.backward(y);
  EXPECT_ERROR(tape_.backward(y), ErrorCode::usage, {"before backward()"});
  EXPECT_ERROR(scale(ctx_, w, 4), ErrorCode::usage, {"before backward()"});
  tape_.backward(scale(ctx_, x, 4));
  EXPECT_EQ(gradient(x), Floats{6});
  EXPECT_EQ(read(*backend_, p.grad), Floats{3});
}

TEST_F(TapeTest, AnOpThatWouldOverwriteItsInputIsAnError) {
  const Var x = tape_.leaf(ones({2, 4}));
  const Var h = scale(ctx_, x, 2);
  EXPECT_ERROR(scale(ctx_, h, 3, h), ErrorCode::usage, {"scale", "overwrite its input", "[2,4]"});
  EXPECT_ERROR(scale(ctx_, h.slice(0, 2), 3, h.slice(1, 3)), ErrorCode::usage, {"overwrite its input"});
  EXPECT_EQ(read(*backend_, h.value()), Floats(8, 2));
}

TEST_F(TapeTest, AnOpThatWouldOverwriteTheOutputOfAnotherIsAnError) {
  const Var x = tape_.leaf(ones({2, 4}));
  const Var h = scale(ctx_, x, 2);
  EXPECT_ERROR(scale(ctx_, h.slice(0, 2), 3, h.slice(2, 4)), ErrorCode::usage, {"scale", "that of another op"});
  const Var wide = ctx_.new_var("test", {2, 4});
  scale(ctx_, x.slice(0, 2), 2, wide.slice(0, 2));
  EXPECT_ERROR(scale(ctx_, x.slice(0, 2), 3, wide.slice(1, 3)), ErrorCode::usage, {"that of another op"});
  scale(ctx_, wide.slice(0, 2), 5, wide.slice(2, 4));
  tape_.backward(scale(ctx_, wide, 1), ones({2, 4}));
  EXPECT_EQ(gradient(x), (Floats{12, 12, 0, 0, 12, 12, 0, 0}));
}

TEST_F(TapeTest, BackwardFromALeafAddsToItsGradient) {
  const Var x = tape_.leaf(ones({1}));
  tape_.backward(scale(ctx_, x, 4));
  tape_.backward(x);
  EXPECT_EQ(gradient(x), Floats{5});
}

TEST_F(TapeTest, ParameterGradientsOverwriteThenAdd) {
  ParameterSet set;
  Parameter& p = set.add("p", {2});
  set.allocate(*backend_);
  backend_->fill(std::numeric_limits<float>::quiet_NaN(), p.grad);
  const auto pass = [&](float factor) {
    tape_.clear();
    tape_.backward(scale(ctx_, ctx_.parameter(p), factor), ones({2}));
  };
  pass(3);
  EXPECT_EQ(read(*backend_, p.grad), (Floats{3, 3}));
  pass(4);
  EXPECT_EQ(read(*backend_, p.grad), (Floats{7, 7}));
  set.clear_gradients();
  pass(5);
  EXPECT_EQ(read(*backend_, p.grad), (Floats{5, 5}));
  tape_.clear();
}

TEST_F(TapeTest, ParameterUsedTwiceInOnePassAdds) {
  ParameterSet set;
  Parameter& p = set.add("p", {2});
  set.allocate(*backend_);
  tape_.backward(add(ctx_, ctx_.parameter(p), scale(ctx_, ctx_.parameter(p), 3)), ones({2}));
  EXPECT_EQ(read(*backend_, p.grad), (Floats{4, 4}));
  tape_.clear();
}

TEST_F(TapeTest, FrozenParametersAreConstants) {
  ParameterSet set;
  Parameter& p = set.add("p", {2});
  p.trainable = false;
  set.allocate(*backend_);
  const Var y = scale(ctx_, ctx_.parameter(p), 2);
  EXPECT_FALSE(tape_.needs_gradient(y));
  EXPECT_EQ(tape_.size(), 0U);
}

TEST_F(TapeTest, NamesTheOpWhoseGradientIsNotFinite) {
  tape_.set_check_finite(true);
  const Var x = tape_.leaf(ones({1, 2}));
  const Var y = scale(ctx_, activation(ctx_, x, kRelu), 1e30F);
  EXPECT_ERROR(tape_.backward(y, filled(*backend_, {1, 2}, 1e30F)), ErrorCode::not_finite,
               {"scale", "gradient", "[1,2]", "not finite"});
  tape_.clear();
  const Var z = scale(ctx_, tape_.leaf(ones({1})), 2);
  EXPECT_NO_THROW(tape_.backward(z));
}

TEST_F(TapeTest, SurvivesAnErrorInBackward) {
  const size_t before = live();
  {
    const Var x = tape_.leaf(ones({8}));
    const Var y = ctx_.new_var("bad", {8});
    ctx_.record("bad", {x}, y, [saved = x.value()](Backend&, const Tensor&, GradTargets) {
      fail(ErrorCode::runtime, "bad: on purpose");
    });
    const Var z = scale(ctx_, y, 2);
    EXPECT_ERROR(tape_.backward(z, ones({8})), ErrorCode::runtime, {"on purpose"});
  }
  tape_.clear();
  EXPECT_EQ(live(), before);
}

TEST_F(TapeTest, IsReadyAgainAfterEveryPass) {
  for (int pass = 0; pass < 50; ++pass) {
    tape_.clear();
    const Var x = tape_.leaf(tensor_of(*backend_, {1, 3}, {1, 2, 3}));
    Var y = x;
    for (int i = 0; i < pass % 7 + 1; ++i) {
      y = add(ctx_, y, x);
    }
    tape_.backward(y, ones({1, 3}));
    EXPECT_EQ(gradient(x), Floats(3, static_cast<float>(pass % 7 + 2)));
  }
}

TEST_F(TapeTest, TellsWhenAParameterHasAllOfItsGradient) {
  ParameterSet set;
  Parameter& first = set.add("first", {1, 3});
  Parameter& second = set.add("second", {1, 3});
  Parameter& frozen = set.add("frozen", {1, 3});
  frozen.trainable = false;
  set.allocate(*backend_);
  std::vector<std::pair<std::string, Floats>> told;
  tape_.set_on_gradient([&](Parameter& p) { told.emplace_back(p.name, read(*backend_, p.grad)); });
  // `first` is used at both ends, so it is the last to be complete.
  const Var below = scale(ctx_, tape_.parameter(first), 2);
  const Var middle = add(ctx_, add(ctx_, below, tape_.parameter(second)), tape_.parameter(frozen));
  const Var above = add(ctx_, scale(ctx_, tape_.parameter(first), 5), middle);
  EXPECT_EQ(first.pending, 2);
  tape_.backward(above, ones({1, 3}));
  ASSERT_EQ(told.size(), 2U);
  EXPECT_EQ(told[0], std::pair(std::string("second"), Floats{1, 1, 1}));
  EXPECT_EQ(told[1], std::pair(std::string("first"), Floats{7, 7, 7}));
  EXPECT_EQ(first.pending, 0);

  tape_.clear();
  tape_.parameter(second);
  EXPECT_EQ(second.pending, 1);
  tape_.clear();
  EXPECT_EQ(second.pending, 0);
}

}  // namespace
}  // namespace gle
