#pragma once

#include <cstddef>
#include <cstdint>

namespace simt {

// The memory of the emulated devices. Each has a range of addresses that is never used twice, so that a pointer tells
// its device and a freed one is known for ever. Around each allocation lies a gap.
inline constexpr int kDevices = 2;
inline constexpr size_t kCellBytes = 4;

// For one cell: which of its bytes exist and which have been written, four bits each.
struct CellState {
  uint8_t live : 4;
  uint8_t written : 4;
};

// Null if the addresses have run out. The bytes are 0xff, which as floats are NaN.
void* allocate_device(int device, size_t bytes);
// Size of the allocation that begins here, 0 if there is none.
size_t allocation_at(const void* begin);
void free_device(void* begin);

// The device of an address in the ranges of devices, live or not; -1 for all other memory.
int device_of(const void* address);
// Whether all bytes lie in one live allocation.
bool is_live(const void* address, size_t bytes);

void mark_written(const void* address, size_t bytes);
bool all_written(const void* address, size_t bytes);
// As a copy does: what was not written is not written there either.
void copy_written(const void* from, void* to, size_t bytes);
void mark_all_written();

CellState& state_of(const void* address);
// 0 for the first cell of the first device.
size_t cell_number(const void* address);
size_t number_of_cells();

}  // namespace simt
