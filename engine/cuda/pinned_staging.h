#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <vector>

#include "engine/cuda/handles.h"

namespace gle::cuda {

// Page-locked host memory on its way to the device: a copy from it does not wait for the host, nor the host for it.
class PinnedStaging {
 public:
  PinnedStaging() = default;
  // Waits for what is under way.
  ~PinnedStaging();
  PinnedStaging(const PinnedStaging&) = delete;
  PinnedStaging& operator=(const PinnedStaging&) = delete;

  // Memory that nobody else gets before seal() was called and what `stream` had queued by then has run.
  void* take(size_t bytes, const char* op);
  void seal(cudaStream_t stream, const char* op);

 private:
  struct Chunk {
    Owned<void*, cudaFreeHost> memory;
    size_t bytes = 0;
    Event passed;
    bool open = false;
  };

  // Beyond these the next taker waits, unless all are open.
  static constexpr size_t kChunks = 16;
  Chunk* free_chunk(size_t bytes);

  std::vector<Chunk> chunks_;
};

}  // namespace gle::cuda
