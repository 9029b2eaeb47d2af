#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "simt/fiber.h"
#include "simt/kernel_call.h"
#include "simt/simt.h"

namespace simt {

inline constexpr int kWarp = 32;

enum class State : uint8_t { runnable, at_barrier, in_collective, done };

// One thread of the block that runs.
struct Thread {
  Fiber fiber;
  uint3 index{};
  int number = 0;
  int lane = 0;
  int warp = 0;
  State state = State::done;

  // What it waits for.
  Site site{};
  Collective what{};
  unsigned mask = 0;
  int source = 0;
  Vote vote = Vote::none;
  int result = 0;
  alignas(16) std::array<unsigned char, 16> given{};
  alignas(16) std::array<unsigned char, 16> taken{};

  // How far each lane of its warp had come when this thread last met it in a __syncwarp; its own entry is the present.
  std::array<uint32_t, kWarp> clocks{};
};

// The kernel that runs, for the checker.
struct Running {
  const KernelCall* call = nullptr;
  int device = 0;
  uint32_t launch = 0;        // counts kernels
  uint32_t block_serial = 0;  // counts blocks of all kernels
  uint32_t block = 0;         // number in the grid
  uint3 block_index{};
  uint32_t epoch = 0;        // barriers that the block has passed
  Thread* thread = nullptr;  // null: host code
};
extern Running running;

// Runs a kernel to its end; false if it was abandoned. Refused configurations are the caller's to check.
bool run(const KernelCall& call, int device);

// From within a kernel: no thread of it goes on, as after an illegal address on a GPU.
[[noreturn]] void abandon_kernel();

// " by thread 3 of block 1"
std::string who(const Thread& thread);
// "op: kernel: "
std::string where();

}  // namespace simt
