// A small network of every kind of layer, trained for a few steps: it learns, its bits do not depend on the number of
// threads, and once warm it allocates nothing.
#include <gtest/gtest.h>

#include <cmath>
#include <memory>

#include "layers/conv_batch_norm.h"
#include "layers/elementwise.h"
#include "layers/linear.h"
#include "layers/pool2d.h"
#include "losses/cross_entropy.h"
#include "tests/array.h"
#include "tests/counting_new.h"
#include "tests/expect_error.h"
#include "tests/machines.h"
#include "tests/values.h"

namespace gle {
namespace {

using test::read;

constexpr int64_t kBatch = 8;
constexpr int64_t kClasses = 5;

class Network {
 public:
  explicit Network(Backend& backend) : backend_(backend), tape_(backend) {
    first_ = layer("first", {.in = 3, .out = 12, .kernel_h = 3, .kernel_w = 3}, {2, 2, 1, 1});
    left_ = layer("left", {.in = 12, .out = 7, .kernel_h = 1, .kernel_w = 1}, {});
    right_ = layer("right", {.in = 12, .out = 9, .kernel_h = 3, .kernel_w = 3}, {1, 1, 1, 1});
    head_ = make_linear(set_, "head", 16 + 12, kClasses, true);
    set_.allocate(backend);
    test::Draw draw(1);
    for (Parameter& p : set_.parameters()) {
      const double range =
          p.shape.rank() == 1 ? 0 : std::sqrt(6.0 / static_cast<double>(p.shape.elements() / p.shape[0]));
      upload(p.value, draw.array(p.shape, -range, range));
      if (p.name.ends_with("norm.weight")) {
        backend.fill(1, p.value);
      }
    }
    images_ = backend.new_tensor("test", {kBatch, 20, 17, 3});
    upload(images_, draw.array(images_.shape()));
    labels_ = test::labels_of(backend, {0, 1, 2, 3, 4, 0, 1, 2});
  }

  // One step of gradient descent; returns the loss.
  float step(uint64_t number) {
    Context ctx{.backend = backend_, .tape = &tape_, .mode = Mode::training, .seed = 5, .step = number};
    tape_.clear();
    set_.clear_gradients();
    const Var loss = forward(ctx);
    tape_.backward(loss);
    set_.complete_gradients(backend_);
    backend_.scale(-0.05F, set_.gradients(), {set_.values(), Accumulate::add});
    set_.values_changed();
    float value = 0;
    backend_.download(loss.value(), &value);
    return value;
  }

  std::vector<float> values() { return read(backend_, set_.values()); }
  ParameterSet& set() { return set_; }

 private:
  ConvBatchNorm layer(const std::string& name, const Conv2dSizes& sizes, const Conv2dOptions& options) {
    return {make_conv2d(set_, name, sizes, options, true), make_batch_norm(set_, name + ".norm", sizes.out)};
  }

  void upload(const Tensor& to, const test::Array& values) {
    backend_.upload(std::vector<float>(values.values.begin(), values.values.end()).data(), to);
  }

  Var forward(Context& ctx) {
    Var x = conv_batch_norm(ctx, Var(images_), first_, set_, kRelu);
    x = max_pool(ctx, x, {.kernel_h = 3, .kernel_w = 3, .rounding = Rounding::ceil});
    const Shape shape = x.shape();
    const Var wide = ctx.new_var("concatenate", shape.with_channels(28));
    conv_batch_norm(ctx, x, left_, set_, kRelu, wide.slice(0, 7));
    conv_batch_norm(ctx, x, right_, set_, {0.1F}, wide.slice(7, 16));
    average_pool(ctx, x, {3, 3, 1, 1, 1, 1}, wide.slice(16, 28));
    const Var features = dropout(ctx, global_pool(ctx, wide, 0.5F), 0.2F);
    return cross_entropy(ctx, linear(ctx, features, head_), labels_, 0.05F);
  }

