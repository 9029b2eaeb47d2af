#include "engine/memory/workspace.h"

#include <cstring>

#include "engine/error.h"

namespace gle {

Workspace::Lease Workspace::lease(size_t bytes, const char* op) {
  invariant(!leased_, "the workspace is leased already");
  if (bytes > buffer_.bytes()) {
    buffer_ = Buffer();  // first, so that the allocator can grow the same place
    buffer_ = allocator_.allocate(bytes, op);
  }
  leased_ = true;
  if (poison_ && bytes > 0) {
    std::memset(buffer_.data(), 0xff, bytes);
  }
  return Lease(*this);
}

}  // namespace gle
