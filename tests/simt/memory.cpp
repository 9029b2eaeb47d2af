#include "simt/memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <map>

namespace simt {

namespace {

constexpr size_t kAlignment = 512;
constexpr size_t kGap = 512;

char* reserve(size_t bytes) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) {
    std::perror("simt: no addresses for device memory");
    std::abort();
  }
  return static_cast<char*>(memory);
}

std::map<const char*, size_t>& allocations() {
  static auto& live = *new std::map<const char*, size_t>;  // backends under test may outlive other statics
  return live;
}

// Calls part(state, mask of bytes) for the cells at the ends of a range and whole(first, count) for those between.
template <class Part, class Whole>
void for_cells(const void* address, size_t bytes, const Part& part, const Whole& whole) {
  size_t at = device_offset(address);
  const size_t end = at + bytes;
  while (at < end) {
    const size_t cell = at / kCellBytes;
    const size_t within = at % kCellBytes;
    const size_t length = std::min(end - at, kCellBytes - within);
    if (length == kCellBytes) {
      const size_t count = (end - at) / kCellBytes;
      whole(&device_states[cell], count);
      at += count * kCellBytes;
    } else {
      part(device_states[cell], ((1U << length) - 1U) << within);
      at += length;
    }
  }
}

static_assert(sizeof(CellState) == 1);

void set_all(CellState* first, size_t count, CellState value) { std::fill_n(first, count, value); }

constexpr CellState kFresh{0xf, 0};
constexpr CellState kWritten{0xf, 0xf};

// Gives whole pages back, which makes them zero.
void forget(char* begin, size_t bytes) {
  constexpr size_t page = 4096;
  const size_t first = (reinterpret_cast<size_t>(begin) + page - 1) / page * page;
  const size_t last = (reinterpret_cast<size_t>(begin) + bytes) / page * page;
  if (first < last) {
    madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED);
  }
}

}  // namespace

char* const device_memory = reserve(kDevices * kDeviceRange);
CellState* const device_states = reinterpret_cast<CellState*>(reserve(kDeviceCells * sizeof(CellState)));

void* allocate_device(int device, size_t bytes) {
  static size_t used[kDevices] = {};
  const size_t begin = used[device] + kGap;
  const size_t next = (begin + bytes + kAlignment - 1) / kAlignment * kAlignment;
  if (next + kGap > kDeviceRange) {
    return nullptr;
  }
  used[device] = next;
  char* address = device_memory + static_cast<size_t>(device) * kDeviceRange + begin;
  allocations()[address] = bytes;
  std::memset(address, 0xff, bytes);
  for_cells(
      address, bytes, [](CellState& state, unsigned mask) { state.live = (state.live | mask) & 0xfU; },
      [](CellState* first, size_t count) { set_all(first, count, kFresh); });
  return address;
}

size_t allocation_at(const void* begin) {
  const auto found = allocations().find(static_cast<const char*>(begin));
  return found == allocations().end() ? 0 : std::max<size_t>(found->second, 1);
}

void free_device(void* begin) {
  const auto found = allocations().find(static_cast<const char*>(begin));
  const size_t bytes = found->second;
  allocations().erase(found);
  for_cells(
      begin, bytes,
      [](CellState& state, unsigned) {
        state = {0, 0};
      },
      [](CellState* first, size_t count) {
        set_all(first, count, {0, 0});
      });
  forget(static_cast<char*>(begin), bytes);
}

bool is_live(const void* address, size_t bytes) {
  const char* const begin = static_cast<const char*>(address);
  auto after = allocations().upper_bound(begin);
  if (after == allocations().begin()) {
    return false;
  }
  const auto& [first, size] = *std::prev(after);
  return begin + bytes <= first + size;
}

void mark_written(const void* address, size_t bytes) {
  for_cells(
      address, bytes, [](CellState& state, unsigned mask) { state.written = (state.written | mask) & 0xfU; },
      [](CellState* first, size_t count) { set_all(first, count, kWritten); });
}

bool all_written(const void* address, size_t bytes) {
  bool all = true;
  for_cells(
      address, bytes, [&](const CellState& state, unsigned mask) { all &= (state.written & mask) == mask; },
      [&](const CellState* first, size_t count) {
        all &= std::all_of(first, first + count, [](CellState state) { return state.written == 0xfU; });
      });
  return all;
}

void copy_written(const void* from, void* to, size_t bytes) {
  const char* source = static_cast<const char*>(from);
  char* target = static_cast<char*>(to);
  for (size_t i = 0; i < bytes; ++i) {
    CellState& state = state_of(target + i);
    const unsigned bit = 1U << (device_offset(target + i) % kCellBytes);
    state.written = (all_written(source + i, 1) ? state.written | bit : state.written & ~bit) & 0xfU;
  }
}

void mark_all_written() {
  for (const auto& [begin, bytes] : allocations()) {
    mark_written(begin, bytes);
  }
}

}  // namespace simt
