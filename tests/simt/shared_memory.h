#pragma once

#include <cstddef>

#include "simt/memory.h"

namespace simt {

// What a block can have at most on the largest devices, and without asking.
inline constexpr size_t kMostSharedBytes = 227 * 1024;

// The shared memory of the block that runs: its dynamic part, then the static arrays as the block comes upon them, with
// gaps between them.
void begin_shared(size_t dynamic_bytes);
size_t static_shared_bytes();

bool in_shared(const void* address);
CellState& shared_state_of(const void* address);
size_t shared_cell_number(const void* address);
size_t number_of_shared_cells();

}  // namespace simt
