#pragma once

#include <new>
#include <string>

#include "engine/error.h"
#include "retrieval/c_api/gle.h"

namespace gle::c_api {

// Of the last call on this thread.
std::string& last_error();
// Keeps the text, or as much of it as there is memory for.
gle_status failed(gle_status status, const char* text) noexcept;

// Runs the body of a C function: what it throws becomes a status and a text.
template <class Body>
gle_status guarded(const Body& body) noexcept {
  last_error().clear();
  try {
    body();
    return GLE_OK;
  } catch (const Error& e) {
    return failed(static_cast<gle_status>(e.code()), e.what());
  } catch (const std::bad_alloc&) {
    return failed(GLE_MEMORY, "out of memory");
  } catch (const std::exception& e) {
    return failed(GLE_RUNTIME, e.what());
  }
}

// Whether this is a handle of ours that has not been closed, as far as its first bytes can tell.
template <class Handle>
bool alive(const Handle* handle) {
  return handle != nullptr && handle->magic == Handle::kMagic;
}

template <class Handle>
void require_handle(const Handle* handle, const char* function) {
  require(alive(handle), function, "the handle is null, closed, or none of this library");
}

inline void require_pointer(const void* pointer, const char* argument) {
  if (pointer == nullptr) {
    fail(ErrorCode::usage, argument, " is null");
  }
}

}  // namespace gle::c_api
