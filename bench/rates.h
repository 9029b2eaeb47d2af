#pragma once

#include <benchmark/benchmark.h>

#include "bench/machine.h"

namespace gle::bench {

// What every row reports: achieved rates, and each as a share of the machine's peak. `flops` and `bytes` are what one
// iteration cannot do without.
inline void report(benchmark::State& state, double flops, double bytes) {
  using benchmark::Counter;
  const auto rate = [&](double amount) { return Counter(amount, Counter::kIsIterationInvariantRate); };
  if (flops > 0) {
    state.counters["GFLOP/s"] = rate(flops * 1e-9);
    state.counters["of_peak_flops"] = rate(flops * 1e-9 / peak().gflops);
  }
  state.counters["GB/s"] = rate(bytes * 1e-9);
  state.counters["of_peak_bytes"] = rate(bytes * 1e-9 / peak().gbytes);
}

inline double bytes_of_floats(std::initializer_list<int64_t> counts) {
  double total = 0;
  for (const int64_t count : counts) {
    total += static_cast<double>(count) * sizeof(float);
  }
  return total;
}

}  // namespace gle::bench
