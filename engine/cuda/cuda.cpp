#include "engine/cuda/cuda.h"

#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <cudnn.h>

#include <sstream>

#include "engine/cuda/check.h"
#include "engine/cuda/cuda_backend.h"
#include "engine/error.h"

namespace gle {

namespace cuda {

namespace {

std::string dotted(int version) { return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10); }

std::string versions() {
  int driver = 0;
  int runtime = 0;
  (void)cudaDriverGetVersion(&driver);
  (void)cudaRuntimeGetVersion(&runtime);
  std::ostringstream text;
  text << "driver " << (driver == 0 ? "none" : dotted(driver)) << ", runtime " << dotted(runtime) << ", cuBLAS ";
  for (const libraryPropertyType part : {MAJOR_VERSION, MINOR_VERSION, PATCH_LEVEL}) {
    int number = 0;
    (void)cublasGetProperty(part, &number);
    text << (part == MAJOR_VERSION ? "" : ".") << number;
  }
  const size_t cudnn = cudnnGetVersion();
  text << ", cuDNN " << cudnn / 10000 << "." << cudnn / 100 % 100 << "." << cudnn % 100;
  return text.str();
}

}  // namespace

Report report() {
  Report found;
  found.versions = versions();
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  (void)cudaGetLastError();
  switch (status) {
    case cudaSuccess:
      break;
    case cudaErrorStubLibrary:
      found.missing = "the CUDA driver found is the toolkit's stub, not a real one";
      return found;
    case cudaErrorInsufficientDriver:
      found.missing = "no NVIDIA driver, or one older than this build needs (" + found.versions + ")";
      return found;
    case cudaErrorNoDevice:
      found.missing = "no NVIDIA GPU is visible (CUDA_VISIBLE_DEVICES may hide it)";
      return found;
    default:
      check(status, "cuda");
  }
  if (count == 0) {
    found.missing = "no NVIDIA GPU is visible (CUDA_VISIBLE_DEVICES may hide it)";
  }
  for (int i = 0; i < count; ++i) {
    cudaDeviceProp p;
    check(cudaGetDeviceProperties(&p, i), "cuda");
    found.devices.push_back({p.name, p.major, p.minor, p.multiProcessorCount, p.totalGlobalMem});
  }
  return found;
}

}  // namespace cuda

std::unique_ptr<Backend> make_cuda_backend(const CudaOptions& options) {
  const cuda::Report found = cuda::report();
  if (!found.missing.empty()) {
    fail(ErrorCode::runtime, "cuda: ", found.missing, ". Use --device cpu, or --device auto to take what there is.");
  }
  return std::make_unique<cuda::CudaBackend>(options);
}

}  // namespace gle
