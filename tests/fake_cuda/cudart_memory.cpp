// Device memory, pinned host memory, copies.

#include <cstdlib>
#include <cstring>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "fake_cuda/scheduler.h"
#include "simt/memory.h"

namespace fake_cuda {

namespace {

size_t used_bytes[simt::kDevices] = {};

std::map<const char*, size_t>& pinned() {
  static auto& all = *new std::map<const char*, size_t>;
  return all;
}

enum class Place { device, pinned, pageable, nowhere };

Place place_of(const void* address, size_t bytes) {
  if (simt::device_of(address) >= 0) {
    return simt::is_live(address, bytes) ? Place::device : Place::nowhere;
  }
  const char* const at = static_cast<const char*>(address);
  auto after = pinned().upper_bound(at);
  if (after != pinned().begin()) {
    const auto& [begin, size] = *std::prev(after);
    if (at < begin + size) {
      return at + bytes <= begin + size ? Place::pinned : Place::nowhere;
    }
  }
  return Place::pageable;
}

bool fits(cudaMemcpyKind kind, Place to, Place from) {
  const bool to_device = to == Place::device;
  const bool from_device = from == Place::device;
  switch (kind) {
    case cudaMemcpyHostToHost:
      return !to_device && !from_device;
    case cudaMemcpyHostToDevice:
      return to_device && !from_device;
    case cudaMemcpyDeviceToHost:
      return !to_device && from_device;
    case cudaMemcpyDeviceToDevice:
      return to_device && from_device;
    case cudaMemcpyDefault:
      return true;
  }
  return false;
}

// Rows of a copy; a plain one has one row.
struct Copy {
  char* to;
  size_t to_pitch;
  const char* from;
  size_t from_pitch;
  size_t width;
  size_t height;
  cudaMemcpyKind kind;

  size_t to_extent() const { return height == 0 ? 0 : (height - 1) * to_pitch + width; }
  size_t from_extent() const { return height == 0 ? 0 : (height - 1) * from_pitch + width; }
};

void run_copy(const Copy& copy) {
  const bool to_device = simt::device_of(copy.to) >= 0;
  const bool from_device = simt::device_of(copy.from) >= 0;
  for (size_t row = 0; row < copy.height; ++row) {
    char* const to = copy.to + row * copy.to_pitch;
    const char* const from = copy.from + row * copy.from_pitch;
    std::memmove(to, from, copy.width);
    if (to_device && from_device) {
      simt::copy_written(from, to, copy.width);
    } else if (to_device) {
      simt::mark_written(to, copy.width);
    }
  }
}

cudaError_t copy_async(const char* function, Copy copy, cudaStream_t handle) {
  Scheduler& all = scheduler();
  CUstream_st* const stream = all.find(handle, current_device());
  if (stream == nullptr) {
    return misuse(cudaErrorInvalidResourceHandle, std::string(function) + ": no such stream");
  }
  if (copy.width == 0 || copy.height == 0) {
    return cudaSuccess;
  }
  const Place to = place_of(copy.to, copy.to_extent());
  const Place from = place_of(copy.from, copy.from_extent());
  if (to == Place::nowhere || from == Place::nowhere || copy.to_pitch < copy.width || copy.from_pitch < copy.width) {
    return misuse(cudaErrorInvalidValue, std::string(function) + ": memory that is not allocated, or a wrong pitch");
  }
  if (!fits(copy.kind, to, from)) {
    return misuse(cudaErrorInvalidMemcpyDirection,
                  std::string(function) + ": the direction does not fit the kinds of the two addresses");
  }
  if (to != Place::pageable && from != Place::pageable) {
    return all.submit(*stream, [copy] { run_copy(copy); });
  }
  if (stream->capture) {
    stream->capture->valid = false;
    return misuse(cudaErrorStreamCaptureUnsupported, std::string(function) + ": captured, but of pageable host memory");
  }
  ++all.statistics.pageable_copies;
  if (from == Place::pageable) {
    // The manual: staged before the call returns.
    auto staged = std::make_shared<std::string>(copy.from, copy.from_extent());
    copy.from = staged->data();
    return all.submit(*stream, [copy, staged] { run_copy(copy); });
  }
  // The manual: returns when the copy is complete.
  const cudaError_t status = all.submit(*stream, [copy] { run_copy(copy); });
  all.finish(*stream);
  return status;
}

// The functions without Async run on the default stream and wait for it.
cudaError_t copy_now(const char* function, const Copy& copy) {
  Scheduler& all = scheduler();
  if (all.capturing()) {
    return misuse(cudaErrorStreamCaptureUnsupported, std::string(function) + ": while a stream is captured");
  }
  const uint64_t pageable = all.statistics.pageable_copies;
  const cudaError_t status = copy_async(function, copy, nullptr);
  all.statistics.pageable_copies = pageable;
  if (status == cudaSuccess) {
    all.finish(*all.find(nullptr, current_device()));
  }
  const cudaError_t broken = all.broken[static_cast<size_t>(current_device())];
  return broken == cudaSuccess ? status : fail(broken);
}

cudaError_t set_async(const char* function, void* to, size_t pitch, int value, size_t width, size_t height,
                      cudaStream_t handle) {
  Scheduler& all = scheduler();
  CUstream_st* const stream = all.find(handle, current_device());
  if (stream == nullptr) {
    return misuse(cudaErrorInvalidResourceHandle, std::string(function) + ": no such stream");
  }
  if (width == 0 || height == 0) {
    return cudaSuccess;
  }
  if (pitch < width || place_of(to, (height - 1) * pitch + width) != Place::device) {
    return misuse(cudaErrorInvalidValue, std::string(function) + ": not the device's memory");
  }
  return all.submit(*stream, [=] {
    for (size_t row = 0; row < height; ++row) {
      std::memset(static_cast<char*>(to) + row * pitch, value, width);
      simt::mark_written(static_cast<char*>(to) + row * pitch, width);
    }
  });
}

Copy plain(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  return {static_cast<char*>(to), bytes, static_cast<const char*>(from), bytes, bytes, 1, kind};
}

}  // namespace

}  // namespace fake_cuda

