#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "engine/backend.h"

namespace gle {

struct CudaOptions {
  int device = 0;
  size_t memory_limit = CachingAllocator::kNoLimit;
  // Products of fp32 numbers with 10 bits of mantissa on tensor cores: several times faster.
  bool tf32 = false;
  // Only algorithms that give the same bits every time.
  bool deterministic = false;
  // What a convolution may take for scratch.
  size_t workspace_limit = size_t{256} << 20;
  // Runs the candidates of every new convolution once and keeps the fastest, instead of trusting the heuristics.
  bool time_plans = false;
  // Steps go to the device as one graph; see Backend::run_step.
  bool graphs = false;
};

// Fails with ErrorCode::runtime and how to go on where there is no GPU, no driver, or no CUDA in this build.
std::unique_ptr<Backend> make_cuda_backend(const CudaOptions& options = {});

namespace cuda {

struct DeviceReport {
  std::string name;
  int major = 0;  // compute capability
  int minor = 0;
  int multiprocessors = 0;
  size_t memory = 0;
};

// What this build and this machine have. `missing` says why there are no devices; empty if there are.
struct Report {
  std::vector<DeviceReport> devices;
  std::string missing;
  std::string versions;  // "driver 13.0, runtime 13.0, cuBLAS 13.1.0, cuDNN 9.19.0"; empty without CUDA
};

Report report();

}  // namespace cuda

}  // namespace gle
