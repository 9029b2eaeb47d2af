#pragma once

#include <cstddef>
#include <string>

namespace fake_cuda {

// Whether a library may use these bytes on this device; if not, it is reported.
bool usable(const std::string& function, const char* what, const void* address, size_t bytes, int device);
// While the work runs: reports reading what nobody wrote.
void check_read(const std::string& function, const char* what, const void* address, size_t bytes);
// Fills both ends of a workspace with rubbish: it holds nothing before, and nothing is left in it.
void scribble(void* workspace, size_t bytes);

}  // namespace fake_cuda
