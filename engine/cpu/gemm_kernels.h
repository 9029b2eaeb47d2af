#pragma once

// c[m,n] (+)= op(a)[m,k] op(b)[k,n] + bias[n], fp32, row-major, op the identity or the transpose. No allocation:
// scratch comes from the caller. The same bits for any number of threads.

#include <cstdint>

#include "engine/cpu/isa.h"
#include "engine/modes.h"
#include "engine/thread_pool.h"

namespace gle::cpu {

struct GemmShape {
  int64_t m, n, k;
  Transpose transpose_a, transpose_b;  // no: a is [m, k], b is [k, n]; yes: a is [k, m], b is [n, k]
  int64_t lda, ldb, ldc;               // floats from one row to the next, of a, b and c as they lie in memory
};

namespace GLE_ISA {

int64_t gemm_scratch_floats(const GemmShape& shape, int threads);
// bias: [n] or null.
void gemm(ThreadPool& pool, const GemmShape& shape, const float* a, const float* b, const float* bias, Accumulate mode,
          float* c, float* scratch);

}  // namespace GLE_ISA
}  // namespace gle::cpu
