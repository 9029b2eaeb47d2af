# The commit of SOURCE, with -dirty behind it where files differ from it, as the text that gle::tools::revision() in OUT gives;
# "unknown" where there is no checkout.
#   cmake -DSOURCE=DIR -DOUT=FILE -P revision.cmake
set(revision unknown)
if(EXISTS ${SOURCE}/.git)
  execute_process(
    COMMAND git describe --always --dirty --abbrev=12
    WORKING_DIRECTORY ${SOURCE} OUTPUT_VARIABLE found OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
  if(NOT failed)
    set(revision ${found})
  endif()
endif()
file(CONFIGURE OUTPUT ${OUT} CONTENT [[
#include "tools/revision.h"

namespace gle::tools {

const char* revision() { return "@revision@"; }

}  // namespace gle::tools
]] @ONLY)
