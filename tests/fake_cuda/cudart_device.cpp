// Devices, errors, kernels.

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "fake_cuda/scheduler.h"
#include "simt/emulator.h"
#include "simt/kernel_call.h"
#include "simt/memory.h"
#include "simt/shared_memory.h"

namespace fake_cuda {

namespace {

thread_local cudaError_t last_error = cudaSuccess;
thread_local int chosen_device = 0;

constexpr size_t kSharedOptIn = 163 * 1024;
constexpr size_t kSharedUsual = 48 * 1024;

// As CUDA_VISIBLE_DEVICES has it: as many as it lists.
int visible_devices() {
  const char* const list = std::getenv("CUDA_VISIBLE_DEVICES");
  if (list == nullptr) {
    return options().devices;
  }
  const std::string_view text(list);
  const auto listed = text.empty() ? 0 : 1 + std::count(text.begin(), text.end(), ',');
  return std::min(options().devices, static_cast<int>(listed));
}

bool exists(int device) { return device >= 0 && device < visible_devices(); }

struct ErrorName {
  cudaError_t status;
  const char* name;
  const char* text;
};

constexpr ErrorName kErrors[] = {
    {cudaSuccess, "cudaSuccess", "no error"},
    {cudaErrorInvalidValue, "cudaErrorInvalidValue", "invalid argument"},
    {cudaErrorMemoryAllocation, "cudaErrorMemoryAllocation", "out of memory"},
    {cudaErrorInitializationError, "cudaErrorInitializationError", "initialization error"},
    {cudaErrorInvalidConfiguration, "cudaErrorInvalidConfiguration", "invalid configuration argument"},
    {cudaErrorInvalidMemcpyDirection, "cudaErrorInvalidMemcpyDirection", "invalid copy direction for memcpy"},
    {cudaErrorInsufficientDriver, "cudaErrorInsufficientDriver",
     "CUDA driver version is insufficient for CUDA runtime version"},
    {cudaErrorStubLibrary, "cudaErrorStubLibrary", "CUDA driver is a stub library"},
    {cudaErrorNoDevice, "cudaErrorNoDevice", "no CUDA-capable device is detected"},
    {cudaErrorInvalidDevice, "cudaErrorInvalidDevice", "invalid device ordinal"},
    {cudaErrorInvalidResourceHandle, "cudaErrorInvalidResourceHandle", "invalid resource handle"},
    {cudaErrorNotReady, "cudaErrorNotReady", "device not ready"},
    {cudaErrorIllegalAddress, "cudaErrorIllegalAddress", "an illegal memory access was encountered"},
    {cudaErrorLaunchFailure, "cudaErrorLaunchFailure", "unspecified launch failure"},
    {cudaErrorStreamCaptureUnsupported, "cudaErrorStreamCaptureUnsupported",
     "operation not permitted when stream is capturing"},
    {cudaErrorStreamCaptureInvalidated, "cudaErrorStreamCaptureInvalidated",
     "operation failed due to a previous error during capture"},
    {cudaErrorStreamCaptureUnmatched, "cudaErrorStreamCaptureUnmatched", "no capture of this stream is under way"},
    {cudaErrorStreamCaptureUnjoined, "cudaErrorStreamCaptureUnjoined", "capturing stream has unjoined work"},
    {cudaErrorGraphExecUpdateFailure, "cudaErrorGraphExecUpdateFailure",
     "the graph update was not performed because it included changes which violated constraints"},
    {cudaErrorIllegalState, "cudaErrorIllegalState", "the operation cannot be performed in the present state"},
};

const ErrorName& find_error(cudaError_t status) {
  const auto found = std::find_if(std::begin(kErrors), std::end(kErrors),
                                  [&](const ErrorName& error) { return error.status == status; });
  static constexpr ErrorName unknown{cudaErrorUnknown, "cudaErrorUnknown", "unknown error"};
  return found == std::end(kErrors) ? unknown : *found;
}

std::map<const void*, int>& dynamic_shared_limits() {
  static auto& limits = *new std::map<const void*, int>;
  return limits;
}

size_t shared_limit(const void* function) {
  const auto found = dynamic_shared_limits().find(function);
  return found == dynamic_shared_limits().end() ? kSharedUsual
                                                : std::max(kSharedUsual, static_cast<size_t>(found->second));
}

bool refused(const simt::KernelCall& call) {
  const uint64_t threads = uint64_t{call.block.x} * call.block.y * call.block.z;
  const uint64_t blocks = uint64_t{call.grid.x} * call.grid.y * call.grid.z;
  return threads == 0 || threads > 1024 || call.block.z > 64 || blocks == 0 || call.grid.x > 0x7fffffffU ||
         call.grid.y > 65535 || call.grid.z > 65535;
}

}  // namespace

int current_device() { return chosen_device; }

cudaError_t fail(cudaError_t status) {
  last_error = status;
  return status;
}

}  // namespace fake_cuda

using fake_cuda::scheduler;

