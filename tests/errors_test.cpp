// What a user of the ops can do wrong: each is an Error whose text names the op, the rule and what was found.
#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <limits>
#include <vector>

#include "layers/batch_norm.h"
#include "layers/conv2d.h"
#include "layers/conv_batch_norm.h"
#include "layers/elementwise.h"
#include "layers/linear.h"
#include "layers/pool2d.h"
#include "layers/rows.h"
#include "losses/cross_entropy.h"
#include "losses/proxy_anchor_loss.h"
#include "losses/proxy_nca_loss.h"
#include "tests/expect_error.h"
#include "tests/machines.h"
#include "tests/values.h"

namespace gle {
namespace {

using test::filled;
using test::labels_of;

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

// Host memory that calls itself the first GPU.
MemorySource fake_gpu_memory() {
  return {.device = {Device::Kind::cuda, 0},
          .allocate = [](void*, size_t bytes) { return std::aligned_alloc(64, (bytes + 63) / 64 * 64); },
          .release = [](void*, void* data, size_t) { std::free(data); }};
}

class ErrorsTest : public testing::Test {
 protected:
  Var var(const Shape& shape, float value = 1) { return Var(filled(backend_, shape, value)); }
  Var elsewhere(const Shape& shape) {
    return Var(Tensor(gpu_.allocate(static_cast<size_t>(shape.elements()) * 4, "test"), shape));
  }
  BatchNorm norm(int64_t channels) {
    const BatchNorm layer = make_batch_norm(set_, "norm", channels);
    set_.allocate(backend_);
    return layer;
  }

  ConvBatchNorm conv_norm(int64_t in, int64_t out, int kernel) {
    const Conv2dSizes sizes{.in = in, .out = out, .kernel_h = kernel, .kernel_w = kernel};
    const Conv2d conv = make_conv2d(set_, "conv", sizes, {}, false);
    return {conv, norm(out)};
  }

