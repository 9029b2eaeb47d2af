#include <benchmark/benchmark.h>

#include <string>

#include "bench/machine.h"

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) {
    return 2;
  }
  benchmark::AddCustomContext("backend", gle::bench::backend().description());
  benchmark::AddCustomContext("peak GFLOP/s", std::to_string(gle::bench::peak().gflops));
  benchmark::AddCustomContext("peak GB/s", std::to_string(gle::bench::peak().gbytes));
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
