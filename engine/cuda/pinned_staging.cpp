#include "engine/cuda/pinned_staging.h"

#include <algorithm>
#include <bit>

#include "engine/cuda/check.h"

namespace gle::cuda {

namespace {

constexpr size_t kSmallest = size_t{64} << 10;

}  // namespace

PinnedStaging::~PinnedStaging() {
  for (const Chunk& chunk : chunks_) {
    (void)cudaEventSynchronize(chunk.passed.get());
  }
}

// The smallest that is large enough and whose copies are over.
PinnedStaging::Chunk* PinnedStaging::free_chunk(size_t bytes) {
  Chunk* best = nullptr;
  for (Chunk& chunk : chunks_) {
    if (!chunk.open && chunk.bytes >= bytes && (!best || chunk.bytes < best->bytes) &&
        cudaEventQuery(chunk.passed.get()) == cudaSuccess) {
      best = &chunk;
    }
  }
  (void)cudaGetLastError();  // "not ready" is left there
  return best;
}

void* PinnedStaging::take(size_t bytes, const char* op) {
  Chunk* chunk = free_chunk(bytes);
  if (!chunk && chunks_.size() >= kChunks) {
    const auto sealed = [&](const Chunk& c) { return !c.open && c.bytes >= bytes; };
    const auto busy = std::find_if(chunks_.begin(), chunks_.end(), sealed);
    if (busy != chunks_.end()) {
      check(cudaEventSynchronize(busy->passed.get()), op);
      chunk = &*busy;
    }
  }
  if (!chunk) {
    Chunk fresh;
    fresh.bytes = std::bit_ceil(std::max(bytes, kSmallest));
    void* memory = nullptr;
    check(cudaMallocHost(&memory, fresh.bytes), op);
    fresh.memory = Owned<void*, cudaFreeHost>(memory);
    fresh.passed = new_event(op);
    chunk = &chunks_.emplace_back(std::move(fresh));
  }
  chunk->open = true;
  return chunk->memory.get();
}

void PinnedStaging::seal(cudaStream_t stream, const char* op) {
  for (Chunk& chunk : chunks_) {
    if (chunk.open) {
      check(cudaEventRecord(chunk.passed.get(), stream), op);
      chunk.open = false;
    }
  }
}

}  // namespace gle::cuda
