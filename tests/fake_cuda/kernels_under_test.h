#pragma once

#include <cuda_runtime_api.h>

namespace fake_cuda::test {

// y = factor * x, on this stream.
void scale(cudaStream_t stream, float factor, const float* x, float* y, int n);

}  // namespace fake_cuda::test
