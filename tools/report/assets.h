#pragma once

#include <string_view>

namespace gle::report {

// page.css and page.js, taken in by the build.
extern const std::string_view kStyle;
extern const std::string_view kScript;

}  // namespace gle::report
