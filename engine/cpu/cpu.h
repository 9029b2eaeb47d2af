#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "engine/backend.h"
#include "engine/cpu/runtime.h"

namespace gle {

struct CpuOptions {
  // Without one: GLE_ISA=baseline|avx2|avx512 if set, else the widest that the machine and its system support.
  std::optional<cpu::Isa> isa = std::nullopt;
  // 0: GLE_NUM_THREADS, then OMP_NUM_THREADS, then the cores at hand.
  int threads = 0;
  size_t memory_limit = CachingAllocator::kNoLimit;
  // Convolutions and matrix products by oneDNN where this build has it; else by kernels of our own.
  bool library = true;
  // Ends the description, in brackets: why it is the CPU, for instance.
  std::string note{};
};

std::unique_ptr<Backend> make_cpu_backend(const CpuOptions& options = {});

namespace cpu {

const char* name_of(Isa isa);
// What CpuOptions without an instruction set means here; throws if GLE_ISA names one that this machine cannot run.
Isa chosen_isa();
// Whether both the processor and the operating system can run it.
bool supported(Isa isa);

}  // namespace cpu

}  // namespace gle
