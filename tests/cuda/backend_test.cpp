// The CUDA backend where things go wrong: no memory, no device, a broken device, another device.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "engine/backends.h"
#include "engine/cuda/cuda.h"
#include "engine/error.h"
#include "fake_cuda/fake_cuda.h"
#include "tests/device_watch.h"

namespace gle {

namespace {

class CudaBackendTest : public testing::Test {
 protected:
  CudaBackendTest() {
    test::watch_device();
    fake_cuda::reset({});
  }
  ~CudaBackendTest() override { fake_cuda::reset({}); }
};

std::vector<float> read(Backend& backend, const Tensor& tensor) {
  std::vector<float> values(static_cast<size_t>(tensor.elements()));
  backend.download(tensor, values.data());
  return values;
}

std::string message_of(ErrorCode code, const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), code) << e.what();
    return e.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return "";
}

void expect_usable(Backend& backend) {
  const Tensor x = backend.new_tensor("test", {3, 5});
  backend.fill(2, x);
  EXPECT_EQ(read(backend, x), std::vector<float>(15, 2));
}

TEST_F(CudaBackendTest, OutOfMemoryIsAnErrorAndNoMore) {
  fake_cuda::reset({.memory_bytes = size_t{200} << 20});
  const auto backend = make_cuda_backend();
  const Tensor kept = backend->new_tensor("kept", {1 << 20});
  backend->fill(1, kept);
  const std::string message =
      message_of(ErrorCode::memory, [&] { (void)backend->new_tensor("activations", {1 << 28}); });
  EXPECT_NE(message.find("activations: out of memory on cuda:0"), std::string::npos) << message;
  expect_usable(*backend);
  EXPECT_EQ(read(*backend, kept), std::vector<float>(1 << 20, 1));
}

TEST_F(CudaBackendTest, TheLimitHolds) {
  const auto backend = make_cuda_backend({.memory_limit = size_t{64} << 20});
  message_of(ErrorCode::memory, [&] { (void)backend->new_tensor("activations", {1 << 25}); });
  EXPECT_LE(fake_cuda::statistics().device_bytes, size_t{65} << 20);
  expect_usable(*backend);
}

// What CUDA reports is an error of something that ran a while ago.
TEST_F(CudaBackendTest, AnAsynchronousErrorNamesTheOpsThatMayHaveCausedIt) {
  const auto backend = make_cuda_backend();
  const Tensor x = backend->new_tensor("test", {4});
  backend->fill(1, x);
  backend->synchronise();
  fake_cuda::break_device(0, cudaErrorIllegalAddress);
  backend->scale(2, x, {x, Accumulate::overwrite});
  backend->softmax_forward(x, x);
  const std::string message = message_of(ErrorCode::runtime, [&] { backend->synchronise(); });
  EXPECT_NE(message.find("newest first: softmax"), std::string::npos) << message;
  EXPECT_NE(message.find("scale"), std::string::npos) << message;
  EXPECT_NE(message.find("cudaErrorIllegalAddress"), std::string::npos) << message;
  EXPECT_NE(message.find("GLE_CUDA_BLOCKING=1"), std::string::npos) << message;
}

TEST_F(CudaBackendTest, AnOpThatFindsTheDeviceBrokenIsNotBlamed) {
  const auto backend = make_cuda_backend();
  const Tensor x = backend->new_tensor("test", {4});
  fake_cuda::break_device(0, cudaErrorIllegalAddress);
  backend->fill(1, x);
  EXPECT_THROW(backend->synchronise(), Error);
  const std::string message = message_of(ErrorCode::runtime, [&] { backend->softmax_forward(x, x); });
  EXPECT_EQ(message.rfind("an op before softmax", 0), 0U) << message;
}

TEST_F(CudaBackendTest, BlockingNamesTheVeryOp) {
  ASSERT_EQ(setenv("GLE_CUDA_BLOCKING", "1", 1), 0);
  const auto backend = make_cuda_backend();
  unsetenv("GLE_CUDA_BLOCKING");
  const Tensor x = backend->new_tensor("test", {4});
  backend->fill(1, x);
  backend->synchronise();
  fake_cuda::break_device(0, cudaErrorIllegalAddress);
  backend->scale(2, x, {x, Accumulate::overwrite});
  const std::string message = message_of(ErrorCode::runtime, [&] { backend->softmax_forward(x, x); });
  EXPECT_EQ(message.rfind("scale: cuda:0: cudaErrorIllegalAddress", 0), 0U) << message;
}

