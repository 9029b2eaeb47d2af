#pragma once

#include "engine/backend.h"
#include "engine/comm/comm.h"

namespace gle::test {

// The ranks of the launcher that started this test, and what each computes on; main() makes and ends them.
Comm& all_ranks();
Backend& rank_backend();

}  // namespace gle::test
