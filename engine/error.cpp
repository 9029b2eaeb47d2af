#include "engine/error.h"

#include <cstdio>
#include <cstdlib>

namespace gle {

void bug(const char* what, const char* file, int line) {
  std::fprintf(stderr, "gle: internal error at %s:%d: %s\n", file, line, what);
  std::abort();
}

}  // namespace gle
