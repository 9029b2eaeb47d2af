#pragma once

#include <cstdint>
#include <string>

#include "simt/kernel_call.h"
#include "simt/simt.h"

namespace simt {

// "softmax.cu:41"; for an address in inlined helpers of device.h the line of the kernel that called them.
std::string line_of(uintptr_t pc);
std::string line_of(Site site);
// "softmax_rows<256>"
std::string function_name(const void* function);

void report(Kind kind, std::string text);

// Whether this is the first time in this launch that something of this kind happens here.
bool first_time(Kind kind, uintptr_t place);
bool first_time(Kind kind, Site site);
void forget_places();

}  // namespace simt
