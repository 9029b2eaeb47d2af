#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "engine/backend.h"

namespace gle {

struct DeviceRequest {
  // "cpu", "cuda", "cuda:1", or "auto": the first GPU where there is one, else the CPU, and description() says why.
  std::string device = "auto";
  size_t memory_limit = CachingAllocator::kNoLimit;
  int threads = 0;  // of the CPU; see CpuOptions
  // Of GPUs; see CudaOptions.
  bool tf32 = false;
  bool deterministic = false;
  bool graphs = false;
  bool time_plans = false;
};

std::unique_ptr<Backend> make_backend(const DeviceRequest& request);

}  // namespace gle
