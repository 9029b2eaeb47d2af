#pragma once

// Between a kernel compiled for the host and the emulator.

#include <cuda_runtime_api.h>

#include <cstddef>
#include <functional>
#include <memory>

namespace simt {

// A line of a kernel, for reports.
struct Site {
  const char* file;
  int line;

  bool operator==(const Site&) const = default;
};

// Constant for the thread that asks, so the compiler may ask once.
__attribute__((const)) uint3 thread_index();
__attribute__((const)) uint3 block_index();
__attribute__((const)) uint3 block_size();
__attribute__((const)) uint3 grid_size();
__attribute__((const)) int lane();

enum class Collective { syncwarp, shuffle, ballot };
enum class Vote { none, count, all, any };

int barrier(Vote vote, int predicate, Site site);
// Waits for the lanes of `mask`. `value` (up to 16 bytes) becomes that of lane `source`; a ballot reads an int and
// leaves the mask of lanes whose int is not 0.
void collective(Collective what, unsigned mask, void* value, size_t bytes, int source, Site site);
unsigned active_mask();

void* static_shared(const void* key, size_t bytes);
void* dynamic_shared();

void note_atomic(const void* at, size_t bytes);

struct KernelCall {
  const char* op;
  const void* function;
  dim3 grid;
  dim3 block;
  size_t shared_bytes;
  std::function<void()> body;             // of one thread
  std::shared_ptr<const void> arguments;  // what body reads
  size_t argument_bytes;
};

// Defined by tests/fake_cuda: puts the kernel on the stream.
cudaError_t enqueue(cudaStream_t stream, KernelCall call);

}  // namespace simt
