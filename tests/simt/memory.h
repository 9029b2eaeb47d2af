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

// Where the ranges of addresses and the states of their cells begin.
extern char* const device_memory;
extern CellState* const device_states;
inline constexpr size_t kDeviceRange = size_t{64} << 30;

inline size_t device_offset(const void* address) {
  return static_cast<size_t>(static_cast<const char*>(address) - device_memory);
}
// 0 for the first cell of the first device.
inline size_t cell_number(const void* address) { return device_offset(address) / kCellBytes; }
inline CellState& state_of(const void* address) { return device_states[cell_number(address)]; }
inline constexpr size_t kDeviceCells = kDevices * kDeviceRange / kCellBytes;

inline int device_of(const void* address) {
  const size_t offset = device_offset(address);
  return offset < kDevices * kDeviceRange ? static_cast<int>(offset / kDeviceRange) : -1;
}

}  // namespace simt
