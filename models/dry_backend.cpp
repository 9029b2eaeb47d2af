#include "models/dry_backend.h"

#include <cstdint>

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

DryConvolution::Place place_of(const Tensor& t) {
  constexpr uintptr_t kMost = 16;
  const uintptr_t bits = reinterpret_cast<uintptr_t>(t.data()) | kMost;
  return {t.shape(), t.pitch(), static_cast<int64_t>(bits & ~(bits - 1))};
}

}  // namespace

DryBackend::DryBackend() : Backend(no_memory(), CachingAllocator::kNoLimit) {}
DryBackend::~DryBackend() = default;

void DryBackend::note(DryConvolution::Direction direction, const Tensor& x, const Tensor& w, const Tensor& y,
                      const Conv2dOptions& options, Accumulate mode) {
  if (convolutions_ != nullptr) {
    convolutions_->push_back({direction, place_of(x), place_of(w), place_of(y), options, mode});
  }
}

void DryBackend::download(const Tensor&, void*) { bug("a dry backend has no values"); }

}  // namespace gle
