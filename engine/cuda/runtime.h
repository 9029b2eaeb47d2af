#pragma once

#include <array>
#include <cstddef>
#include <string>

#include "engine/cuda/cuda.h"
#include "engine/cuda/device_status.h"
#include "engine/cuda/handles.h"

namespace gle::cuda {

// What the CUDA backend is apart from its kernels and libraries: a device, two streams, and who to blame for errors.
class CudaRuntime {
 public:
  explicit CudaRuntime(const CudaOptions& options);
  ~CudaRuntime();
  CudaRuntime(const CudaRuntime&) = delete;
  CudaRuntime& operator=(const CudaRuntime&) = delete;

  // Makes the device current for this thread and notes the op. With GLE_CUDA_BLOCKING=1 waits for the ops before it,
  // so that an error is reported under the name of the op that caused it.
  void begin(const char* op) const;
  // Throws what went wrong on the device so far, or what a kernel left in `status`. Waits.
  void synchronise() const;
  // Copies a small result to the host. Waits.
  void fetch(const void* device, size_t bytes, void* host) const;

  int device = 0;
  int multiprocessors = 0;
  std::string description;
  Stream compute;
  Stream copies;
  DeviceStatus* status = nullptr;

 private:
  void check_status() const;
  [[noreturn]] void fail_after(int error) const;

  static constexpr size_t kRemembered = 8;
  mutable std::array<const char*, kRemembered> ops_{};
  mutable size_t begun_ = 0;
  bool blocking_ = false;
  void* landing_ = nullptr;  // pinned: where small results arrive
};

}  // namespace gle::cuda
