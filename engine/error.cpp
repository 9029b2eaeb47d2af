#include "engine/error.h"

#include <cstdio>
#include <cstdlib>

namespace gle {

void bug(const char* what, std::source_location place) {
  std::fprintf(stderr, "gle: internal error at %s:%u in %s: %s\n", place.file_name(), place.line(),
               place.function_name(), what);
  std::abort();
}

}  // namespace gle