cudaError_t simt::enqueue(cudaStream_t handle, KernelCall call) {
  const std::lock_guard lock(scheduler().mutex);
  CUstream_st* const stream = scheduler().find(handle, fake_cuda::current_device());
  if (stream == nullptr || stream->device != fake_cuda::current_device()) {
    return fake_cuda::misuse(cudaErrorInvalidResourceHandle,
                             std::string(call.op) + ": kernel on a stream that is gone or of another device");
  }
  if (fake_cuda::refused(call)) {
    return fake_cuda::fail(cudaErrorInvalidConfiguration);
  }
  if (call.shared_bytes > fake_cuda::shared_limit(call.function)) {
    return fake_cuda::fail(cudaErrorInvalidValue);
  }
  ++scheduler().statistics.kernels;
  const int device = stream->device;
  return scheduler().submit(*stream, [call = std::move(call), device] {
    if (!simt::run(call, device)) {
      scheduler().broken[static_cast<size_t>(device)] = cudaErrorIllegalAddress;
    }
  });
}

extern "C" {

cudaError_t cudaGetDeviceCount(int* count) {
  const auto& options = fake_cuda::options();
  if (options.device_count_status != cudaSuccess) {
    return fake_cuda::fail(options.device_count_status);
  }
  *count = fake_cuda::visible_devices();
  return *count > 0 ? cudaSuccess : fake_cuda::fail(cudaErrorNoDevice);
}

cudaError_t cudaSetDevice(int device) {
  if (!fake_cuda::exists(device)) {
    return fake_cuda::fail(cudaErrorInvalidDevice);
  }
  fake_cuda::chosen_device = device;
  return cudaSuccess;
}

cudaError_t cudaGetDevice(int* device) {
  *device = fake_cuda::chosen_device;
  return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  if (!fake_cuda::exists(device)) {
    return fake_cuda::fail(cudaErrorInvalidDevice);
  }
  *properties = {};
  std::strcpy(properties->name, "Emulated GPU");
  properties->totalGlobalMem = fake_cuda::options().memory_bytes;
  properties->sharedMemPerBlock = fake_cuda::kSharedUsual;
  properties->sharedMemPerBlockOptin = fake_cuda::kSharedOptIn;
  properties->sharedMemPerMultiprocessor = fake_cuda::kSharedOptIn + 1024;
  properties->reservedSharedMemPerBlock = 1024;
  properties->regsPerBlock = 65536;
  properties->regsPerMultiprocessor = 65536;
  properties->warpSize = 32;
  properties->maxThreadsPerBlock = 1024;
  properties->maxThreadsPerMultiProcessor = 2048;
  properties->maxBlocksPerMultiProcessor = 32;
  properties->maxThreadsDim[0] = properties->maxThreadsDim[1] = 1024;
  properties->maxThreadsDim[2] = 64;
  properties->maxGridSize[0] = 0x7fffffff;
  properties->maxGridSize[1] = properties->maxGridSize[2] = 65535;
  properties->major = 8;
  properties->minor = 0;
  properties->multiProcessorCount = 4;
  properties->l2CacheSize = 40 << 20;
  properties->memoryBusWidth = 5120;
  properties->asyncEngineCount = 2;
  properties->concurrentKernels = 1;
  properties->unifiedAddressing = 1;
  properties->pciDeviceID = device;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  cudaDeviceProp properties;
  const cudaError_t status = cudaGetDeviceProperties(&properties, device);
  if (status != cudaSuccess) {
    return status;
  }
  switch (attribute) {
    case cudaDevAttrMultiProcessorCount:
      *value = properties.multiProcessorCount;
      return cudaSuccess;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
      *value = static_cast<int>(properties.sharedMemPerBlockOptin);
      return cudaSuccess;
    case cudaDevAttrMaxSharedMemoryPerBlock:
      *value = static_cast<int>(properties.sharedMemPerBlock);
      return cudaSuccess;
    case cudaDevAttrComputeCapabilityMajor:
      *value = properties.major;
      return cudaSuccess;
    case cudaDevAttrComputeCapabilityMinor:
      *value = properties.minor;
      return cudaSuccess;
    case cudaDevAttrClockRate:
      *value = 1410000;
      return cudaSuccess;
    case cudaDevAttrMemoryClockRate:
      *value = 1215000;
      return cudaSuccess;
    case cudaDevAttrGlobalMemoryBusWidth:
      *value = properties.memoryBusWidth;
      return cudaSuccess;
    default:
      return fake_cuda::misuse(cudaErrorInvalidValue,
                               "cudaDeviceGetAttribute: the stand-in knows no attribute " + std::to_string(attribute));
  }
}

cudaError_t cudaDriverGetVersion(int* version) {
  *version = fake_cuda::options().device_count_status == cudaSuccess ? CUDART_VERSION : 0;
  return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}

cudaError_t cudaGetLastError() { return std::exchange(fake_cuda::last_error, cudaSuccess); }
cudaError_t cudaPeekAtLastError() { return fake_cuda::last_error; }
const char* cudaGetErrorName(cudaError_t status) { return fake_cuda::find_error(status).name; }
const char* cudaGetErrorString(cudaError_t status) { return fake_cuda::find_error(status).text; }

cudaError_t cudaFuncSetAttribute(const void* function, cudaFuncAttribute attribute, int value) {
  if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize || value < 0 ||
      static_cast<size_t>(value) > fake_cuda::kSharedOptIn) {
    return fake_cuda::fail(cudaErrorInvalidValue);
  }
  const std::lock_guard lock(scheduler().mutex);
  fake_cuda::dynamic_shared_limits()[function] = value;
  return cudaSuccess;
}

}  // extern "C"