using fake_cuda::current_device;
using fake_cuda::fail;
using fake_cuda::misuse;
using fake_cuda::plain;
using fake_cuda::scheduler;

extern "C" {

cudaError_t cudaMalloc(void** address, size_t bytes) {
  const std::lock_guard lock(scheduler().mutex);
  if (scheduler().capturing_strictly()) {
    return misuse(cudaErrorStreamCaptureUnsupported, "cudaMalloc: while a stream is captured");
  }
  const int device = current_device();
  size_t& used = fake_cuda::used_bytes[device];
  *address = nullptr;
  if (bytes > 0 && used + bytes <= scheduler().options.memory_bytes) {
    *address = simt::allocate_device(device, bytes);
  }
  if (*address == nullptr && bytes > 0) {
    return fail(cudaErrorMemoryAllocation);
  }
  used += bytes;
  scheduler().statistics.device_bytes += bytes;
  return cudaSuccess;
}

cudaError_t cudaFree(void* address) {
  if (address == nullptr) {
    return cudaSuccess;
  }
  const std::lock_guard lock(scheduler().mutex);
  const size_t bytes = simt::allocation_at(address);
  if (bytes == 0) {
    return misuse(cudaErrorInvalidValue, "cudaFree: not the address of an allocation");
  }
  const int device = simt::device_of(address);
  scheduler().finish_device(device);
  fake_cuda::used_bytes[device] -= bytes;
  scheduler().statistics.device_bytes -= bytes;
  simt::free_device(address);
  return cudaSuccess;
}

cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  const std::lock_guard lock(scheduler().mutex);
  *total = scheduler().options.memory_bytes;
  *free = *total - fake_cuda::used_bytes[current_device()];
  return cudaSuccess;
}

