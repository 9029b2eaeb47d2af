// A build without CUDA.
#include "engine/cuda/cuda.h"
#include "engine/error.h"

namespace gle {

cuda::Report cuda::report() { return {.devices = {}, .missing = "this build has no CUDA", .versions = ""}; }

std::unique_ptr<Backend> make_cuda_backend(const CudaOptions&) {
  fail(ErrorCode::runtime,
       "cuda: this build has no CUDA. Use --device cpu or auto, or build with -DGLE_CUDA=ON where CUDA and cuDNN are "
       "installed.");
}

}  // namespace gle
