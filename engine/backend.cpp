#include "engine/backend.h"

namespace gle {

Backend::Backend(MemorySource memory, size_t limit)
    : device_(memory.device), allocator_(memory, limit), workspace_(allocator_) {}

Backend::~Backend() = default;

Tensor Backend::new_tensor(const char* purpose, const Shape& shape, DType type) {
  const size_t bytes = static_cast<size_t>(shape.elements()) * bytes_of(type);
  return Tensor(allocator_.allocate(bytes, purpose), shape, type);
}

}  // namespace gle