TEST_F(CudaBackendTest, BadLabelsAreReportedWhereTheHostWaits) {
  const auto backend = make_cuda_backend();
  const Tensor labels = backend->new_tensor("labels", {3}, DType::i32);
  const std::vector<int32_t> numbers = {0, 7, 9};
  backend->upload(numbers.data(), labels);
  backend->check_labels(labels, 5);
  const Tensor x = backend->new_tensor("test", {2});
  backend->fill(3, x);
  const std::string message = message_of(ErrorCode::data, [&] { (void)read(*backend, x); });
  EXPECT_EQ(message, "labels: label 7 of sample 1 is not one of 5 classes");
  EXPECT_EQ(read(*backend, x), std::vector<float>(2, 3));
}

TEST_F(CudaBackendTest, WithoutGpuAutoTakesTheCpu) {
  for (const cudaError_t status : {cudaErrorStubLibrary, cudaErrorInsufficientDriver, cudaErrorNoDevice}) {
    fake_cuda::reset({.device_count_status = status});
    const std::string message = message_of(ErrorCode::runtime, [] { (void)make_backend({.device = "cuda"}); });
    EXPECT_NE(message.find("--device cpu"), std::string::npos) << message;
    const auto backend = make_backend({.device = "auto"});
    EXPECT_EQ(backend->device(), Device{});
    EXPECT_NE(std::string(backend->description()).find(" ("), std::string::npos) << backend->description();
    EXPECT_TRUE(cuda::report().devices.empty());
  }
}

TEST_F(CudaBackendTest, SeveralDevicesAtOnce) {
  const auto first = make_backend({.device = "cuda"});
  const auto second = make_backend({.device = "cuda:1"});
  EXPECT_EQ(second->device(), (Device{Device::Kind::cuda, 1}));
  const Tensor a = first->new_tensor("test", {6});
  const Tensor b = second->new_tensor("test", {6});
  for (int i = 0; i < 3; ++i) {
    first->fill(static_cast<float>(i), a);
    second->fill(static_cast<float>(10 + i), b);
  }
  EXPECT_EQ(read(*first, a), std::vector<float>(6, 2));
  EXPECT_EQ(read(*second, b), std::vector<float>(6, 12));
  const std::string message = message_of(ErrorCode::usage, [] { (void)make_backend({.device = "cuda:2"}); });
  EXPECT_NE(message.find("2 GPUs"), std::string::npos) << message;
}

TEST_F(CudaBackendTest, LeavesNothingBehind) {
  const fake_cuda::Statistics before = fake_cuda::statistics();
  {
    const auto backend = make_cuda_backend({.time_plans = true, .graphs = true});
    const Tensor x = backend->new_tensor("test", {1, 4, 4, 3});
    const Tensor w = backend->new_tensor("test", {2, 3, 3, 3});
    const Tensor y = backend->new_tensor("test", {1, 4, 4, 2});
    for (int step = 0; step < 3; ++step) {
      backend->run_step(1, [&] {
        backend->fill(1, x);
        backend->fill(1, w);
        backend->conv2d_forward(x, w, Tensor(), {.pad_h = 1, .pad_w = 1}, kIdentity, nullptr, y);
      });
    }
    EXPECT_EQ(read(*backend, y)[0], 12);
  }
  const fake_cuda::Statistics after = fake_cuda::statistics();
  EXPECT_EQ(after.device_bytes, before.device_bytes);
  EXPECT_EQ(after.pinned_bytes, before.pinned_bytes);
  EXPECT_EQ(after.streams, before.streams);
  EXPECT_EQ(after.events, before.events);
  EXPECT_EQ(after.handles, before.handles);
}

TEST_F(CudaBackendTest, TimedPlansAreNotDeterministic) {
  const std::string message = message_of(
      ErrorCode::usage, [] { (void)make_backend({.device = "cuda", .deterministic = true, .time_plans = true}); });
  EXPECT_NE(message.find("choose between timed plans and determinism"), std::string::npos) << message;
}

TEST_F(CudaBackendTest, DescriptionTellsTheSwitches) {
  const auto backend = make_cuda_backend({.tf32 = true, .deterministic = true, .graphs = true});
  const std::string text = backend->description();
  EXPECT_NE(text.find(", tf32, deterministic, graphs"), std::string::npos) << text;
}

}  // namespace

}  // namespace gle
