#pragma once

#include <array>
#include <cstddef>
#include <string>

#include "engine/cuda/cuda.h"
#include "engine/cuda/device_memory.h"
#include "engine/cuda/device_status.h"
#include "engine/cuda/handles.h"
#include "engine/cuda/pinned_staging.h"
#include "engine/cuda/step_graph.h"

namespace gle::cuda {

// What the CUDA backend is apart from its kernels and libraries: a device, its memory, two streams, and the names of
// the ops under way, to blame them for errors.
class CudaRuntime {
 public:
  explicit CudaRuntime(const CudaOptions& options);
  ~CudaRuntime();
  CudaRuntime(const CudaRuntime&) = delete;
  CudaRuntime& operator=(const CudaRuntime&) = delete;

  // Makes the device this thread's current one and notes the op. With GLE_CUDA_BLOCKING=1 waits for the ops before it
  // first, so that an error is reported under the name of the op that caused it.
  void begin(const char* op) const;
  // Waits for the compute stream. Throws what went wrong on the device, or what a kernel left in `status`.
  void synchronise() const;
  // Copies a small result to the host. Waits like synchronise().
  void fetch(const void* device, size_t bytes, void* host) const;
  // Throws if a step is being recorded: `what` would have to wait for kernels that are not even on their way.
  void require_waiting(const char* what) const;

  const int device;
  int multiprocessors = 0;
  int major = 0;  // compute capability
  std::string description;
  DeviceMemory memory;
  Stream compute;
  Stream copies;
  Event step_begun;      // the kernels before the last await_prefetched()
  bool awaited = false;  // whether there was one
  Event arrived;         // the copies before it
  PinnedStaging uploads;
  PinnedStaging prefetches;
  StepGraph graph;
  DeviceStatus* status = nullptr;

 private:
  void wait() const;

  static constexpr size_t kRemembered = 8;
  static constexpr size_t kLandingBytes = 256;
  mutable std::array<const char*, kRemembered> ops_{};
  mutable size_t begun_ = 0;
  bool blocking_ = false;
  Owned<void*, cudaFree> status_memory_;
  Owned<void*, cudaFreeHost> landing_;  // page-locked: where the status and small results arrive
};

}  // namespace gle::cuda
