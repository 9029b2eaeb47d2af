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

class Cells {
 public:
  explicit Cells(size_t count);

  Cell& at(size_t number, uint32_t owner) {
    Cell& cell = cells_[number];
    if (cell.owner != owner) {
      cell.owner = owner;
      cell.more = 0;
      cell.count = cell.read = cell.written = 0;
    }
    return cell;
  }
  // The first kept access that races with `now`, or null. Then `now` is kept for later ones.
  const Access* add(Cell& cell, const Access& now) {
    if (cell.count == 0) {
      cell.first[0] = now;
      cell.count = 1;
      return nullptr;
    }
    return compare(cell, now);
  }
  // Between kernels.
  void clear() { used_ = 1; }

 private:
  const Access* compare(Cell& cell, const Access& now);
  void keep(Cell& cell, const Access& now);
  template <class F>
  void for_each(Cell& cell, const F& f);

  Cell* cells_;
  std::vector<std::vector<Access>> more_;
  uint32_t used_ = 1;
};

}  // namespace simt
