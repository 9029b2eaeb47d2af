#pragma once

#include <cuda_runtime_api.h>

#include "engine/error.h"

namespace gle::cuda {

// Whether CUDA speaks of something that ran before, and not of the call that returned it.
inline bool is_earlier_fault(cudaError_t status) {
  return status == cudaErrorIllegalAddress || status == cudaErrorMisalignedAddress ||
         status == cudaErrorIllegalInstruction || status == cudaErrorLaunchFailure || status == cudaErrorAssert ||
         status == cudaErrorHardwareStackError || status == cudaErrorInvalidAddressSpace ||
         status == cudaErrorInvalidPc || status == cudaErrorECCUncorrectable || status == cudaErrorLaunchTimeout;
}

// Throws for anything but success, with the op and what CUDA says: ErrorCode::memory where memory is short, else
// runtime. Clears the error, so that the next call does not find it.
inline void check(cudaError_t status, const char* op) {
  if (status == cudaSuccess) [[likely]] {
    return;
  }
  (void)cudaGetLastError();
  if (is_earlier_fault(status)) {
    fail(ErrorCode::runtime, "an op before ", op, ": ", cudaGetErrorName(status), ": ", cudaGetErrorString(status),
         ". GLE_CUDA_BLOCKING=1 tells which. This process cannot use the device any more: start again from the last "
         "checkpoint.");
  }
  fail(status == cudaErrorMemoryAllocation ? ErrorCode::memory : ErrorCode::runtime, op, ": ", cudaGetErrorName(status),
       ": ", cudaGetErrorString(status));
}

}  // namespace gle::cuda
