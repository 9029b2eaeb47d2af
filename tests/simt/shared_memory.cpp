#include "simt/shared_memory.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "simt/emulator.h"
#include "simt/kernel_call.h"
#include "simt/reports.h"

namespace simt {

namespace {

constexpr size_t kGap = 64;
constexpr size_t kArena = 512 * 1024;

alignas(64) std::array<unsigned char, kArena> arena;
std::array<CellState, kArena / kCellBytes> states;
auto& arrays = *new std::map<const void*, size_t>;
size_t used = 0;
size_t static_bytes = 0;

size_t place(size_t bytes) {
  const size_t begin = used;
  if (begin + bytes + kGap > kArena) {
    report(Kind::launch, where() + "more shared memory than any device has");
    abandon_kernel();
  }
  for (size_t i = 0; i < bytes; ++i) {
    CellState& state = states[(begin + i) / kCellBytes];
    state.live = (state.live | (1U << ((begin + i) % kCellBytes))) & 0xfU;
  }
  used = (begin + bytes + kGap + 15) / 16 * 16;
  return begin;
}

}  // namespace

void begin_shared(size_t dynamic_bytes) {
  // 0xff: as floats NaN.
  std::fill_n(arena.begin(), used, 0xff);
  std::fill_n(states.begin(), used / kCellBytes + 1, CellState{0, 0});
  arrays.clear();
  static_bytes = 0;
  used = kGap;
  place(dynamic_bytes);
}

void* static_shared(const void* key, size_t bytes) {
  auto [found, is_new] = arrays.try_emplace(key, 0);
  if (is_new) {
    found->second = place(bytes);
    static_bytes += (bytes + 15) / 16 * 16;
  }
  return arena.data() + found->second;
}

void* dynamic_shared() { return arena.data() + kGap; }

size_t static_shared_bytes() { return static_bytes; }

bool in_shared(const void* address) {
  return address >= arena.data() && address < static_cast<const void*>(arena.data() + kArena);
}

size_t shared_cell_number(const void* address) {
  return static_cast<size_t>(static_cast<const unsigned char*>(address) - arena.data()) / kCellBytes;
}

CellState& shared_state_of(const void* address) { return states[shared_cell_number(address)]; }

size_t number_of_shared_cells() { return kArena / kCellBytes; }

}  // namespace simt
