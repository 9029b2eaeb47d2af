#include "retrieval/c_api/guard.h"

namespace gle::c_api {

std::string& last_error() {
  thread_local std::string text;
  return text;
}

gle_status failed(gle_status status, const char* text) noexcept {
  try {
    last_error() = text;
  } catch (const std::bad_alloc&) {
    last_error().clear();
  }
  return status;
}

}  // namespace gle::c_api

const char* gle_version(void) { return GLE_VERSION; }

const char* gle_last_error(void) { return gle::c_api::last_error().c_str(); }
