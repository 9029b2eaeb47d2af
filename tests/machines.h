#pragma once

#include <string>
#include <vector>

#include "engine/cpu/cpu.h"

namespace gle::test {

// One way in which this computer can run the kernels.
struct Machine {
  enum class Kind { cpu, cpu_library, gpu, emulated_gpu };
  Kind kind;
  cpu::Isa isa = cpu::Isa::baseline;

  bool library() const { return kind == Kind::cpu_library; }  // oneDNN
  // Whether the number of threads makes a difference to how it works; it must make none to the results.
  bool threaded() const { return kind == Kind::cpu; }
  bool emulated() const { return kind == Kind::emulated_gpu; }
  // An emulated GPU takes small cases only.
  bool takes(int64_t elements) const;
};

// Kernels of our own on every instruction set at hand, then oneDNN on the widest if this build has it. With
// GLE_TEST_MACHINES=gpu or emulated_gpu: the GPU instead, if there is one.
const std::vector<Machine>& machines();
std::string name_of(const Machine& machine);

// The backend of `machine`, made at the first call. Leases of a CPU's workspace are filled with NaN.
Backend& backend_of(const Machine& machine, int threads);
// The first GPU of machines(), or the widest kernels of our own on two threads.
Backend& any_backend();

}  // namespace gle::test
