#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "simt/checker.h"

namespace simt {

// One access of a cell, as much of it as later ones are compared with.
struct Access {
  uint32_t block;
  uint32_t epoch;
  uint32_t clock;  // of the thread's lane
  uint32_t pc;     // relative to the program
  uint16_t thread;
  uint8_t bytes;  // of the cell, four bits
  AccessKind kind;
};

// The accesses of a cell by the kernel that runs (by the block, in shared memory): few are kept, see Cells::add.
struct Cell {
  uint32_t owner;  // which kernel or block the rest is about; 0 none
  uint32_t more;   // where the accesses beyond the first two are, 0 nowhere
  uint8_t count;   // of `first` in use
  uint8_t read;    // bytes touched by this kernel, four bits
  uint8_t written;
  uint8_t unused;
  std::array<Access, 2> first;
};

// Whether `old` comes before what the running thread does now, whatever the schedule.
bool ordered(const Access& old, const Access& now);

class Cells {
 public:
  explicit Cells(size_t count);

  Cell& at(size_t number, uint32_t owner);
  // The first kept access that races with `now`, or null. Then `now` is kept for later ones.
  const Access* add(Cell& cell, const Access& now);
  // Between kernels.
  void clear() { used_ = 1; }

 private:
  void keep(Cell& cell, const Access& now);
  template <class F>
  void for_each(Cell& cell, const F& f);

  Cell* cells_;
  std::vector<std::vector<Access>> more_;
  uint32_t used_ = 1;
};

}  // namespace simt
