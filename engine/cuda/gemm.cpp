// Matrix products by cuBLAS, which counts by columns: our row-major c = a b is its c' = b' a', with the same
// transpositions, and a pitch is its leading dimension. A bias is added by a kernel of our own.
#include <algorithm>
#include <cstdint>
#include <limits>

#include "engine/cuda/blas.h"
#include "engine/cuda/cuda_backend.h"
#include "engine/error.h"

namespace gle::cuda {

namespace {

constexpr size_t kScratchAlignment = 256;

int fits(int64_t size) {
  if (size > std::numeric_limits<int>::max()) {
    fail(ErrorCode::usage, "gemm: a side of ", size, " is more than cuBLAS can count; split the matrix");
  }
  return static_cast<int>(size);
}

}  // namespace

void check(cublasStatus_t status, const char* op) {
  if (status != CUBLAS_STATUS_SUCCESS) [[unlikely]] {
    fail(status == CUBLAS_STATUS_ALLOC_FAILED ? ErrorCode::memory : ErrorCode::runtime, op,
         ": cuBLAS: ", cublasGetStatusString(status));
  }
}

Blas::Blas(const CudaRuntime& runtime, CachingAllocator& allocator, const CudaOptions& options) {
  const size_t bytes = size_t{runtime.major >= 9 ? 32U : 8U} << 20;  // what NVIDIA advises
  scratch_ = allocator.allocate(bytes + kScratchAlignment, "cuBLAS");
  const auto address = reinterpret_cast<uintptr_t>(scratch_.data());
  std::byte* aligned = scratch_.data() + (kScratchAlignment - address % kScratchAlignment) % kScratchAlignment;

  cublasHandle_t handle = nullptr;
  check(cublasCreate(&handle), "cuda");
  handle_ = Owned<cublasHandle_t, cublasDestroy_v2>(handle);
  check(cublasSetStream(handle, runtime.compute.get()), "cuda");  // first: it puts the default scratch back
  check(cublasSetWorkspace(handle, aligned, bytes), "cuda");
  check(cublasSetMathMode(handle, options.tf32 ? CUBLAS_TF32_TENSOR_OP_MATH : CUBLAS_DEFAULT_MATH), "cuda");
}

void CudaBackend::gemm(const Tensor& a, Transpose op_a, const Tensor& b, Transpose op_b, const Tensor& bias,
                       const GradTarget& c) {
  const auto operation = [](Transpose t) { return t == Transpose::no ? CUBLAS_OP_N : CUBLAS_OP_T; };
  const float one = 1;
  const float keep = c.mode == Accumulate::add ? 1.0F : 0.0F;
  const int64_t inner = op_a == Transpose::no ? a.channels() : a.rows();
  runtime_->begin("gemm");
  check(cublasSgemm(blas_->handle(), operation(op_b), operation(op_a), fits(c.grad.channels()), fits(c.grad.rows()),
                    fits(inner), &one, b.data(), fits(b.pitch()), a.data(), fits(a.pitch()), &keep, c.grad.data(),
                    fits(c.grad.pitch())),
        "gemm");
  if (bias) {
    bias_activation("gemm", bias, kIdentity, c.grad);
  }
}

}  // namespace gle::cuda
