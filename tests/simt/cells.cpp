#include "simt/cells.h"

#include <sys/mman.h>

#include <cstdio>
#include <cstdlib>

#include "simt/emulator.h"

namespace simt {

namespace {

// Whether `old` comes before what the running thread does now, whatever the schedule.
bool ordered(const Access& old, const Access& now) {
  if (old.block != now.block) {
    return false;
  }
  if (old.thread == now.thread || old.epoch < now.epoch) {
    return true;
  }
  return old.thread / kWarp == now.thread / kWarp && running.thread->clocks[old.thread % kWarp] >= old.clock;
}

bool covers(const Access& wide, const Access& narrow) { return (wide.bytes & narrow.bytes) == narrow.bytes; }

bool conflict(const Access& a, const Access& b) {
  const bool reads = a.kind == AccessKind::read && b.kind == AccessKind::read;
  const bool atomics = a.kind == AccessKind::atomic && b.kind == AccessKind::atomic;
  return (a.bytes & b.bytes) != 0 && !reads && !atomics;
}

// Whatever races with `old` later races with `now` too: `now` comes after it and is at least as strict.
bool replaces(const Access& now, const Access& old) {
  const bool strict = now.kind == AccessKind::write || now.kind == old.kind;
  return strict && covers(now, old) && ordered(old, now);
}

}  // namespace

Cells::Cells(size_t count) : more_(1) {
  void* memory =
      mmap(nullptr, count * sizeof(Cell), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) {
    std::perror("simt: no addresses for the checker's cells");
    std::abort();
  }
  cells_ = static_cast<Cell*>(memory);
}

template <class F>
void Cells::for_each(Cell& cell, const F& f) {
  for (size_t i = 0; i < cell.count; ++i) {
    f(cell.first[i]);
  }
  if (cell.more != 0) {
    for (Access& access : more_[cell.more]) {
      f(access);
    }
  }
}

const Access* Cells::compare(Cell& cell, const Access& now) {
  const Access* race = nullptr;
  Access* place = nullptr;
  // One more read is superfluous if every later write would race with one of those kept: reads of two blocks, or of
  // two warps since this block's last barrier.
  const Access* of_block = nullptr;
  const Access* of_warp = nullptr;
  bool enough = false;
  for_each(cell, [&](Access& old) {
    if (race == nullptr && conflict(old, now) && !ordered(old, now)) {
      race = &old;
    }
    if (place == nullptr && replaces(now, old)) {
      place = &old;
    }
    if (now.kind != AccessKind::read || old.kind != AccessKind::read || !covers(old, now)) {
      return;
    }
    of_block = of_block == nullptr ? &old : of_block;
    enough |= of_block->block != old.block;
    if (old.block == now.block && old.epoch == now.epoch) {
      of_warp = of_warp == nullptr ? &old : of_warp;
      enough |= of_warp->thread / kWarp != old.thread / kWarp;
    }
  });
  if (race != nullptr) {
    static Access copy;
    copy = *race;
    race = &copy;
  }
  if (place != nullptr) {
    *place = now;
  } else if (!enough) {
    keep(cell, now);
  }
  return race;
}

void Cells::keep(Cell& cell, const Access& now) {
  if (cell.count < cell.first.size()) {
    cell.first[cell.count++] = now;
    return;
  }
  if (cell.more == 0) {
    if (used_ == more_.size()) {
      more_.emplace_back();
    }
    more_[used_].clear();
    cell.more = used_++;
  }
  more_[cell.more].push_back(now);
}

}  // namespace simt
