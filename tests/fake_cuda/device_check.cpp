#include "fake_cuda/device_check.h"

#include <algorithm>
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
  constexpr size_t kEnd = 4096;
  char* const begin = static_cast<char*>(workspace);
  for (char* at : {begin, begin + bytes - std::min(bytes, kEnd)}) {
    std::memset(at, 0xff, std::min(bytes, kEnd));
    simt::mark_written(at, std::min(bytes, kEnd));
  }
}

}  // namespace fake_cuda
