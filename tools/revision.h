#pragma once

namespace gle::tools {

// The commit that was built; the build writes its definition (cmake/revision.cmake).
const char* revision();

}  // namespace gle::tools
