// Matrix products: oneDNN where there is one (a bias is ours in any case), else the kernels of gemm_kernels.h.
#include "engine/cpu/cpu_backend.h"
#include "engine/cpu/gemm_kernels.h"
#include "engine/cpu/onednn.h"

namespace gle::cpu::GLE_ISA {

void CpuBackend::gemm(const Tensor& a, Transpose op_a, const Tensor& b, Transpose op_b, const Tensor& bias,
                      const GradTarget& c) {
  if (runtime_.library && !bias && runtime_.library->gemm(a, op_a, b, op_b, c)) {
    return;
  }
  const GemmShape shape{.m = c.grad.rows(),
                        .n = c.grad.channels(),
                        .k = op_a == Transpose::no ? a.channels() : a.rows(),
                        .transpose_a = op_a,
                        .transpose_b = op_b,
                        .lda = a.pitch(),
                        .ldb = b.pitch(),
                        .ldc = c.grad.pitch()};
  const int64_t scratch = gemm_scratch_floats(shape, runtime_.pool.size());
  const auto lease = workspace().lease(static_cast<size_t>(scratch) * sizeof(float), "gemm");
  gle::cpu::GLE_ISA::gemm(runtime_.pool, shape, a.data(), b.data(), bias.data(), c.mode, c.grad.data(), lease.floats());
}

}  // namespace gle::cpu::GLE_ISA
