#include "engine/parameters.h"

#include <gtest/gtest.h>

#include "layers/batch_norm.h"
#include "layers/conv2d.h"
#include "layers/linear.h"
#include "tests/expect_error.h"
#include "tests/machines.h"

namespace gle {
namespace {

std::vector<float> read(Backend& backend, const Tensor& tensor) {
  std::vector<float> values(static_cast<size_t>(tensor.elements()));
  backend.download(tensor, values.data());
  return values;
}

class ParameterSetTest : public testing::Test {
 protected:
  Backend& backend_ = test::any_backend();
  ParameterSet set_;
};

TEST_F(ParameterSetTest, LivesInFlatArraysWithGapsOfZeros) {
  Parameter& a = set_.add("a", {3, 5});
  Parameter& b = set_.add("b", {16});
  Parameter& c = set_.add("c", {1});
  set_.allocate(backend_);
  EXPECT_EQ(set_.values().shape(), (Shape{1, 48}));
  EXPECT_EQ(b.value.data() - set_.values().data(), 16);
  EXPECT_EQ(c.value.data() - set_.values().data(), 32);
  EXPECT_EQ(c.grad.data() - set_.gradients().data(), 32);
  EXPECT_EQ(a.value.shape(), (Shape{3, 5}));
  EXPECT_TRUE(a.value.dense());
  EXPECT_EQ(set_.parameter_count(), 32);
  EXPECT_EQ(read(backend_, set_.values()), std::vector<float>(48, 0));
  EXPECT_EQ(read(backend_, set_.gradients()), std::vector<float>(48, 0));

  backend_.fill(1, a.value);
  std::vector<float> expected(48, 0);
  std::fill(expected.begin(), expected.begin() + 15, 1.0F);
  EXPECT_EQ(read(backend_, set_.values()), expected);
}

TEST_F(ParameterSetTest, StateIsNamedAlikeButNotTrained) {
  set_.add("weight", {2});
  Parameter& mean = set_.add_state("running_mean", {5});
  set_.allocate(backend_);
  EXPECT_FALSE(mean.trainable);
  EXPECT_FALSE(mean.grad);
  EXPECT_EQ(set_.state_values().shape(), (Shape{1, 16}));
  EXPECT_EQ(set_.parameter_count(), 2);
  EXPECT_EQ(set_.find("running_mean"), &mean);
}

TEST_F(ParameterSetTest, FindsByName) {
  Parameter& a = set_.add("block.0.weight", {2});
  set_.add("block.0.bias", {2});
  EXPECT_EQ(set_.find("block.0.weight"), &a);
  EXPECT_EQ(set_.find("block.0"), nullptr);
}

TEST_F(ParameterSetTest, RefusesTakenNamesAndLateAdditions) {
  set_.add("a", {2});
  EXPECT_ERROR(set_.add("a", {3}), ErrorCode::usage, {"parameters", "'a'", "taken"});
  EXPECT_ERROR(set_.add_state("a", {3}), ErrorCode::usage, {"parameters", "'a'", "taken"});
  set_.allocate(backend_);
  EXPECT_ERROR(set_.add("b", {3}), ErrorCode::usage, {"parameters", "'b'", "after"});
  EXPECT_ERROR(set_.allocate(backend_), ErrorCode::usage, {"parameters", "already"});
}

TEST_F(ParameterSetTest, GradientsThatNothingReachedBecomeZero) {
  Parameter& reached = set_.add("reached", {2});
  Parameter& missed = set_.add("missed", {2});
  set_.allocate(backend_);
  backend_.fill(7, set_.gradients());
  reached.has_gradient = true;
  set_.complete_gradients(backend_);
  EXPECT_EQ(read(backend_, reached.grad), (std::vector<float>{7, 7}));
  EXPECT_EQ(read(backend_, missed.grad), (std::vector<float>{0, 0}));
  EXPECT_TRUE(missed.has_gradient);
  set_.clear_gradients();
  EXPECT_FALSE(reached.has_gradient);
  EXPECT_FALSE(missed.has_gradient);
}

TEST_F(ParameterSetTest, CountsChanges) {
  const uint64_t before = set_.version();
  set_.values_changed();
  EXPECT_GT(set_.version(), before);
}

TEST_F(ParameterSetTest, EmptySetAllocates) {
  set_.allocate(backend_);
  EXPECT_EQ(set_.parameter_count(), 0);
  EXPECT_TRUE(set_.values());
}

TEST_F(ParameterSetTest, LayersNameTheirParametersAsStateDictsDo) {
  make_conv2d(set_, "conv1", {.in = 3, .out = 8, .kernel_h = 7, .kernel_w = 5}, {}, true);
  make_batch_norm(set_, "bn1", 8);
  make_linear(set_, "fc", 8, 10, true);
  EXPECT_EQ(set_.find("conv1.weight")->shape, (Shape{8, 7, 5, 3}));
  EXPECT_EQ(set_.find("conv1.bias")->shape, Shape{8});
  for (const char* name : {"bn1.weight", "bn1.bias", "bn1.running_mean", "bn1.running_var"}) {
    ASSERT_NE(set_.find(name), nullptr) << name;
    EXPECT_EQ(set_.find(name)->shape, Shape{8});
  }
  EXPECT_FALSE(set_.find("bn1.running_var")->trainable);
  EXPECT_EQ(set_.find("fc.weight")->shape, (Shape{10, 8}));
  EXPECT_EQ(set_.find("fc.bias")->shape, Shape{10});
}

}  // namespace
}  // namespace gle
