#include "simt/emulator.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <numeric>
#include <random>
#include <vector>

#include "simt/checker.h"
#include "simt/memory.h"
#include "simt/reports.h"
#include "simt/shared_memory.h"

namespace simt {

Running running;

namespace {

constexpr int kMostThreads = 1024;

Options chosen;
auto& threads = *new std::vector<std::unique_ptr<Thread>>;  // reused by all blocks
int live = 0;                                               // threads of this block: the first of them
auto& runnable = *new std::vector<Thread*>;
std::array<unsigned, kMostThreads / kWarp> arrived{};  // lanes of each warp that wait in a collective or are gone
std::mt19937_64 random_order;
bool abandoned = false;

unsigned& arrived_with(const Thread& thread) { return arrived[static_cast<size_t>(thread.warp)]; }

void run_thread() {
  running.call->body();
  running.thread->state = State::done;
  arrived_with(*running.thread) |= 1U << running.thread->lane;
  running.thread->fiber.pause();
  std::abort();
}

void wait(State state) {
  Thread* const self = running.thread;
  self->state = state;
  self->fiber.pause();
}

void release(Thread& thread) {
  thread.state = State::runnable;
  runnable.push_back(&thread);
}

template <class F>
void for_lanes(const Thread& of, unsigned mask, const F& f) {
  const int first = of.warp * kWarp;
  for (int lane = 0; lane < kWarp && first + lane < live; ++lane) {
    if ((mask >> lane & 1U) != 0) {
      f(*threads[static_cast<size_t>(first + lane)]);
    }
  }
}

void take_value(Thread& to) {
  const Thread* from = nullptr;
  if (to.source >= 0 && to.source < kWarp) {
    for_lanes(to, to.mask & 1U << to.source, [&](const Thread& lane) { from = &lane; });
  }
  if (from == nullptr || from->state != State::in_collective) {
    if (first_time(Kind::warp_mask, to.site)) {
      report(Kind::warp_mask, where() + "shuffle from lane " + std::to_string(to.source) +
                                  ", which takes no part, at " + line_of(to.site) + who(to));
    }
    to.taken.fill(0xff);
    return;
  }
  to.taken = from->given;
}

// Lets the lanes of a collective go on if all that are still alive have come.
void try_collective(const Thread& one) {
  if ((one.mask & ~arrived_with(one)) != 0) {
    return;
  }
  bool all_there = true;
  bool same_line = true;
  for_lanes(one, one.mask, [&](const Thread& lane) {
    all_there &= lane.state == State::done ||
                 (lane.state == State::in_collective && lane.mask == one.mask && lane.what == one.what);
    same_line &= lane.state == State::done || lane.site == one.site;
  });
  if (!all_there) {
    return;
  }
  const Collective what = one.what;
  if (!same_line && what != Collective::syncwarp && first_time(Kind::warp_mask, one.site)) {
    report(Kind::warp_mask,
           where() + "lanes meet in different shuffles or votes, one at " + line_of(one.site) + who(one));
  }
  std::array<uint32_t, kWarp> clocks{};
  unsigned votes = 0;
  const auto waiting = [&](const auto& f) {
    for_lanes(one, one.mask, [&](Thread& lane) {
      if (lane.state == State::in_collective) {
        f(lane);
      }
    });
  };
  waiting([&](const Thread& lane) {
    for (size_t i = 0; i < kWarp; ++i) {
      clocks[i] = std::max(clocks[i], lane.clocks[i]);
    }
    votes |= (lane.given[0] != 0 ? 1U : 0U) << lane.lane;
  });
  waiting([&](Thread& lane) {
    if (what == Collective::syncwarp) {
      lane.clocks = clocks;
      ++lane.clocks[static_cast<size_t>(lane.lane)];
    } else if (what == Collective::ballot) {
      std::memcpy(lane.taken.data(), &votes, sizeof votes);
    } else {
      take_value(lane);
    }
  });
  std::vector<Thread*> go;
  waiting([&](Thread& lane) { go.push_back(&lane); });
  for (Thread* lane : go) {
    arrived_with(*lane) &= ~(1U << lane->lane);
    release(*lane);
  }
}

void run_until_all_wait() {
  std::vector<Thread*> turn;
  while (!runnable.empty() && !abandoned) {
    turn.swap(runnable);
    runnable.clear();
    if (chosen.order == Order::random) {
      std::shuffle(turn.begin(), turn.end(), random_order);
    }
    for (Thread* thread : turn) {
      running.thread = thread;
      thread->fiber.resume();
      running.thread = nullptr;
      if (abandoned) {
        return;
      }
      if (thread->state == State::done) {
        // It may have been the last that a collective waited for.
        for_lanes(*thread, ~0U, [&](const Thread& lane) {
          if (lane.state == State::in_collective) {
            try_collective(lane);
          }
        });
      }
    }
  }
}

int vote_of(const Thread& thread, int yes, int waiting) {
  switch (thread.vote) {
    case Vote::count:
      return yes;
    case Vote::all:
      return yes == waiting ? 1 : 0;
    case Vote::any:
      return yes > 0 ? 1 : 0;
    case Vote::none:
      break;
  }
  return 0;
}

// True if a barrier let threads go on; false if the block is over.
bool pass_barrier() {
  std::vector<Thread*> waiting;
  int gone = 0;
  int yes = 0;
  const Thread* stuck = nullptr;
  for (int i = 0; i < live; ++i) {
    Thread& thread = *threads[static_cast<size_t>(i)];
    if (thread.state == State::at_barrier) {
      waiting.push_back(&thread);
      yes += thread.result;
    } else if (thread.state == State::in_collective) {
      stuck = &thread;
    } else {
      ++gone;
    }
  }
  if (stuck != nullptr) {
    if (!first_time(Kind::deadlock, stuck->site)) {
      return false;
    }
    std::string text =
        where() + "a shuffle, vote or __syncwarp waits for ever at " + line_of(stuck->site) + who(*stuck);
    if (!waiting.empty()) {
      text += ", others wait in __syncthreads at " + line_of(waiting.front()->site);
    }
    report(Kind::deadlock, text);
    return false;
  }
  if (waiting.empty()) {
    return false;
  }
  const Thread& first = *waiting.front();
  const auto elsewhere =
      std::find_if(waiting.begin(), waiting.end(), [&](const Thread* thread) { return thread->site != first.site; });
  if (elsewhere != waiting.end() && first_time(Kind::divergent_barrier, first.site)) {
    report(Kind::divergent_barrier, where() + "__syncthreads at " + line_of(first.site) + who(first) + ", but at " +
                                        line_of((*elsewhere)->site) + who(**elsewhere));
  }
  if (gone > 0 && first_time(Kind::divergent_barrier, first.site)) {
    report(Kind::divergent_barrier, where() + std::to_string(gone) + " threads have left the kernel, others wait in " +
                                        "__syncthreads at " + line_of(first.site) + who(first));
  }
  ++running.epoch;
  for (Thread* thread : waiting) {
    thread->result = vote_of(*thread, yes, static_cast<int>(waiting.size()));
    release(*thread);
  }
  return true;
}

void begin_block(const KernelCall& call, uint32_t number) {
  running.block = number;
  ++running.block_serial;
  running.block_index = {number % call.grid.x, number / call.grid.x % call.grid.y, number / call.grid.x / call.grid.y};
  running.epoch = 0;
  begin_shared(call.shared_bytes);
  live = static_cast<int>(call.block.x * call.block.y * call.block.z);
  while (threads.size() < static_cast<size_t>(live)) {
    threads.push_back(std::make_unique<Thread>());
  }
  runnable.clear();
  arrived.fill(0);
  if (live % kWarp != 0) {
    // Lanes beyond the block's last thread are as good as gone.
    arrived[static_cast<size_t>(live / kWarp)] = ~0U << (live % kWarp);
  }
  for (int i = 0; i < live; ++i) {
    Thread& thread = *threads[static_cast<size_t>(i)];
    const auto n = static_cast<unsigned>(i);
    thread.index = {n % call.block.x, n / call.block.x % call.block.y, n / call.block.x / call.block.y};
    thread.number = i;
    thread.lane = i % kWarp;
    thread.warp = i / kWarp;
    thread.clocks.fill(0);
    thread.clocks[static_cast<size_t>(thread.lane)] = 1;
    thread.fiber.reset(run_thread);
    release(thread);
  }
}

}  // namespace

const Options& options() { return chosen; }

void set_options(const Options& options) {
  if (options.check && !chosen.check) {
    mark_all_written();
  }
  chosen = options;
}

bool run(const KernelCall& call, int device) {
  running.call = &call;
  running.device = device;
  ++running.launch;
  abandoned = false;
  forget_places();
  begin_checking();
  random_order.seed(chosen.seed + running.launch);
  std::vector<uint32_t> blocks(call.grid.x * call.grid.y * call.grid.z);
  std::iota(blocks.begin(), blocks.end(), 0U);
  if (chosen.order == Order::random) {
    std::shuffle(blocks.begin(), blocks.end(), random_order);
  }
  for (const uint32_t block : blocks) {
    begin_block(call, block);
    do {
      run_until_all_wait();
    } while (!abandoned && pass_barrier());
    if (call.shared_bytes + static_shared_bytes() > kMostSharedBytes) {
      report(Kind::launch, where() + "more shared memory than any device has");
      abandoned = true;
    }
    if (abandoned) {
      break;
    }
  }
  end_checking();
  running.call = nullptr;
  return !abandoned;
}

void abandon_kernel() {
  abandoned = true;
  running.thread->fiber.pause();
  std::abort();
}

std::string who(const Thread& thread) {
  const auto coordinates = [](uint3 at, dim3 size) {
    std::string text = std::to_string(at.x);
    if (size.y > 1 || size.z > 1) {
      text += "," + std::to_string(at.y);
    }
    return size.z > 1 ? text + "," + std::to_string(at.z) : text;
  };
  return " by thread " + coordinates(thread.index, running.call->block) + " of block " +
         coordinates(running.block_index, running.call->grid);
}

std::string where() { return std::string(running.call->op) + ": " + function_name(running.call->function) + ": "; }

uint3 thread_index() { return running.thread->index; }
uint3 block_index() { return running.block_index; }
uint3 block_size() { return {running.call->block.x, running.call->block.y, running.call->block.z}; }
uint3 grid_size() { return {running.call->grid.x, running.call->grid.y, running.call->grid.z}; }
int lane() { return running.thread->lane; }

int barrier(Vote vote, int predicate, Site site) {
  Thread& self = *running.thread;
  self.site = site;
  self.vote = vote;
  self.result = predicate;
  wait(State::at_barrier);
  return self.result;
}

void collective(Collective what, unsigned mask, void* value, size_t bytes, int source, Site site) {
  Thread& self = *running.thread;
  if ((mask >> self.lane & 1U) == 0) {
    if (first_time(Kind::warp_mask, site)) {
      report(Kind::warp_mask,
             where() + "lane " + std::to_string(self.lane) + " is not in its own mask at " + line_of(site) + who(self));
    }
    mask |= 1U << self.lane;
  }
  self.what = what;
  self.mask = mask;
  self.source = source;
  self.site = site;
  if (bytes > 0) {
    std::memcpy(self.given.data(), value, bytes);
  }
  self.state = State::in_collective;
  arrived_with(self) |= 1U << self.lane;
  try_collective(self);
  self.fiber.pause();
  if (bytes > 0) {
    std::memcpy(value, self.taken.data(), bytes);
  }
}

unsigned active_mask() {
  unsigned mask = 0;
  for_lanes(*running.thread, ~0U,
            [&](const Thread& lane) { mask |= lane.state == State::done ? 0U : 1U << lane.lane; });
  return mask;
}

}  // namespace simt
