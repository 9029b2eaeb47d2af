#include "fake_cuda/device_check.h"

#include <cstring>

#include "simt/memory.h"
#include "simt/reports.h"

namespace fake_cuda {

bool usable(const std::string& function, const char* what, const void* address, size_t bytes, int device) {
  if (bytes == 0 || (simt::device_of(address) == device && simt::is_live(address, bytes))) {
    return true;
  }
  simt::report(simt::Kind::api, function + ": " + what + " of " + std::to_string(bytes) +
                                    " bytes is not in one allocation of device " + std::to_string(device));
  return false;
}

void check_read(const std::string& function, const char* what, const void* address, size_t bytes) {
  if (simt::options().check && !simt::all_written(address, bytes)) {
    simt::report(simt::Kind::uninitialised, function + ": " + what + " is read where nobody wrote it");
    simt::mark_written(address, bytes);
  }
}

void scribble(void* workspace, size_t bytes) {
  if (bytes > 0) {
    std::memset(workspace, 0xff, bytes);
    simt::mark_written(workspace, bytes);
  }
}

}  // namespace fake_cuda
