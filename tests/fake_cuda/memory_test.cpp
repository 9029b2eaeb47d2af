#include "fake_cuda/fake_cuda_testing.h"
#include "fake_cuda/kernels_under_test.h"

namespace fake_cuda::test {

namespace {

using MemoryTest = FakeCuda;

TEST_F(MemoryTest, OutOfMemoryIsReportedAndLifeGoesOn) {
  reset({.memory_bytes = 1 << 20});
  void* large = nullptr;
  void* small = nullptr;
  EXPECT_EQ(cudaMalloc(&large, 2 << 20), cudaErrorMemoryAllocation);
  EXPECT_EQ(large, nullptr);
  EXPECT_EQ(cudaGetLastError(), cudaErrorMemoryAllocation);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  ASSERT_EQ(cudaMalloc(&large, 1 << 20), cudaSuccess);
  EXPECT_EQ(cudaMalloc(&small, 4), cudaErrorMemoryAllocation);
  size_t free = 1;
  size_t total = 0;
  cudaMemGetInfo(&free, &total);
  EXPECT_EQ(free, 0U);
  EXPECT_EQ(total, 1U << 20);
  cudaFree(large);
  DeviceFloats x(std::vector<float>(10, 2.0F));
  scale(nullptr, 2.0F, x.get(), x.get(), 10);
  EXPECT_EQ(download(x, 10)[0], 4.0F);
}

TEST_F(MemoryTest, DirectionsMustFitTheAddresses) {
  DeviceFloats x(std::vector<float>(10, 2.0F));
  float host[10] = {};
  EXPECT_EQ(cudaMemcpy(x.get(), host, sizeof host, cudaMemcpyDeviceToHost), cudaErrorInvalidMemcpyDirection);
  expect_report("direction");
  EXPECT_EQ(cudaMemcpy(host, x.get(), sizeof host + 4, cudaMemcpyDeviceToHost), cudaErrorInvalidValue);
  expect_report("not allocated");
  EXPECT_EQ(cudaMemset(host, 0, sizeof host), cudaErrorInvalidValue);
  expect_report("not the device's memory");
  EXPECT_EQ(cudaMemcpy(host, x.get(), sizeof host, cudaMemcpyDefault), cudaSuccess);
  EXPECT_EQ(host[9], 2.0F);
}

TEST_F(MemoryTest, AsynchronousCopiesOfPageableMemoryAreCounted) {
  DeviceFloats x(std::vector<float>(10, 2.0F));
  PinnedFloats pinned(10);
  const uint64_t before = statistics().pageable_copies;
  float host[10] = {1.0F};
  cudaMemcpyAsync(x.get(), host, sizeof host, cudaMemcpyHostToDevice, nullptr);
  host[0] = 7.0F;
  cudaMemcpyAsync(pinned.get(), x.get(), sizeof host, cudaMemcpyDeviceToHost, nullptr);
  EXPECT_EQ(statistics().pageable_copies, before + 1);
  cudaStreamSynchronize(nullptr);
  EXPECT_EQ(pinned[0], 1.0F);
}

TEST_F(MemoryTest, RowsAreCopiedByPitch) {
  DeviceFloats x(std::vector<float>(12, 0.0F));
  const float rows[] = {1, 2, 3, 4};
  cudaMemcpy2D(x.get() + 1, 4 * sizeof(float), rows, 2 * sizeof(float), 2 * sizeof(float), 2, cudaMemcpyHostToDevice);
  EXPECT_EQ(download(x, 8), (std::vector<float>{0, 1, 2, 0, 0, 3, 4, 0}));
  EXPECT_EQ(cudaMemcpy2D(x.get() + 8, 4 * sizeof(float), rows, 8, 8, 2, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  expect_report("cudaMemcpy2D");
}

TEST_F(MemoryTest, CopiesOnTheDeviceCarryWhatWasNeverWritten) {
  DeviceFloats x(4);
  DeviceFloats y(std::vector<float>(4, 1.0F));
  cudaMemcpy(y.get(), x.get(), 4 * sizeof(float), cudaMemcpyDeviceToDevice);
  scale(nullptr, 1.0F, y.get(), y.get(), 4);
  cudaDeviceSynchronize();
  expect_report("nobody wrote");
}

TEST_F(MemoryTest, DoubleFreesAreReported) {
  void* memory = nullptr;
  cudaMalloc(&memory, 16);
  EXPECT_EQ(cudaFree(memory), cudaSuccess);
  EXPECT_EQ(cudaFree(memory), cudaErrorInvalidValue);
  expect_report("cudaFree");
}

TEST_F(MemoryTest, EachDeviceHasItsMemory) {
  cudaSetDevice(1);
  DeviceFloats there(std::vector<float>(4, 3.0F));
  cudaPointerAttributes attributes;
  cudaPointerGetAttributes(&attributes, there.get());
  EXPECT_EQ(attributes.device, 1);
  EXPECT_EQ(attributes.type, cudaMemoryTypeDevice);
  cudaSetDevice(0);
  DeviceFloats here(4);
  cudaMemcpyPeerAsync(here.get(), 0, there.get(), 1, 16, nullptr);
  EXPECT_EQ(download(here, 4)[2], 3.0F);
}

TEST_F(MemoryTest, MachinesWithoutAGpu) {
  for (const cudaError_t status : {cudaErrorStubLibrary, cudaErrorInsufficientDriver, cudaErrorNoDevice}) {
    reset({.device_count_status = status});
    int count = -1;
    EXPECT_EQ(cudaGetDeviceCount(&count), status);
    EXPECT_EQ(count, -1);
  }
  restart(1);
  int count = 0;
  EXPECT_EQ(cudaGetDeviceCount(&count), cudaSuccess);
  EXPECT_EQ(count, 2);
  EXPECT_EQ(cudaSetDevice(2), cudaErrorInvalidDevice);
}

TEST_F(MemoryTest, RefusedLaunchesNameTheOp) {
  DeviceFloats x(std::vector<float>(4, 3.0F));
  try {
    scale(nullptr, 1.0F, x.get(), x.get(), 0);
    FAIL();
  } catch (const std::exception& error) {
    EXPECT_NE(std::string(error.what()).find("scale: the GPU refused"), std::string::npos) << error.what();
  }
}

}  // namespace

}  // namespace fake_cuda::test