  Backend& backend_ = test::any_backend();
  CachingAllocator gpu_{fake_gpu_memory()};
  ParameterSet set_;
  Context ctx_{.backend = backend_, .mode = Mode::training};
  Context checked_{.backend = backend_, .mode = Mode::training, .check_finite = true};
};

TEST_F(ErrorsTest, Conv2dShapes) {
  const Var x = var({1, 5, 6, 3}), w = var({4, 3, 3, 3});
  const auto conv = [&](const Var& in, const Var& weight, const Var& bias, const Conv2dOptions& options) {
    return conv2d(ctx_, in, weight, bias, options);
  };
  EXPECT_ERROR(conv(var({5, 3}), w, {}, {}), ErrorCode::usage, {"conv2d", "[N,H,W,C]", "[5,3]"});
  EXPECT_ERROR(conv(x, var({4, 3}), {}, {}), ErrorCode::usage, {"conv2d", "[K,R,S,C]", "[4,3]"});
  EXPECT_ERROR(conv(var({1, 5, 6, 4}), w, {}, {}), ErrorCode::usage,
               {"conv2d", "[1,5,6,4]", "[4,3,3,3]", "4 channels"});
  EXPECT_ERROR(conv(x, var({3, 3, 3, 1}), {}, {}), ErrorCode::usage, {"conv2d", "depth-wise", "[3,3,3,1]"});
  EXPECT_ERROR(conv(x, w, var({5}), {}), ErrorCode::usage, {"conv2d", "bias", "[5]", "[4]"});
  EXPECT_ERROR(conv(x, w, Var(filled(backend_, {4, 2}, 1).slice(0, 1)), {}), ErrorCode::usage,
               {"conv2d", "bias", "[4,1]", "[4]"});
  EXPECT_ERROR(conv(x, w, {}, {.stride_h = 0}), ErrorCode::usage, {"conv2d", "stride", "0 and 1"});
  EXPECT_ERROR(conv(x, w, {}, {.pad_w = -1}), ErrorCode::usage, {"conv2d", "padding", "-1"});
  EXPECT_ERROR(conv(x, w, {}, {.pad_h = 3}), ErrorCode::usage, {"conv2d", "padding", "3x3", "3 and 0"});
  EXPECT_ERROR(conv(var({1, 2, 6, 3}), w, {}, {}), ErrorCode::usage, {"conv2d", "does not fit", "3x3", "[1,2,6,3]"});
  EXPECT_ERROR(conv(x, Var(filled(backend_, {4, 3, 3, 6}, 1).slice(0, 3)), {}, {}), ErrorCode::usage,
               {"conv2d", "weights must be dense"});
  EXPECT_ERROR(conv2d(ctx_, x, w, {}, {}, var({1, 3, 4, 5})), ErrorCode::usage, {"conv2d", "[1,3,4,4]", "[1,3,4,5]"});
}

TEST_F(ErrorsTest, EmptyVars) {
  EXPECT_ERROR(activation(ctx_, Var(), kRelu), ErrorCode::usage, {"activation", "empty Var"});
  EXPECT_ERROR(add(ctx_, Var(), Var()), ErrorCode::usage, {"add", "empty Var"});
  EXPECT_ERROR(scale(ctx_, Var(), 2), ErrorCode::usage, {"scale", "empty Var"});
  EXPECT_ERROR(dropout(ctx_, Var(), 0.5F), ErrorCode::usage, {"dropout", "empty Var"});
  EXPECT_ERROR(static_cast<void>(Shape().with_channels(2)), ErrorCode::usage, {"shape", "empty"});
}

TEST_F(ErrorsTest, BatchNormShapes) {
  BatchNorm layer = norm(3);
  EXPECT_ERROR(batch_norm(ctx_, var({2, 2, 2, 4}), layer), ErrorCode::usage, {"batch_norm", "[2,2,2,4]", "[4]", "[3]"});
  EXPECT_ERROR(batch_norm(ctx_, var({1, 3}), layer), ErrorCode::usage, {"batch_norm", "more than one value", "[1,3]"});
  EXPECT_ERROR(batch_norm(ctx_, var({4, 3}), layer, {-0.5F}), ErrorCode::usage, {"batch_norm", "slope", "-0.5"});
  EXPECT_ERROR(batch_norm(ctx_, var({4, 3}), layer, kRelu, var({3, 4})), ErrorCode::usage,
               {"batch_norm", "[4,3]", "[3,4]"});
  EXPECT_EQ(test::read(backend_, layer.running_mean->value), std::vector<float>(3, 0));
  layer.eps = 0;
  EXPECT_ERROR(batch_norm(ctx_, var({4, 3}), layer), ErrorCode::usage, {"batch_norm", "eps", "0"});
  layer.eps = 1e-5F;
  layer.momentum = 1.5F;
  EXPECT_ERROR(batch_norm(ctx_, var({4, 3}), layer), ErrorCode::usage, {"batch_norm", "momentum", "1.5"});
}

TEST_F(ErrorsTest, ConvBatchNormShapes) {
  ConvBatchNorm layer = conv_norm(3, 4, 3);
  Context inference{.backend = backend_};
  for (Context* ctx : {&ctx_, &inference}) {
    EXPECT_ERROR(conv_batch_norm(*ctx, var({1, 5, 5, 2}), layer, set_, kRelu), ErrorCode::usage, {"conv", "[1,5,5,2]"});
    EXPECT_ERROR(conv_batch_norm(*ctx, var({2, 5, 5, 3}), layer, set_, {-1}), ErrorCode::usage, {"slope", "-1"});
    EXPECT_ERROR(conv_batch_norm(*ctx, var({2, 5, 5, 3}), layer, set_, kRelu, var({1, 1, 1, 4})), ErrorCode::usage,
                 {"[2,3,3,4]", "[1,1,1,4]"});
  }
}

TEST_F(ErrorsTest, ConvolutionFoldedWithParametersOfOtherSizes) {
  const Conv2dSizes sizes{.in = 3, .out = 4, .kernel_h = 1, .kernel_w = 1};
  const Conv2d conv = make_conv2d(set_, "conv", sizes, {}, false);
  Parameter& bias = set_.add("bias", {3});
  const BatchNorm of_four = make_batch_norm(set_, "four", 4);
  ConvBatchNorm narrow{conv, norm(2)};
  ConvBatchNorm biased{{.weight = conv.weight, .bias = &bias, .options = {}}, of_four};
  ConvBatchNorm flat{conv, of_four};
  flat.norm.eps = 0;
  Context inference{.backend = backend_};
  const Var x = var({1, 2, 2, 3});
  EXPECT_ERROR(conv_batch_norm(inference, x, narrow, set_, kRelu), ErrorCode::usage, {"[1,2,2,4]", "[4]", "[2]"});
  EXPECT_ERROR(conv_batch_norm(inference, x, biased, set_, kRelu), ErrorCode::usage, {"bias of 4"});
  EXPECT_ERROR(conv_batch_norm(inference, x, flat, set_, kRelu), ErrorCode::usage, {"eps", "0"});
}

TEST_F(ErrorsTest, AVarOfBytes) {
  EXPECT_ERROR(Var(backend_.new_tensor("test", {2, 3}, DType::u8)), ErrorCode::usage, {"floats", "[2,3]"});
}

TEST_F(ErrorsTest, PoolShapes) {
  const Var x = var({1, 5, 6, 3});
  for (const auto pool : {max_pool, average_pool}) {
    const auto run = [&](const Var& in, const Pool2dOptions& options) { return pool(ctx_, in, options, {}); };
    EXPECT_ERROR(run(var({5, 3}), {}), ErrorCode::usage, {"pool", "[N,H,W,C]", "[5,3]"});
    EXPECT_ERROR(run(x, {.stride_h = 0}), ErrorCode::usage, {"pool", "positive", "0x2"});
    EXPECT_ERROR(run(x, {.kernel_w = 0}), ErrorCode::usage, {"pool", "positive", "2x0"});
    EXPECT_ERROR(run(x, {.pad_h = 2}), ErrorCode::usage, {"pool", "padding", "half", "2x2", "2 and 0"});
    EXPECT_ERROR(run(x, {.pad_h = std::numeric_limits<int>::max()}), ErrorCode::usage, {"pool", "padding", "half"});
    EXPECT_ERROR(run(x, {.kernel_h = 1 << 16, .kernel_w = 1 << 16}), ErrorCode::usage, {"pool", "255"});
    EXPECT_ERROR(run(x, {.kernel_h = 6, .kernel_w = 2}), ErrorCode::usage,
                 {"pool", "does not fit", "6x2", "[1,5,6,3]"});
    EXPECT_ERROR(run(x, {.kernel_h = 16, .kernel_w = 16}), ErrorCode::usage, {"pool", "255", "16x16", "global_pool"});
    EXPECT_ERROR(pool(ctx_, x, {}, var({1, 3, 3, 3})), ErrorCode::usage, {"pool", "[1,2,3,3]", "[1,3,3,3]"});
  }
  EXPECT_ERROR(global_pool(ctx_, var({4, 3})), ErrorCode::usage, {"global_pool", "[N,H,W,C]", "[4,3]"});
  EXPECT_ERROR(global_pool(ctx_, x, 1.5F), ErrorCode::usage, {"global_pool", "0 to 1", "1.5"});
  EXPECT_ERROR(global_pool(ctx_, x, 0, var({2, 3})), ErrorCode::usage, {"global_pool", "[1,3]", "[2,3]"});
}

TEST_F(ErrorsTest, LinearShapes) {
  const Var x = var({4, 6});
  EXPECT_ERROR(linear(ctx_, var({1, 2, 2, 6}), var({3, 6}), {}), ErrorCode::usage, {"linear", "[N,C]", "[1,2,2,6]"});
  EXPECT_ERROR(linear(ctx_, x, var({3, 5}), {}), ErrorCode::usage, {"linear", "[4,6]", "[3,5]"});
  EXPECT_ERROR(linear(ctx_, x, var({3, 6}), var({4})), ErrorCode::usage, {"linear", "bias", "[4]", "[3]"});
  EXPECT_ERROR(linear(ctx_, x, var({3, 6}), Var(filled(backend_, {3, 2}, 1).slice(0, 1))), ErrorCode::usage,
               {"linear", "bias", "[3,1]", "[3]"});
  EXPECT_ERROR(linear(ctx_, x, var({3, 6}), {}, var({3, 4})), ErrorCode::usage, {"linear", "[4,3]", "[3,4]"});
}

TEST_F(ErrorsTest, ElementwiseShapes) {
  EXPECT_ERROR(activation(ctx_, var({2}), {-1}), ErrorCode::usage, {"activation", "slope", "-1"});
  EXPECT_ERROR(activation(ctx_, var({2, 3}), kRelu, var({3, 2})), ErrorCode::usage, {"activation", "[2,3]", "[3,2]"});
  EXPECT_ERROR(add(ctx_, var({2, 3}), var({3, 2})), ErrorCode::usage, {"add", "[2,3]", "[3,2]"});
  EXPECT_ERROR(scale(ctx_, var({2}), kNaN), ErrorCode::usage, {"scale", "finite", "nan"});
  EXPECT_ERROR(dropout(ctx_, var({2}), 1), ErrorCode::usage, {"dropout", "0 to below 1", "1"});
  EXPECT_ERROR(dropout(ctx_, var({2}), -0.25F), ErrorCode::usage, {"dropout", "-0.25"});
}

TEST_F(ErrorsTest, RowsShapes) {
  const Var image = var({1, 2, 2, 3});
  EXPECT_ERROR(softmax(ctx_, image), ErrorCode::usage, {"softmax", "[N,C]", "[1,2,2,3]"});
  EXPECT_ERROR(log_softmax(ctx_, image), ErrorCode::usage, {"log_softmax", "[N,C]", "[1,2,2,3]"});
  EXPECT_ERROR(centre_rows(ctx_, image), ErrorCode::usage, {"centre_rows", "[N,C]", "[1,2,2,3]"});
  EXPECT_ERROR(normalise_rows(ctx_, image), ErrorCode::usage, {"normalise_rows", "[N,C]", "[1,2,2,3]"});
  EXPECT_ERROR(normalise_rows(ctx_, var({2, 2}), kNaN), ErrorCode::usage, {"normalise_rows", "beta", "nan"});
  EXPECT_ERROR(take_columns(ctx_, var({2, 3}), labels_of(backend_, {0, 1, 1, 2})), ErrorCode::usage, {"4 columns"});
  EXPECT_ERROR(take_columns(ctx_, var({2, 3}), labels_of(backend_, {0, 3})), ErrorCode::data, {"3"});
}

TEST_F(ErrorsTest, LabelsOfProxies) {
  const Var embeddings = var({2, 4}), proxies = var({3, 4});
  for (const auto& loss : std::vector<std::function<void(const Tensor&)>>{
           [&](const Tensor& labels) { proxy_nca_loss(ctx_, embeddings, labels, proxies, 3); },
           [&](const Tensor& labels) { proxy_anchor_loss(ctx_, embeddings, labels, proxies, 0.1F, 32); }}) {
    EXPECT_ERROR(loss(backend_.new_tensor("test", {2}, DType::u8)), ErrorCode::usage, {"2 whole numbers"});
    EXPECT_ERROR(loss(labels_of(backend_, {0})), ErrorCode::usage, {"2 whole numbers", "[1]"});
    EXPECT_ERROR(loss(labels_of(backend_, {0, 3})), ErrorCode::data, {"label 3"});
  }
}

TEST_F(ErrorsTest, CrossEntropyArguments) {
  const Var logits = var({2, 3});
  const Tensor labels = labels_of(backend_, {0, 2});
  EXPECT_ERROR(cross_entropy(ctx_, var({2, 1, 1, 3}), labels), ErrorCode::usage, {"cross_entropy", "[2,1,1,3]"});
  EXPECT_ERROR(cross_entropy(ctx_, logits, labels_of(backend_, {0})), ErrorCode::usage,
               {"cross_entropy", "2 whole numbers", "[1]"});
  EXPECT_ERROR(cross_entropy(ctx_, logits, filled(backend_, {2}, 0)), ErrorCode::usage,
               {"cross_entropy", "whole numbers"});
  EXPECT_ERROR(cross_entropy(ctx_, logits, labels, 1), ErrorCode::usage, {"cross_entropy", "smoothing", "1"});
  EXPECT_ERROR(cross_entropy(ctx_, logits, labels_of(backend_, {0, 3})), ErrorCode::data, {"label 3", "3 classes"});
}

TEST_F(ErrorsTest, TensorsOnAnotherDevice) {
  const Var here = var({2, 4, 4, 3}), there = elsewhere({2, 4, 4, 3});
  const Var rows_here = var({2, 3}), rows_there = elsewhere({2, 3});
  const auto both = [](const char* op) { return std::vector<std::string_view>{op, "cuda:0", "cpu", "copy"}; };
  const BatchNorm layer = norm(3);
  EXPECT_ERROR(conv2d(ctx_, there, var({1, 1, 1, 3}), {}, {}), ErrorCode::usage,
               {"conv2d", "[2,4,4,3]", "cuda:0", "cpu"});
  EXPECT_ERROR(conv2d(ctx_, here, elsewhere({1, 1, 1, 3}), {}, {}), ErrorCode::usage, {"conv2d", "cuda:0", "copy"});
  EXPECT_ERROR(conv2d(ctx_, here, var({1, 1, 1, 3}), elsewhere({1}), {}), ErrorCode::usage,
               {"conv2d", "cuda:0", "copy"});
  EXPECT_ERROR(batch_norm(ctx_, there, layer), ErrorCode::usage, both("batch_norm"));
  EXPECT_ERROR(max_pool(ctx_, there, {}), ErrorCode::usage, both("max_pool"));
  EXPECT_ERROR(average_pool(ctx_, there, {}), ErrorCode::usage, both("average_pool"));
  EXPECT_ERROR(global_pool(ctx_, there), ErrorCode::usage, both("global_pool"));
  EXPECT_ERROR(linear(ctx_, rows_there, var({1, 3}), {}), ErrorCode::usage, both("linear"));
  EXPECT_ERROR(activation(ctx_, there, kRelu), ErrorCode::usage, both("activation"));
  EXPECT_ERROR(activation(ctx_, here, kRelu, there), ErrorCode::usage, both("activation"));
  EXPECT_ERROR(add(ctx_, here, there), ErrorCode::usage, both("add"));
  EXPECT_ERROR(scale(ctx_, there, 2), ErrorCode::usage, both("scale"));
  EXPECT_ERROR(dropout(ctx_, there, 0.5F), ErrorCode::usage, both("dropout"));
  EXPECT_ERROR(softmax(ctx_, rows_there), ErrorCode::usage, both("softmax"));
  EXPECT_ERROR(log_softmax(ctx_, rows_there), ErrorCode::usage, both("log_softmax"));
  EXPECT_ERROR(centre_rows(ctx_, rows_there), ErrorCode::usage, both("centre_rows"));
  EXPECT_ERROR(normalise_rows(ctx_, rows_there), ErrorCode::usage, both("normalise_rows"));
  EXPECT_ERROR(cross_entropy(ctx_, rows_there, labels_of(backend_, {0, 1})), ErrorCode::usage, both("cross_entropy"));
  Tape tape(backend_);
  Context training{.backend = backend_, .tape = &tape, .mode = Mode::training};
  const Var y = scale(training, tape.leaf(rows_here.value()), 2);
  EXPECT_ERROR(tape.backward(y, rows_there.value()), ErrorCode::usage, {"backward", "cotangent", "cuda:0", "cpu"});
}

TEST_F(ErrorsTest, FoldedConvolutionOnAnotherDevice) {
  ConvBatchNorm layer = conv_norm(3, 2, 1);
  Context inference{.backend = backend_};
  EXPECT_ERROR(conv_batch_norm(inference, elsewhere({1, 2, 2, 3}), layer, set_, kRelu), ErrorCode::usage,
               {"conv_batch_norm", "cuda:0", "cpu"});
}

TEST_F(ErrorsTest, OutputsThatAreNotFinite) {
  const Var image = var({2, 4, 4, 3}, kNaN), rows = var({2, 3}, kNaN);
  const BatchNorm layer = norm(3);
  const auto named = [](const char* op) { return std::vector<std::string_view>{op, "not finite"}; };
  EXPECT_ERROR(conv2d(checked_, image, var({1, 1, 1, 3}), {}, {}), ErrorCode::not_finite,
               {"conv2d", "[2,4,4,1]", "not finite"});
  EXPECT_ERROR(batch_norm(checked_, image, layer), ErrorCode::not_finite, named("batch_norm"));
  EXPECT_ERROR(max_pool(checked_, image, {}), ErrorCode::not_finite, named("max_pool"));
  EXPECT_ERROR(average_pool(checked_, image, {}), ErrorCode::not_finite, named("average_pool"));
  EXPECT_ERROR(global_pool(checked_, image), ErrorCode::not_finite, named("global_pool"));
  EXPECT_ERROR(global_pool(checked_, image, 1), ErrorCode::not_finite, named("global_pool"));
  EXPECT_ERROR(linear(checked_, rows, var({1, 3}), {}), ErrorCode::not_finite, named("linear"));
  EXPECT_ERROR(activation(checked_, image, kRelu), ErrorCode::not_finite, named("activation"));
  EXPECT_ERROR(add(checked_, image, image), ErrorCode::not_finite, named("add"));
  EXPECT_ERROR(scale(checked_, var({2}, 1e30F), 1e30F), ErrorCode::not_finite, named("scale"));
  EXPECT_ERROR(dropout(checked_, image, 0.5F), ErrorCode::not_finite, named("dropout"));
  EXPECT_ERROR(softmax(checked_, rows), ErrorCode::not_finite, named("softmax"));
  EXPECT_ERROR(log_softmax(checked_, rows), ErrorCode::not_finite, named("log_softmax"));
  EXPECT_ERROR(centre_rows(checked_, rows), ErrorCode::not_finite, named("centre_rows"));
  EXPECT_ERROR(normalise_rows(checked_, rows), ErrorCode::not_finite, named("normalise_rows"));
  EXPECT_ERROR(cross_entropy(checked_, rows, labels_of(backend_, {0, 1})), ErrorCode::not_finite,
               named("cross_entropy"));
  EXPECT_NO_THROW(scale(ctx_, image, 2)) << "checked without being asked to";
}

TEST_F(ErrorsTest, FoldedConvolutionThatIsNotFinite) {
  ConvBatchNorm layer = conv_norm(3, 2, 1);
  Context inference{.backend = backend_, .check_finite = true};
  EXPECT_ERROR(conv_batch_norm(inference, var({1, 2, 2, 3}, kNaN), layer, set_, kIdentity), ErrorCode::not_finite,
               {"conv_batch_norm", "[1,2,2,2]", "not finite"});
}

TEST(MemoryLimit, NamesTheOpTheBytesAskedAndTheBytesFree) {
  const auto backend = make_cpu_backend({.threads = 1, .memory_limit = 1 << 20, .library = false});
  Context ctx{.backend = *backend};
  const Var x(filled(*backend, {1, 200, 200, 4}, 1));
  EXPECT_ERROR(scale(ctx, x, 2), ErrorCode::memory,
               {"scale: out of memory on cpu: 640000 bytes asked, 408576 free of 1048576"});
}

}  // namespace
}  // namespace gle
