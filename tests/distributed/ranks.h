#pragma once

#include "engine/backend.h"
#include "engine/comm/comm.h"

namespace gle::test {

// The ranks of the launcher that started this test, and what each computes on; main() makes and ends them.
Comm& all_ranks();
Backend& rank_backend();

// All tests, of which the first rank alone speaks. A rank whose tests fail ends the others, which might wait for it.
void run_tests_of(Comm& ranks);

}  // namespace gle::test
