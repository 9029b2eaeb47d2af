// The lazy streams must find what they are for, and leave correct programs alone.

#include "fake_cuda/fake_cuda_testing.h"
#include "fake_cuda/kernels_under_test.h"

namespace fake_cuda::test {

namespace {

constexpr int kSeeds = 40;
constexpr int kCount = 50;

class Streams : public FakeCuda {
 protected:
  void SetUp() override {
    FakeCuda::SetUp();
    for (cudaStream_t& stream : stream_) {
      cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    }
    cudaEventCreateWithFlags(&event_, cudaEventDisableTiming);
    cudaEventCreateWithFlags(&back_, cudaEventDisableTiming);
  }
  void TearDown() override {
    for (cudaStream_t stream : stream_) {
      cudaStreamDestroy(stream);
    }
    cudaEventDestroy(event_);
    cudaEventDestroy(back_);
    FakeCuda::TearDown();
  }

  cudaStream_t stream_[2];
  cudaEvent_t event_;
  cudaEvent_t back_;
};

enum class With { everything, no_synchronise, no_wait, early_reuse };

// Copies in on one stream, computes on the other, copies out; true if the result is right.
bool pipeline(With bug, cudaStream_t copies, cudaStream_t computes, cudaEvent_t there, cudaEvent_t back) {
  PinnedFloats in(kCount);
  PinnedFloats out(kCount);
  DeviceFloats x(std::vector<float>(kCount, -1.0F));
  DeviceFloats y(std::vector<float>(kCount, -1.0F));
  for (size_t i = 0; i < kCount; ++i) {
    in[i] = static_cast<float>(i);
    out[i] = -5.0F;
  }
  cudaMemcpyAsync(x.get(), in.get(), kCount * sizeof(float), cudaMemcpyHostToDevice, copies);
  cudaEventRecord(there, copies);
  if (bug != With::no_wait) {
    cudaStreamWaitEvent(computes, there, 0);
  }
  if (bug == With::early_reuse) {
    in[7] = 99.0F;
  }
  scale(computes, 3.0F, x.get(), y.get(), kCount);
  cudaEventRecord(back, computes);
  cudaStreamWaitEvent(copies, back, 0);
  cudaMemcpyAsync(out.get(), y.get(), kCount * sizeof(float), cudaMemcpyDeviceToHost, copies);
  if (bug != With::no_synchronise) {
    cudaStreamSynchronize(copies);
  }
  for (size_t i = 0; i < kCount; ++i) {
    if (out[i] != 3.0F * static_cast<float>(i)) {
      return false;
    }
  }
  return true;
}

TEST_F(Streams, ACorrectProgramIsRightInEveryOrder) {
  for (int seed = 0; seed < kSeeds; ++seed) {
    restart(static_cast<uint64_t>(seed));
    EXPECT_TRUE(pipeline(With::everything, stream_[0], stream_[1], event_, back_)) << seed;
  }
}

TEST_F(Streams, AMissingSynchronisationIsFoundInEveryOrder) {
  for (int seed = 0; seed < kSeeds; ++seed) {
    restart(static_cast<uint64_t>(seed));
    EXPECT_FALSE(pipeline(With::no_synchronise, stream_[0], stream_[1], event_, back_)) << seed;
  }
}

TEST_F(Streams, AMissingWaitIsFoundInManyOrders) {
  int found = 0;
  for (int seed = 0; seed < kSeeds; ++seed) {
    restart(static_cast<uint64_t>(seed));
    found += pipeline(With::no_wait, stream_[0], stream_[1], event_, back_) ? 0 : 1;
  }
  EXPECT_GE(found, kSeeds / 8);
  EXPECT_LT(found, kSeeds);
}

TEST_F(Streams, PinnedMemoryReusedTooEarlyIsFound) {
  EXPECT_FALSE(pipeline(With::early_reuse, stream_[0], stream_[1], event_, back_));
}

TEST_F(Streams, EagerStreamsHideAllOfIt) {
  reset({.lazy = false});
  EXPECT_TRUE(pipeline(With::no_synchronise, stream_[0], stream_[1], event_, back_));
  EXPECT_TRUE(pipeline(With::no_wait, stream_[0], stream_[1], event_, back_));
}

TEST_F(Streams, TheDefaultStreamWaitsForBlockingStreamsOnly) {
  cudaStream_t blocking;
  cudaStreamCreate(&blocking);
  DeviceFloats x(std::vector<float>(kCount, 1.0F));
  for (int seed = 0; seed < kSeeds; ++seed) {
    restart(static_cast<uint64_t>(seed));
    scale(blocking, 2.0F, x.get(), x.get(), kCount);
    scale(nullptr, 3.0F, x.get(), x.get(), kCount);
    scale(blocking, 0.5F, x.get(), x.get(), kCount);
    scale(nullptr, 1.0F / 3.0F, x.get(), x.get(), kCount);
    EXPECT_EQ(download(x, kCount)[9], 1.0F);
  }
  cudaStreamDestroy(blocking);
}

TEST_F(Streams, EventsAndQueriesEndWithoutASynchronisation) {
  DeviceFloats x(std::vector<float>(kCount, 1.0F));
  scale(stream_[0], 2.0F, x.get(), x.get(), kCount);
  cudaEventRecord(event_, stream_[0]);
  int polls = 0;
  while (cudaEventQuery(event_) == cudaErrorNotReady) {
    ASSERT_LT(++polls, 1000);
  }
  EXPECT_EQ(cudaStreamQuery(stream_[0]), cudaSuccess);
  EXPECT_EQ(download(x, kCount)[0], 2.0F);
}

TEST_F(Streams, ADestroyedStreamStillDoesItsWork) {
  DeviceFloats x(std::vector<float>(kCount, 1.0F));
  cudaStream_t brief;
  cudaStreamCreateWithFlags(&brief, cudaStreamNonBlocking);
  scale(brief, 2.0F, x.get(), x.get(), kCount);
  cudaStreamDestroy(brief);
  cudaDeviceSynchronize();
  EXPECT_EQ(download(x, kCount)[0], 2.0F);
}

TEST_F(Streams, ACapturedStepReplays) {
  PinnedFloats in(kCount);
  DeviceFloats x(std::vector<float>(kCount, 0.0F));
  DeviceFloats y(std::vector<float>(kCount, 0.0F));
  cudaStreamBeginCapture(stream_[0], cudaStreamCaptureModeGlobal);
  cudaMemcpyAsync(x.get(), in.get(), kCount * sizeof(float), cudaMemcpyHostToDevice, stream_[0]);
  cudaEventRecord(event_, stream_[0]);
  cudaStreamWaitEvent(stream_[1], event_, 0);
  scale(stream_[1], 2.0F, x.get(), y.get(), kCount);
  cudaEventRecord(back_, stream_[1]);
  cudaStreamWaitEvent(stream_[0], back_, 0);
  scale(stream_[0], 5.0F, y.get(), y.get(), kCount);
  cudaGraph_t graph;
  ASSERT_EQ(cudaStreamEndCapture(stream_[0], &graph), cudaSuccess);
  size_t nodes = 0;
  cudaGraphGetNodes(graph, nullptr, &nodes);
  EXPECT_EQ(nodes, 3U);
  EXPECT_EQ(download(y, kCount)[3], 0.0F);
  cudaGraphExec_t executable;
  ASSERT_EQ(cudaGraphInstantiate(&executable, graph, 0), cudaSuccess);
  for (int step = 1; step <= 3; ++step) {
    in[3] = static_cast<float>(step);
    ASSERT_EQ(cudaGraphLaunch(executable, stream_[1]), cudaSuccess);
    cudaStreamSynchronize(stream_[1]);
    EXPECT_EQ(download(y, kCount)[3], 10.0F * static_cast<float>(step));
  }
  cudaGraphExecDestroy(executable);
  cudaGraphDestroy(graph);
}

TEST_F(Streams, WhatACaptureForbidsIsRefused) {
  DeviceFloats x(std::vector<float>(kCount, 0.0F));
  cudaGraph_t graph;
  cudaStreamBeginCapture(stream_[0], cudaStreamCaptureModeGlobal);
  EXPECT_EQ(cudaStreamSynchronize(stream_[0]), cudaErrorStreamCaptureUnsupported);
  EXPECT_EQ(cudaStreamEndCapture(stream_[0], &graph), cudaErrorStreamCaptureInvalidated);
  expect_report("cudaStreamSynchronize");
  cudaStreamBeginCapture(stream_[0], cudaStreamCaptureModeGlobal);
  void* memory = nullptr;
  EXPECT_EQ(cudaMalloc(&memory, 64), cudaErrorStreamCaptureUnsupported);
  expect_report("cudaMalloc");
  cudaEventRecord(event_, stream_[0]);
  cudaStreamWaitEvent(stream_[1], event_, 0);
  scale(stream_[1], 2.0F, x.get(), x.get(), kCount);
  EXPECT_EQ(cudaStreamEndCapture(stream_[0], &graph), cudaErrorStreamCaptureUnjoined);
  expect_report("not joined");
  cudaStreamBeginCapture(stream_[0], cudaStreamCaptureModeGlobal);
  std::vector<float> pageable(kCount);
  EXPECT_EQ(cudaMemcpyAsync(x.get(), pageable.data(), 4, cudaMemcpyHostToDevice, stream_[0]),
            cudaErrorStreamCaptureUnsupported);
  cudaStreamEndCapture(stream_[0], &graph);
  expect_report("pageable");
}

TEST_F(Streams, AKernelNeedsAStreamOfItsDevice) {
  DeviceFloats x(std::vector<float>(kCount, 1.0F));
  cudaSetDevice(1);
  EXPECT_THROW(scale(stream_[0], 2.0F, x.get(), x.get(), kCount), std::exception);
  cudaSetDevice(0);
  expect_report("another device");
}

TEST_F(Streams, ABrokenDeviceSaysSoUntilTheEnd) {
  DeviceFloats x(std::vector<float>(kCount, 1.0F));
  scale(stream_[0], 2.0F, x.get(), x.get(), kCount);
  break_device(0, cudaErrorIllegalAddress);
  EXPECT_EQ(cudaStreamSynchronize(stream_[0]), cudaErrorIllegalAddress);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
  cudaSetDevice(1);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  restart(1);
}

}  // namespace

}  // namespace fake_cuda::test
