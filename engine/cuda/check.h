#pragma once

#include <cuda_runtime_api.h>

namespace gle::cuda {

// Throws for anything but success, with the op and what CUDA says: ErrorCode::memory where memory is short, else
// runtime. Clears the error, so that the next call does not find it.
void check(cudaError_t status, const char* op);

}  // namespace gle::cuda
