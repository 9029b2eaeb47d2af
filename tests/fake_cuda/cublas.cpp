#include <cublas_v2.h>

#include <algorithm>
#include <string>
#include <vector>

#include "fake_cuda/device_check.h"
#include "fake_cuda/numbers.h"
#include "fake_cuda/scheduler.h"
#include "simt/memory.h"

struct cublasContext {
  int device = fake_cuda::current_device();
  cudaStream_t stream = nullptr;
  cublasMath_t math = CUBLAS_DEFAULT_MATH;
  cublasPointerMode_t pointers = CUBLAS_POINTER_MODE_HOST;
  void* workspace = nullptr;
  size_t workspace_bytes = 0;
};

namespace fake_cuda {

namespace {

// Column-major, as the manual has it: element (i, j) of a stored matrix lies at i + j * ld.
struct Matrix {
  float* data;
  int rows;
  int columns;
  int ld;
  long long stride;  // between those of a batch

  size_t extent(int batch) const {
    if (rows == 0 || columns == 0 || batch == 0) {
      return 0;
    }
    return (static_cast<size_t>(columns - 1) * static_cast<size_t>(ld) + static_cast<size_t>(rows) +
            static_cast<size_t>(batch - 1) * static_cast<size_t>(stride)) *
           sizeof(float);
  }
  float* column(int j, int of_batch) const {
    return data + static_cast<ptrdiff_t>(of_batch) * stride + static_cast<ptrdiff_t>(j) * ld;
  }
};

struct Gemm {
  cublasOperation_t op_a;
  cublasOperation_t op_b;
  int m;
  int n;
  int k;
  float alpha;
  Matrix a;
  Matrix b;
  float beta;
  Matrix c;
  int batch;
  bool tf32;
};

// The rows of op(m), or with `columns` its columns, one after the other.
std::vector<float> gathered(const Matrix& matrix, bool transposed, bool columns, int of_batch, bool tf32) {
  const bool along = transposed != columns;
  const int outer = along ? matrix.columns : matrix.rows;
  const int inner = along ? matrix.rows : matrix.columns;
  std::vector<float> values;
  values.reserve(static_cast<size_t>(outer) * static_cast<size_t>(inner));
  for (int o = 0; o < outer; ++o) {
    for (int i = 0; i < inner; ++i) {
      const float value = along ? matrix.column(o, of_batch)[i] : matrix.column(i, of_batch)[o];
      values.push_back(tf32 ? to_tf32(value) : value);
    }
  }
  return values;
}

void check_matrix(const char* what, const Matrix& matrix, int batch) {
  for (int b = 0; b < batch; ++b) {
    for (int j = 0; j < matrix.columns; ++j) {
      check_read("cuBLAS gemm", what, matrix.column(j, b), static_cast<size_t>(matrix.rows) * sizeof(float));
    }
  }
}

void run(const Gemm& gemm) {
  if (gemm.k > 0) {
    check_matrix("A", gemm.a, gemm.batch);
    check_matrix("B", gemm.b, gemm.batch);
  }
  if (gemm.beta != 0.0F) {
    check_matrix("C", gemm.c, gemm.batch);
  }
  const auto length = static_cast<size_t>(gemm.k);
  for (int batch = 0; batch < gemm.batch; ++batch) {
    const std::vector<float> rows = gathered(gemm.a, gemm.op_a != CUBLAS_OP_N, false, batch, gemm.tf32);
    const std::vector<float> columns = gathered(gemm.b, gemm.op_b != CUBLAS_OP_N, true, batch, gemm.tf32);
    for (int j = 0; j < gemm.n; ++j) {
      float* const out = gemm.c.column(j, batch);
      for (int i = 0; i < gemm.m; ++i) {
        const float sum = dot(rows.data() + static_cast<size_t>(i) * length,
                              columns.data() + static_cast<size_t>(j) * length, length);
        // With beta 0 the manual lets C hold anything.
        out[i] = gemm.beta == 0.0F ? gemm.alpha * sum : gemm.alpha * sum + gemm.beta * out[i];
      }
      simt::mark_written(out, static_cast<size_t>(gemm.m) * sizeof(float));
    }
  }
}

cublasStatus_t submit(cublasHandle_t handle, const Gemm& gemm) {
  if (handle == nullptr) {
    return CUBLAS_STATUS_NOT_INITIALIZED;
  }
  const auto least = [](int rows) { return std::max(1, rows); };
  if (gemm.m < 0 || gemm.n < 0 || gemm.k < 0 || gemm.batch < 0 || gemm.a.ld < least(gemm.a.rows) ||
      gemm.b.ld < least(gemm.b.rows) || gemm.c.ld < least(gemm.m)) {
    misuse(cudaSuccess, "cuBLAS gemm: a negative size, or a leading dimension below the rows of its matrix");
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  if (handle->device != current_device()) {
    misuse(cudaSuccess, "cuBLAS gemm: the handle is of another device than the current one");
    return CUBLAS_STATUS_NOT_INITIALIZED;
  }
  if (gemm.m == 0 || gemm.n == 0 || gemm.batch == 0) {
    return CUBLAS_STATUS_SUCCESS;
  }
  const size_t inputs = gemm.k > 0 ? 1 : 0;
  if (!usable("cuBLAS gemm", "A", gemm.a.data, inputs * gemm.a.extent(gemm.batch), handle->device) ||
      !usable("cuBLAS gemm", "B", gemm.b.data, inputs * gemm.b.extent(gemm.batch), handle->device) ||
      !usable("cuBLAS gemm", "C", gemm.c.data, gemm.c.extent(gemm.batch), handle->device) ||
      !usable("cuBLAS gemm", "the workspace", handle->workspace, handle->workspace_bytes, handle->device)) {
    return CUBLAS_STATUS_EXECUTION_FAILED;
  }
  const std::lock_guard lock(scheduler().mutex);
  CUstream_st* const stream = scheduler().find(handle->stream, handle->device);
  if (stream == nullptr) {
    misuse(cudaSuccess, "cuBLAS gemm: the handle's stream is gone");
    return CUBLAS_STATUS_EXECUTION_FAILED;
  }
  const cudaError_t status =
      scheduler().submit(*stream, [gemm, workspace = handle->workspace, bytes = handle->workspace_bytes] {
        scribble(workspace, bytes);
        run(gemm);
      });
  return status == cudaSuccess ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}

Matrix stored(const void* data, cublasOperation_t op, int rows, int columns, int ld, long long stride) {
  const bool as_is = op == CUBLAS_OP_N;
  return {static_cast<float*>(const_cast<void*>(data)), as_is ? rows : columns, as_is ? columns : rows, ld, stride};
}

bool by_host_pointer(cublasHandle_t handle) {
  if (handle != nullptr && handle->pointers == CUBLAS_POINTER_MODE_DEVICE) {
    misuse(cudaSuccess, "cuBLAS gemm: the stand-in takes alpha and beta from the host only");
    return false;
  }
  return true;
}

}  // namespace

}  // namespace fake_cuda

using fake_cuda::stored;

extern "C" {

cublasStatus_t cublasCreate_v2(cublasHandle_t* handle) {
  const std::lock_guard lock(fake_cuda::scheduler().mutex);
  *handle = new cublasContext;
  ++fake_cuda::scheduler().statistics.handles;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasDestroy_v2(cublasHandle_t handle) {
  const std::lock_guard lock(fake_cuda::scheduler().mutex);
  // The manual: waits for the device.
  fake_cuda::scheduler().finish_device(handle->device);
  delete handle;
  --fake_cuda::scheduler().statistics.handles;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream) {
  handle->stream = stream;
  // The manual: the workspace falls back to the library's own.
  handle->workspace = nullptr;
  handle->workspace_bytes = 0;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGetStream_v2(cublasHandle_t handle, cudaStream_t* stream) {
  *stream = handle->stream;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t handle, void* workspace, size_t bytes) {
  if (reinterpret_cast<uintptr_t>(workspace) % 256 != 0) {
    fake_cuda::misuse(cudaSuccess, "cublasSetWorkspace: not aligned to 256 bytes");
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  handle->workspace = workspace;
  handle->workspace_bytes = bytes;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode) {
  handle->math = mode;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGetMathMode(cublasHandle_t handle, cublasMath_t* mode) {
  *mode = handle->math;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetPointerMode_v2(cublasHandle_t handle, cublasPointerMode_t mode) {
  handle->pointers = mode;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGetVersion_v2(cublasHandle_t, int* version) {
  *version = CUBLAS_VERSION;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGetProperty(libraryPropertyType type, int* value) {
  *value = type == MAJOR_VERSION ? CUBLAS_VER_MAJOR : type == MINOR_VERSION ? CUBLAS_VER_MINOR : CUBLAS_VER_PATCH;
  return CUBLAS_STATUS_SUCCESS;
}

const char* cublasGetStatusName(cublasStatus_t status) {
  return status == CUBLAS_STATUS_SUCCESS ? "CUBLAS_STATUS_SUCCESS" : "CUBLAS_STATUS_EXECUTION_FAILED";
}

const char* cublasGetStatusString(cublasStatus_t status) {
  return status == CUBLAS_STATUS_SUCCESS ? "success" : "the function failed";
}

cublasStatus_t cublasSgemm_v2(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b, int m, int n,
                              int k, const float* alpha, const float* a, int lda, const float* b, int ldb,
                              const float* beta, float* c, int ldc) {
  return cublasSgemmStridedBatched(handle, op_a, op_b, m, n, k, alpha, a, lda, 0, b, ldb, 0, beta, c, ldc, 0, 1);
}

cublasStatus_t cublasSgemmStridedBatched(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b, int m,
                                         int n, int k, const float* alpha, const float* a, int lda, long long stride_a,
                                         const float* b, int ldb, long long stride_b, const float* beta, float* c,
                                         int ldc, long long stride_c, int batch) {
  if (!fake_cuda::by_host_pointer(handle)) {
    return CUBLAS_STATUS_NOT_SUPPORTED;
  }
  const bool tf32 = handle != nullptr && (handle->math & 0xf) == CUBLAS_TF32_TENSOR_OP_MATH;
  return fake_cuda::submit(
      handle, {op_a, op_b, m, n, k, *alpha, stored(a, op_a, m, k, lda, stride_a), stored(b, op_b, k, n, ldb, stride_b),
               *beta, stored(c, CUBLAS_OP_N, m, n, ldc, stride_c), batch, tf32});
}

cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b, int m, int n, int k,
                            const void* alpha, const void* a, cudaDataType type_a, int lda, const void* b,
                            cudaDataType type_b, int ldb, const void* beta, void* c, cudaDataType type_c, int ldc,
                            cublasComputeType_t compute, cublasGemmAlgo_t) {
  const bool floats = type_a == CUDA_R_32F && type_b == CUDA_R_32F && type_c == CUDA_R_32F;
  const bool tf32 = compute == CUBLAS_COMPUTE_32F_FAST_TF32 || (handle != nullptr && compute == CUBLAS_COMPUTE_32F &&
                                                                (handle->math & 0xf) == CUBLAS_TF32_TENSOR_OP_MATH);
  if (!floats || !fake_cuda::by_host_pointer(handle)) {
    return CUBLAS_STATUS_NOT_SUPPORTED;
  }
  return fake_cuda::submit(handle, {op_a, op_b, m, n, k, *static_cast<const float*>(alpha),
                                    stored(a, op_a, m, k, lda, 0), stored(b, op_b, k, n, ldb, 0),
                                    *static_cast<const float*>(beta), stored(c, CUBLAS_OP_N, m, n, ldc, 0), 1, tf32});
}

}  // extern "C"
