#pragma once

#include "engine/comm/comm.h"

namespace gle {

// The ranks of the launcher that started this test; main() makes and ends them.
Comm& all_ranks();

}  // namespace gle
