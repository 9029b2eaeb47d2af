# The commit of SOURCE, with -dirty behind it where files other than pages differ from it, as the text that
# gle::tools::revision() in OUT gives; "unknown" where there is no checkout.
#   cmake -DSOURCE=DIR -DOUT=FILE -P revision.cmake
set(revision unknown)
if(EXISTS ${SOURCE}/.git)
  execute_process(
    COMMAND git rev-parse --short=12 HEAD
    WORKING_DIRECTORY ${SOURCE} OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
  execute_process(
    COMMAND git diff --quiet HEAD -- . ":(exclude)docs"
    WORKING_DIRECTORY ${SOURCE} ERROR_QUIET RESULT_VARIABLE differs)
  if(NOT failed)
    set(revision ${commit})
    if(differs)
      string(APPEND revision -dirty)
    endif()
  endif()
endif()
file(CONFIGURE OUTPUT ${OUT} CONTENT [[
#include "tools/revision.h"

namespace gle::tools {

const char* revision() { return "@revision@"; }

}  // namespace gle::tools
]] @ONLY)
