#include "engine/cuda/check.h"

#include "engine/cuda/handles.h"
#include "engine/error.h"

namespace gle::cuda {

void check(cudaError_t status, const char* op) {
  if (status == cudaSuccess) [[likely]] {
    return;
  }
  (void)cudaGetLastError();
  fail(status == cudaErrorMemoryAllocation ? ErrorCode::memory : ErrorCode::runtime, op, ": ", cudaGetErrorName(status),
       ": ", cudaGetErrorString(status));
}

Stream new_stream(const char* op) {
  cudaStream_t stream = nullptr;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), op);
  return Stream(stream);
}

Event new_event(const char* op) {
  cudaEvent_t event = nullptr;
  check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), op);
  return Event(event);
}

}  // namespace gle::cuda
