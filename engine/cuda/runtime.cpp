#include "engine/cuda/runtime.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <string_view>

#include "engine/cuda/check.h"
#include "engine/error.h"

namespace gle::cuda {

CudaRuntime::CudaRuntime(const CudaOptions& options) : device(options.device), memory(options.device) {
  int devices = 0;
  check(cudaGetDeviceCount(&devices), "cuda");
  if (device < 0 || device >= devices) {
    fail(ErrorCode::usage, "cuda:", device, ": this machine has ", devices, devices == 1 ? " GPU" : " GPUs",
         ", numbered from 0");
  }
  check(cudaSetDevice(device), "cuda");
  cudaDeviceProp properties;
  check(cudaGetDeviceProperties(&properties, device), "cuda");
  multiprocessors = properties.multiProcessorCount;
  major = properties.major;
  std::ostringstream text;
  text << "cuda:" << device << ", " << properties.name << ", " << (options.tf32 ? "tf32" : "fp32")
       << (options.deterministic ? ", deterministic" : "") << (options.graphs ? ", graphs" : "");
  description = text.str();

  compute = new_stream("cuda");
  copies = new_stream("cuda");
  step_begun = new_event("cuda");
  arrived = new_event("cuda");
  void* place = nullptr;
  check(cudaMallocHost(&place, kLandingBytes), "cuda");
  landing_ = Owned<void*, cudaFreeHost>(place);
  check(cudaMalloc(&place, sizeof(DeviceStatus)), "cuda");
  status_memory_ = Owned<void*, cudaFree>(place);
  status = static_cast<DeviceStatus*>(place);
  check(cudaMemsetAsync(status, 0, sizeof(DeviceStatus), compute.get()), "cuda");
  const char* blocking = std::getenv("GLE_CUDA_BLOCKING");
  blocking_ = blocking && std::string_view(blocking) == "1";
}

CudaRuntime::~CudaRuntime() {
  (void)cudaSetDevice(device);
  (void)cudaStreamSynchronize(compute.get());
  (void)cudaStreamSynchronize(copies.get());
}

void CudaRuntime::begin(const char* op) const {
  check(cudaSetDevice(device), op);
  if (blocking_ && !graph.recording()) {
    wait();
  }
  ops_[begun_++ % kRemembered] = op;
}

void CudaRuntime::wait() const {
  const cudaError_t error = cudaStreamSynchronize(compute.get());
  if (error == cudaSuccess) [[likely]] {
    return;
  }
  (void)cudaGetLastError();
  std::ostringstream names;
  const size_t suspects = blocking_ ? 1 : kRemembered;
  for (size_t i = 0; i < std::min(begun_, suspects); ++i) {
    names << (i == 0 ? "" : ", ") << ops_[(begun_ - 1 - i) % kRemembered];
  }
  fail(ErrorCode::runtime, blocking_ ? "" : "one of the last ops, newest first: ", names.str(), ": cuda:", device, ": ",
       cudaGetErrorName(error), ": ", cudaGetErrorString(error),
       blocking_ ? "" : ". GLE_CUDA_BLOCKING=1 tells which op it was",
       ". This process cannot use the device any more: start again from the last checkpoint.");
}

void CudaRuntime::synchronise() const { fetch(nullptr, 0, nullptr); }

void CudaRuntime::fetch(const void* from, size_t bytes, void* host) const {
  invariant(bytes + sizeof(DeviceStatus) <= kLandingBytes, "a result too large to fetch");
  require_waiting("waiting for a result");
  check(cudaSetDevice(device), "cuda");
  auto* landing = static_cast<std::byte*>(landing_.get());
  // Errors of the copies are those of the ops before them: wait() finds them again and names these.
  (void)cudaMemcpyAsync(landing, status, sizeof(DeviceStatus), cudaMemcpyDeviceToHost, compute.get());
  if (bytes > 0) {
    (void)cudaMemcpyAsync(landing + sizeof(DeviceStatus), from, bytes, cudaMemcpyDeviceToHost, compute.get());
  }
  wait();
  DeviceStatus found;
  std::memcpy(&found, landing, sizeof(found));
  if (found.what != DeviceStatus::nothing) {
    check(cudaMemsetAsync(status, 0, sizeof(DeviceStatus), compute.get()), "cuda");
    fail(ErrorCode::data, "labels: label ", found.label, " of sample ", found.sample, " is not one of ", found.classes,
         " classes");
  }
  if (bytes > 0) {
    std::memcpy(host, landing + sizeof(DeviceStatus), bytes);
  }
}

void CudaRuntime::require_waiting(const char* what) const {
  if (graph.recording()) {
    fail(ErrorCode::usage, "run_step: ", what,
         " inside a step that goes to the GPU as one graph; do it after the step");
  }
}

}  // namespace gle::cuda