  Backend& backend_;
  ParameterSet set_;
  ConvBatchNorm first_, left_, right_;
  Linear head_;
  Tensor images_, labels_;
  Tape tape_;
};

std::unique_ptr<Backend> own_kernels(int threads) {
  auto backend = make_cpu_backend({.threads = threads, .library = false});
  backend->workspace().set_poison(true);
  return backend;
}

TEST(Training, LossFalls) {
  for (const bool library : {false, true}) {
    const auto backend = make_cpu_backend({.threads = 2, .library = library});
    Network network(*backend);
    const float first = network.step(0);
    float last = 0;
    for (uint64_t step = 1; step < 40; ++step) {
      last = network.step(step);
      ASSERT_TRUE(std::isfinite(last));
    }
    EXPECT_NEAR(first, std::log(5.0), 1.0);
    EXPECT_LT(last, 0.6F * first) << backend->description();
  }
}

TEST(Training, BitsDoNotDependOnThreads) {
  std::vector<std::vector<float>> values;
  for (const int threads : {1, 2, 3, 2}) {
    const auto backend = own_kernels(threads);
    Network network(*backend);
    for (uint64_t step = 0; step < 6; ++step) {
      network.step(step);
    }
    values.push_back(network.values());
  }
  EXPECT_TRUE(values[0] == values[1]);
  EXPECT_TRUE(values[0] == values[2]);
  EXPECT_TRUE(values[1] == values[3]);
}

// A new process that is given the values and the number of the step draws what the old one would have.
TEST(Training, ResumedRunGoesOnBitForBit) {
  const auto backend = own_kernels(2);
  Network straight(*backend), first(*backend), second(*backend);
  for (uint64_t step = 0; step < 6; ++step) {
    straight.step(step);
  }
  for (uint64_t step = 0; step < 3; ++step) {
    first.step(step);
  }
  backend->upload(first.values().data(), second.set().values());
  backend->upload(read(*backend, first.set().state_values()).data(), second.set().state_values());
  for (uint64_t step = 3; step < 6; ++step) {
    second.step(step);
  }
  EXPECT_TRUE(straight.values() == second.values());
}

TEST(Training, AllocatesNothingOnceWarm) {
  for (const bool library : {false, true}) {
    const auto backend = make_cpu_backend({.threads = 2, .library = library});
    Network network(*backend);
    network.step(0);
    const MemoryStatistics warm = backend->allocator().statistics();
    for (uint64_t step = 1; step < 8; ++step) {
      const int64_t before = test::calls_of_new();
      network.step(step);
      const int64_t during = test::calls_of_new() - before;
      const MemoryStatistics now = backend->allocator().statistics();
      EXPECT_EQ(now.segments_taken, warm.segments_taken) << "step " << step;
      EXPECT_EQ(now.peak_live, warm.peak_live) << "step " << step;
      EXPECT_EQ(now.peak_reserved, warm.peak_reserved) << "step " << step;
      EXPECT_EQ(now.live, warm.live) << "step " << step;
      if (step >= 2 && !library) {  // oneDNN allocates handles for its arguments
        EXPECT_EQ(during, 0) << "calls of operator new in step " << step;
      }
    }
  }
}

TEST(Training, MemoryLimitHoldsAndNamesTheOp) {
  size_t peak = 0;
  {
    const auto backend = own_kernels(1);
    Network network(*backend);
    network.step(0);
    network.step(1);
    peak = backend->allocator().statistics().peak_live;
  }
  // What all steps need at once, with room for pieces that do not fit into gaps, is enough; half of it is not.
  const auto enough = make_cpu_backend({.threads = 1, .memory_limit = peak + peak / 4, .library = false});
  Network network(*enough);
  network.step(0);
  network.step(1);
  EXPECT_LE(enough->allocator().statistics().peak_reserved, peak + peak / 4);

  const auto little = make_cpu_backend({.threads = 1, .memory_limit = peak / 2, .library = false});
  Network starved(*little);
  EXPECT_ERROR(starved.step(0), ErrorCode::memory, {": out of memory on cpu: ", " bytes asked, ", " free of "});
  EXPECT_ERROR(starved.step(0), ErrorCode::memory, {": out of memory on cpu: "});
}

}  // namespace
}  // namespace gle
