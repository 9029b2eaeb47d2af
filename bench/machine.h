#pragma once

#include <functional>

#include "engine/cpu/cpu.h"

namespace gle::bench {

struct Peak {
  double gflops = 0;  // fp32 multiply-adds on all threads
  double gbytes = 0;  // memory traffic of y = a * x + y, reads and writes counted
};

// Measured on the spot, best of several.
Peak measure_peak(cpu::Isa isa, int threads);

// The backend, instruction set, threads and peak that all rows of a run share: GLE_ISA and GLE_NUM_THREADS choose.
Backend& backend();
const Peak& peak();

// The most that this program has had in memory so far. (getrusage() would begin with what its parent had.)
double peak_mebibytes();

double seconds(const std::function<void()>& work);
// Seconds of the fastest of `rounds` calls after one to warm up.
double best_seconds(int rounds, const std::function<void()>& work);

// A tensor of small random numbers.
Tensor random_tensor(Backend& backend, const Shape& shape, uint64_t seed = 1);

}  // namespace gle::bench
