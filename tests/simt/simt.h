#pragma once

// The emulated device, as its user sees it. Kernels of engine/cuda/*.cu run on the host: a thread of a block is a
// fiber, one block runs at a time. The kernels are compiled with the instrumentation of -fsanitize=thread and
// -fsanitize=alignment, but neither run-time library is linked: callbacks.cpp hears of each load and store and hands
// it to the checker, which finds
//   races         two accesses of a cell, one a write, that no barrier orders: __syncthreads orders a block, __syncwarp
//                 the lanes of its mask, shuffles and votes nothing, and blocks are never ordered. Found by the order
//                 itself, whatever the schedule was and even if the result is right;
//   bounds        addresses outside of live device memory, of the block's shared arrays, of the thread's own stack;
//   initialisation  reads of device or shared memory that nobody wrote;
//   alignment     vector accesses at addresses that a GPU refuses;
//   synchronisation  barriers that not all threads reach, masks that do not name the caller or name who never comes.
// What it does not see: memcpy and memset called in a kernel, missing fences between volatile accesses, code behind
// #ifdef __CUDA_ARCH__.

#include <cstdint>
#include <string>
#include <vector>

namespace simt {

enum class Order { sequential, random };

struct Options {
  // In which order the blocks and the runnable threads of a block take turns.
  Order order = Order::sequential;
  uint64_t seed = 1;
  // Without it kernels only compute, in about half the time.
  bool check = true;
};

const Options& options();
void set_options(const Options& options);

enum class Kind {
  race,
  bounds,
  uninitialised,
  misaligned,
  divergent_barrier,
  warp_mask,
  deadlock,
  launch,  // a configuration that a device refuses
  api,     // a library function of CUDA called against its manual (tests/fake_cuda)
};
const char* name_of(Kind kind);

struct Report {
  Kind kind;
  // "softmax: softmax_rows<256>: shared write after read at softmax.cu:41 by thread 3 of block 0, ..."
  std::string text;
};

// What was found since the last call; one report for each line of a kernel and launch.
std::vector<Report> take_reports();

// Device memory that a kernel asked for, summed over its launches, counted while checking. `distinct` counts a byte
// once per launch: what a perfect cache would let through.
struct Traffic {
  std::string op;
  std::string kernel;
  uint64_t launches = 0;
  uint64_t loaded = 0;
  uint64_t stored = 0;
  uint64_t distinct_loaded = 0;
  uint64_t distinct_stored = 0;
};

std::vector<Traffic> take_traffic();

}  // namespace simt
