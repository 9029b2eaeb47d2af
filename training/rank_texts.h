#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/comm/comm.h"
#include "training/checkpoint.h"

namespace gle {

// What ranks tell each other besides numbers; every rank calls the same.

// The first text that is not empty, in the order of ranks.
std::string first_said(Comm& comm, const std::string& text);
// The lines of all ranks, in their order.
std::vector<std::string> all_lines(Comm& comm, const std::vector<std::string>& lines);
// The checkpoint that the first rank has read, for all; null if that has none.
std::unique_ptr<Checkpoint> checkpoint_for_all(Comm& comm, std::unique_ptr<Checkpoint> of_first);

}  // namespace gle
