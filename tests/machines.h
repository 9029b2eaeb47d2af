#pragma once

#include <string>
#include <vector>

#include "engine/cpu/cpu.h"

namespace gle::test {

// One way in which this computer can run the kernels.
struct Machine {
  cpu::Isa isa;
  bool library;  // oneDNN
};

// Kernels of our own on every instruction set at hand, then oneDNN on the widest if this build has it.
const std::vector<Machine>& machines();
std::string name_of(const Machine& machine);

// The backend of `machine`, made at the first call. Leases of its workspace are filled with NaN.
Backend& backend_of(const Machine& machine, int threads);
// The widest kernels of our own, on two threads.
Backend& any_backend();

}  // namespace gle::test
