#include "models/dry_backend.h"

#include "engine/error.h"

namespace gle {

namespace {

// Every segment has the same address, which nobody touches; only sizes matter.
MemorySource no_memory() {
  MemorySource source;
  source.allocate = [](void*, size_t bytes) -> void* {
    static constexpr size_t kFirst = size_t{1} << 32U;
    static constexpr size_t kMost = size_t{1} << 46U;
    return bytes > kMost ? nullptr : reinterpret_cast<void*>(kFirst);
  };
  source.release = [](void*, void*, size_t) {};
  return source;
}

}  // namespace

DryBackend::DryBackend() : Backend(no_memory(), CachingAllocator::kNoLimit) {}
DryBackend::~DryBackend() = default;

void DryBackend::download(const Tensor&, void*) { bug("a dry backend has no values"); }

}  // namespace gle
