#include "engine/cuda/handles.h"

#include "engine/cuda/check.h"

namespace gle::cuda {

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
