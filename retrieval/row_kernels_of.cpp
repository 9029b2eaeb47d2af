#include "engine/cpu/cpu.h"
#include "engine/error.h"
#include "retrieval/row_kernels.h"

namespace gle {

namespace cpu {
namespace baseline {
extern const RowKernels row_kernels;
}
namespace avx2 {
extern const RowKernels row_kernels;
}
namespace avx512 {
extern const RowKernels row_kernels;
}
}  // namespace cpu

const RowKernels& row_kernels(cpu::Isa isa) {
  switch (isa) {
    case cpu::Isa::avx512:
      return cpu::avx512::row_kernels;
    case cpu::Isa::avx2:
      return cpu::avx2::row_kernels;
    case cpu::Isa::baseline:
      return cpu::baseline::row_kernels;
  }
  bug("unknown instruction set");
}

const RowKernels& row_kernels() {
  static const RowKernels& chosen = row_kernels(cpu::chosen_isa());
  return chosen;
}

}  // namespace gle
