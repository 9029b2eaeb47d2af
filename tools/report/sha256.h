#pragma once

#include <string>
#include <string_view>

namespace gle::report {

// The 32 bytes of FIPS 180-4.
std::string sha256(std::string_view bytes);

}  // namespace gle::report
