#include "engine/cuda/device_memory.h"

#include <cuda_runtime_api.h>

namespace gle::cuda {

DeviceMemory::~DeviceMemory() { hold(false); }

MemorySource DeviceMemory::source() {
  MemorySource source;
  source.device = {Device::Kind::cuda, device_};
  source.allocate = [](void* state, size_t bytes) { return static_cast<DeviceMemory*>(state)->allocate(bytes); };
  source.release = [](void* state, void* data, size_t) { static_cast<DeviceMemory*>(state)->release(data); };
  source.state = this;
  return source;
}

void* DeviceMemory::allocate(size_t bytes) {
  void* data = nullptr;
  if (cudaSetDevice(device_) != cudaSuccess || cudaMalloc(&data, bytes) != cudaSuccess) {
    (void)cudaGetLastError();  // else the next launch would report it
    return nullptr;
  }
  return data;
}

void DeviceMemory::release(void* data) noexcept {
  if (held_) {
    waiting_.push_back(data);
    return;
  }
  (void)cudaSetDevice(device_);
  (void)cudaFree(data);
}

void DeviceMemory::hold(bool on) {
  held_ = on;
  if (!on) {
    for (void* data : waiting_) {
      release(data);
    }
    waiting_.clear();
  }
}

}  // namespace gle::cuda
