#pragma once

#include <utility>
#include <vector>

#include "engine/memory/caching_allocator.h"

namespace gle::cuda {

// Segments of a GPU's memory for the allocator. What comes back while a step is being recorded is kept until
// hold(false): the recorded kernels have not run yet.
class DeviceMemory {
 public:
  explicit DeviceMemory(int device) : device_(device) {}
  ~DeviceMemory();
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  MemorySource source();
  void hold(bool on);

 private:
  void* allocate(size_t bytes);
  void release(void* data) noexcept;

  int device_;
  bool held_ = false;
  std::vector<void*> waiting_;
};

}  // namespace gle::cuda