cudaError_t cudaHostAlloc(void** address, size_t bytes, unsigned) {
  const std::lock_guard lock(scheduler().mutex);
  *address = std::malloc(bytes);
  if (*address == nullptr) {
    return fail(cudaErrorMemoryAllocation);
  }
  // Nobody may count on what is there.
  std::memset(*address, 0xff, bytes);
  fake_cuda::pinned()[static_cast<char*>(*address)] = bytes;
  scheduler().statistics.pinned_bytes += bytes;
  return cudaSuccess;
}

cudaError_t cudaMallocHost(void** address, size_t bytes) { return cudaHostAlloc(address, bytes, cudaHostAllocDefault); }

cudaError_t cudaFreeHost(void* address) {
  if (address == nullptr) {
    return cudaSuccess;
  }
  const std::lock_guard lock(scheduler().mutex);
  const auto found = fake_cuda::pinned().find(static_cast<char*>(address));
  if (found == fake_cuda::pinned().end()) {
    return misuse(cudaErrorInvalidValue, "cudaFreeHost: not the address of pinned memory");
  }
  for (int device = 0; device < simt::kDevices; ++device) {
    scheduler().finish_device(device);
  }
  scheduler().statistics.pinned_bytes -= found->second;
  fake_cuda::pinned().erase(found);
  std::free(address);
  return cudaSuccess;
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* address) {
  const std::lock_guard lock(scheduler().mutex);
  *attributes = {};
  const int device = simt::device_of(address);
  attributes->device = device;
  switch (fake_cuda::place_of(address, 1)) {
    case fake_cuda::Place::device:
      attributes->type = cudaMemoryTypeDevice;
      attributes->devicePointer = const_cast<void*>(address);
      break;
    case fake_cuda::Place::pinned:
      attributes->type = cudaMemoryTypeHost;
      attributes->hostPointer = const_cast<void*>(address);
      break;
    default:
      attributes->type = cudaMemoryTypeUnregistered;
  }
  return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  const std::lock_guard lock(scheduler().mutex);
  return fake_cuda::copy_async("cudaMemcpyAsync", plain(to, from, bytes, kind), stream);
}

cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  const std::lock_guard lock(scheduler().mutex);
  return fake_cuda::copy_now("cudaMemcpy", plain(to, from, bytes, kind));
}

cudaError_t cudaMemcpy2DAsync(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,
                              size_t height, cudaMemcpyKind kind, cudaStream_t stream) {
  const std::lock_guard lock(scheduler().mutex);
  return fake_cuda::copy_async(
      "cudaMemcpy2DAsync",
      {static_cast<char*>(to), to_pitch, static_cast<const char*>(from), from_pitch, width, height, kind}, stream);
}

cudaError_t cudaMemcpy2D(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width, size_t height,
                         cudaMemcpyKind kind) {
  const std::lock_guard lock(scheduler().mutex);
  return fake_cuda::copy_now("cudaMemcpy2D", {static_cast<char*>(to), to_pitch, static_cast<const char*>(from),
                                              from_pitch, width, height, kind});
}

cudaError_t cudaMemcpyPeerAsync(void* to, int, const void* from, int, size_t bytes, cudaStream_t stream) {
  const std::lock_guard lock(scheduler().mutex);
  return fake_cuda::copy_async("cudaMemcpyPeerAsync", plain(to, from, bytes, cudaMemcpyDeviceToDevice), stream);
}

cudaError_t cudaMemsetAsync(void* to, int value, size_t bytes, cudaStream_t stream) {
  const std::lock_guard lock(scheduler().mutex);
  return fake_cuda::set_async("cudaMemsetAsync", to, bytes, value, bytes, 1, stream);
}

// Of device memory it does not wait either.
cudaError_t cudaMemset(void* to, int value, size_t bytes) {
  const std::lock_guard lock(scheduler().mutex);
  return fake_cuda::set_async("cudaMemset", to, bytes, value, bytes, 1, nullptr);
}

cudaError_t cudaMemset2DAsync(void* to, size_t pitch, int value, size_t width, size_t height, cudaStream_t stream) {
  const std::lock_guard lock(scheduler().mutex);
  return fake_cuda::set_async("cudaMemset2DAsync", to, pitch, value, width, height, stream);
}

}  // extern "C"
