#pragma once

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <vector>

#include "fake_cuda/fake_cuda.h"
#include "simt/simt.h"

namespace fake_cuda::test {

// Starts from an empty scheduler; ends without a report and without anything left over.
class FakeCuda : public testing::Test {
 protected:
  void SetUp() override {
    restart(1);
    before_ = statistics();
  }
  void TearDown() override {
    cudaDeviceSynchronize();
    cudaGetLastError();
    for (const simt::Report& report : simt::take_reports()) {
      ADD_FAILURE() << report.text;
    }
    const Statistics after = statistics();
    EXPECT_EQ(after.device_bytes, before_.device_bytes);
    EXPECT_EQ(after.pinned_bytes, before_.pinned_bytes);
    EXPECT_EQ(after.streams, before_.streams);
    EXPECT_EQ(after.events, before_.events);
    EXPECT_EQ(after.handles, before_.handles);
  }

  static void restart(uint64_t seed) {
    reset({.seed = seed});
    simt::set_options({.order = simt::Order::random, .seed = seed});
    cudaSetDevice(0);
  }
  // The one report that the test provoked.
  static void expect_report(const std::string& part) {
    const std::vector<simt::Report> reports = simt::take_reports();
    ASSERT_EQ(reports.size(), 1U);
    EXPECT_NE(reports[0].text.find(part), std::string::npos) << reports[0].text;
  }

 private:
  Statistics before_;
};

enum class Memory { device, pinned };

// `n` floats that free themselves.
template <Memory where>
class Floats {
 public:
  explicit Floats(size_t n) {
    void* data = nullptr;
    const size_t bytes = n * sizeof(float);
    EXPECT_EQ(where == Memory::device ? cudaMalloc(&data, bytes) : cudaMallocHost(&data, bytes), cudaSuccess);
    data_ = static_cast<float*>(data);
  }
  explicit Floats(const std::vector<float>& values) : Floats(values.size()) {
    const cudaMemcpyKind kind = where == Memory::device ? cudaMemcpyHostToDevice : cudaMemcpyHostToHost;
    EXPECT_EQ(cudaMemcpy(data_, values.data(), values.size() * sizeof(float), kind), cudaSuccess);
  }
  ~Floats() { where == Memory::device ? cudaFree(data_) : cudaFreeHost(data_); }
  Floats(const Floats&) = delete;
  Floats& operator=(const Floats&) = delete;

  float* get() const { return data_; }
  float& operator[](size_t i) { return data_[i]; }

 private:
  float* data_ = nullptr;
};

using DeviceFloats = Floats<Memory::device>;
using PinnedFloats = Floats<Memory::pinned>;

inline std::vector<float> download(const DeviceFloats& from, size_t n) {
  std::vector<float> values(n);
  EXPECT_EQ(cudaMemcpy(values.data(), from.get(), n * sizeof(float), cudaMemcpyDeviceToHost), cudaSuccess);
  return values;
}

}  // namespace fake_cuda::test
