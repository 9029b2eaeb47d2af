// What the machine can do at most with this instruction set: multiply-adds that wait for nothing, and the traffic of
// y = a * x + y over arrays far beyond the caches.
#include "engine/cpu/simd.h"

namespace gle::cpu::GLE_ISA {

// Returns the number of floating-point operations done; `sink` keeps the compiler honest.
double peak_multiply_adds(int64_t rounds, float* sink) {
  constexpr int kChains = 12;  // enough to hide the latency of two units
  vf sums[kChains];
  for (int i = 0; i < kChains; ++i) {
    sums[i] = set1(static_cast<float>(i));
  }
  vf a = set1(0.999F);
  const vf b = set1(1e-6F);
  for (int64_t round = 0; round < rounds; ++round) {
    for (int i = 0; i < kChains; ++i) {
      sums[i] = fma(sums[i], a, b);
    }
    asm volatile("" : "+x"(a));
  }
  vf total = sums[0];
  for (int i = 1; i < kChains; ++i) {
    total += sums[i];
  }
  store(sink, total);
  return static_cast<double>(rounds) * kChains * kLanes * 2;
}

void peak_traffic(int64_t begin, int64_t end, const float* x, float* y) {
  const vf a = set1(1.0001F);
  for (int64_t i = begin; i < end; i += kLanes) {
    store(y + i, fma(a, load(x + i), load(y + i)));
  }
}

}  // namespace gle::cpu::GLE_ISA
