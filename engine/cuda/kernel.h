#pragma once

// The header of a kernel file. The same source is compiled by nvcc for a GPU and by the host compiler for the emulator
// of tests/simt, so a kernel is plain CUDA C++ but for three things: GLE_SHARED and GLE_DYNAMIC_SHARED instead of
// __shared__, and launch() instead of <<<>>>.

#include <cuda_runtime_api.h>

#include <cstddef>
#include <tuple>

#include "engine/cuda/check.h"
#include "engine/error.h"

#ifdef __CUDACC__
// T name[count], one per block and aligned for float4. An array of rows: `using Row = float[33]; GLE_SHARED(Row, t,
// 32)`.
#define GLE_SHARED(T, name, count) __shared__ __align__(16) T name[count]
// T* name: the shared_bytes of the launch. All of a kernel's names stand for the same memory.
#define GLE_DYNAMIC_SHARED(T, name)                                   \
  extern __shared__ __align__(16) unsigned char gle_dynamic_shared[]; \
  T* const name = reinterpret_cast<T*>(gle_dynamic_shared)
#else
#include "simt/device.h"
#define GLE_SHARED(T, name, count) SIMT_SHARED(T, name, count)
#define GLE_DYNAMIC_SHARED(T, name) SIMT_DYNAMIC_SHARED(T, name)
#endif

namespace gle::cuda {

// For whom and where a kernel runs.
struct Launch {
  const char* op;
  cudaStream_t stream;
};

// What every device gives a block without being asked.
inline constexpr size_t kUsualSharedBytes = 48 * 1024;

template <class... Parameters>
cudaError_t start_kernel(const Launch& where, void (*kernel)(Parameters...), dim3 grid, dim3 block, size_t shared_bytes,
                         Parameters... arguments) {
  const void* const function = reinterpret_cast<const void*>(kernel);
  if (shared_bytes > kUsualSharedBytes) {
    const cudaError_t status =
        cudaFuncSetAttribute(function, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared_bytes));
    if (status != cudaSuccess) {
      return status;
    }
  }
#ifdef __CUDACC__
  void* pointers[] = {const_cast<void*>(static_cast<const void*>(&arguments))..., nullptr};
  return cudaLaunchKernel(function, grid, block, pointers, shared_bytes, where.stream);
#else
  return simt::launch(where.op, where.stream, kernel, grid, block, shared_bytes, arguments...);
#endif
}

// Queues kernel(arguments...). A launch that is refused throws and names the op.
template <class... Parameters, class... Arguments>
void launch(const Launch& where, void (*kernel)(Parameters...), dim3 grid, dim3 block, size_t shared_bytes,
            Arguments&&... arguments) {
  static_assert(sizeof...(Parameters) == sizeof...(Arguments), "a kernel takes exactly its parameters");
  const cudaError_t status =
      start_kernel<Parameters...>(where, kernel, grid, block, shared_bytes, std::forward<Arguments>(arguments)...);
  if (status != cudaSuccess) {
    if (is_earlier_fault(status)) {
      check(status, where.op);
    }
    cudaGetLastError();
    fail(status == cudaErrorMemoryAllocation ? ErrorCode::memory : ErrorCode::runtime, where.op,
         ": the GPU refused a kernel of ", grid.x, "x", grid.y, "x", grid.z, " blocks, ", block.x, "x", block.y, "x",
         block.z, " threads and ", shared_bytes, " bytes of shared memory: ", cudaGetErrorString(status));
  }
}

}  // namespace gle::cuda
