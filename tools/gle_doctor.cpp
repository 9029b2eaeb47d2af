// What this machine has, and whether every op gives the right numbers on it: each runs forward and backward on plain
// baseline kernels with one thread and on the fast path, which must agree.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>

#include "engine/cpu/cpu.h"
#include "engine/error.h"
#include "tools/doctor_checks.h"

namespace gle::doctor {

namespace {

constexpr double kTolerance = 1e-4;
constexpr const char* kUsage =
    "usage: gle-doctor [--help] [--version]\n"
    "\n"
    "Prints what this machine has and runs every op forward and backward on plain\n"
    "kernels and on the fast ones. Exit code 0 if all agree, else 1.\n"
    "\n"
    "GLE_ISA=baseline|avx2|avx512 and GLE_NUM_THREADS=N choose what is tested.\n"
    "\n"
    "example: GLE_ISA=avx2 gle-doctor\n";

// The largest difference relative to the largest value; infinite if a value is not finite.
double difference(const std::vector<float>& a, const std::vector<float>& b) {
  double largest = 1e-30;
  double worst = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    if (!std::isfinite(a[i]) || !std::isfinite(b[i])) {
      return INFINITY;
    }
    largest = std::max(largest, std::abs(static_cast<double>(a[i])));
    worst = std::max(worst, std::abs(static_cast<double>(a[i]) - b[i]));
  }
  return a.size() == b.size() ? worst / largest : INFINITY;
}

int examine() {
  for (const cpu::Isa isa : {cpu::Isa::baseline, cpu::Isa::avx2, cpu::Isa::avx512}) {
    std::printf("%-10s %s\n", cpu::name_of(isa), cpu::supported(isa) ? "supported" : "not on this machine");
  }
  const auto plain = make_cpu_backend({.isa = cpu::Isa::baseline, .threads = 1, .library = false});
  const auto fast = make_cpu_backend();
  std::printf("plain: %s\nfast:  %s\n\n%-28s %12s %10s %10s\n", plain->description(), fast->description(), "op",
              "difference", "plain ms", "fast ms");
  int failed = 0;
  for (const Check& check : all_checks()) {
    const Outcome expected = run(check, *plain);
    const Outcome found = run(check, *fast);
    const double worst = difference(expected.values, found.values);
    const bool good = worst <= kTolerance;
    failed += good ? 0 : 1;
    std::printf("%-28s %12.1e %10.2f %10.2f%s\n", check.name.c_str(), worst, expected.seconds * 1e3,
                found.seconds * 1e3, good ? "" : "  WRONG");
  }
  std::printf("\n%s\n",
              failed == 0 ? "all ops agree" : "some ops are WRONG on this machine: please report this output");
  return failed == 0 ? 0 : 1;
}

int dispatch(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--help") == 0) {
      std::fputs(kUsage, stdout);
      return 0;
    }
    if (std::strcmp(argv[i], "--version") == 0) {
      std::puts("gle-doctor " GLE_VERSION);
      return 0;
    }
    fail(ErrorCode::usage, "unknown argument '", argv[i], "'; try --help");
  }
  return examine();
}

}  // namespace

}  // namespace gle::doctor

int main(int argc, char** argv) {
  try {
    return gle::doctor::dispatch(argc, argv);
  } catch (const gle::Error& e) {
    std::fprintf(stderr, "gle-doctor: %s\n", e.what());
    return static_cast<int>(e.code());
  } catch (const std::exception& e) {
    std::fprintf(stderr, "gle-doctor: %s\n", e.what());
    return 1;
  }
}
