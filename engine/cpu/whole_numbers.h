#pragma once

#include <cstdint>

#include "engine/cpu/simd.h"

namespace gle::cpu::GLE_ISA {

GLE_INLINE int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }
GLE_INLINE int64_t larger(int64_t a, int64_t b) { return a < b ? b : a; }
GLE_INLINE int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

}  // namespace gle::cpu::GLE_ISA
