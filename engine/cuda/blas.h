#pragma once

#include <cublas_v2.h>

#include "engine/buffer.h"
#include "engine/cuda/cuda.h"
#include "engine/cuda/handles.h"
#include "engine/cuda/runtime.h"

namespace gle::cuda {

void check(cublasStatus_t status, const char* op);

// cuBLAS on the compute stream, in scratch of its own: with one stream and fixed scratch its results are the same every
// time.
class Blas {
 public:
  Blas(const CudaRuntime& runtime, CachingAllocator& allocator, const CudaOptions& options);

  cublasHandle_t handle() const { return handle_.get(); }

 private:
  Buffer scratch_;
  Owned<cublasHandle_t, cublasDestroy_v2> handle_;
};

}  // namespace gle::cuda
