#include "engine/cpu/cpu.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string_view>

#include "engine/error.h"

namespace gle {

namespace cpu {

namespace baseline {
Backend* new_backend(const RuntimeOptions& options, size_t memory_limit);
}
namespace avx2 {
Backend* new_backend(const RuntimeOptions& options, size_t memory_limit);
}
namespace avx512 {
Backend* new_backend(const RuntimeOptions& options, size_t memory_limit);
}

namespace {

constexpr std::array kIsas = {Isa::avx512, Isa::avx2, Isa::baseline};

}  // namespace

const char* name_of(Isa isa) {
  switch (isa) {
    case Isa::avx512:
      return "avx512";
    case Isa::avx2:
      return "avx2";
    case Isa::baseline:
      return "baseline";
  }
  bug("unknown instruction set");
}

// The compiler's test asks the operating system for the wide registers too, not only the processor.
bool supported(Isa isa) {
#if defined(__x86_64__)
  switch (isa) {
    case Isa::avx512:
      return supported(Isa::avx2) && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
             __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq");
    case Isa::avx2:
      return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    case Isa::baseline:
      return true;
  }
#endif
  return isa == Isa::baseline;
}

static Isa require_supported(Isa isa) {
  if (!supported(isa)) {
    fail(ErrorCode::usage, "cpu: this machine cannot run ", name_of(isa), " instructions");
  }
  return isa;
}

Isa chosen_isa() {
  const char* wanted = std::getenv("GLE_ISA");
  if (wanted && *wanted) {
    for (const Isa isa : kIsas) {
      if (std::string_view(wanted) == name_of(isa)) {
        return require_supported(isa);
      }
    }
    fail(ErrorCode::usage, "GLE_ISA=", wanted, ": expected baseline, avx2 or avx512");
  }
  return *std::find_if(kIsas.begin(), kIsas.end(), supported);
}

}  // namespace cpu

std::unique_ptr<Backend> make_cpu_backend(const CpuOptions& options) {
  const cpu::Isa isa = options.isa ? cpu::require_supported(*options.isa) : cpu::chosen_isa();
  const cpu::RuntimeOptions runtime{isa, options.threads, options.library, options.note};
  switch (isa) {
    case cpu::Isa::avx512:
      return std::unique_ptr<Backend>(cpu::avx512::new_backend(runtime, options.memory_limit));
    case cpu::Isa::avx2:
      return std::unique_ptr<Backend>(cpu::avx2::new_backend(runtime, options.memory_limit));
    case cpu::Isa::baseline:
      return std::unique_ptr<Backend>(cpu::baseline::new_backend(runtime, options.memory_limit));
  }
  bug("unknown instruction set");
}

}  // namespace gle
