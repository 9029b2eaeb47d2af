// What this machine has, and whether every op gives the right numbers on it: each runs forward and backward on plain
// baseline kernels with one thread, and on the fast path of the CPU and on every GPU, which must agree with them.
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "engine/backends.h"
#include "engine/cpu/cpu.h"
#include "engine/cuda/cuda.h"
#include "engine/error.h"
#include "tools/cli/program.h"
#include "tools/doctor_checks.h"
#include "tools/doctor_oracle.h"

namespace gle::doctor {

namespace {

constexpr double kTolerance = 1e-4;
// Products of numbers with 10 bits of mantissa.
constexpr double kTf32Tolerance = 5e-3;

// One way to run the ops, to be held against the plain one.
struct Side {
  std::string name;
  std::unique_ptr<Backend> backend;
  double tolerance = kTolerance;
  int failed = 0;
};

// The largest difference relative to the largest value; infinite if a value is not finite.
double difference(const std::vector<float>& a, const std::vector<float>& b) {
  double largest = 1e-30;
  double worst = 0;
  if (a.size() != b.size()) {
    return INFINITY;
  }
  for (size_t i = 0; i < a.size(); ++i) {
    if (!std::isfinite(a[i]) || !std::isfinite(b[i])) {
      return INFINITY;
    }
    largest = std::max(largest, std::abs(static_cast<double>(a[i])));
    worst = std::max(worst, std::abs(static_cast<double>(a[i]) - b[i]));
  }
  return worst / largest;
}

void describe_machine(const cuda::Report& report) {
  std::printf("gle-doctor %s\n\ninstruction sets:", GLE_VERSION);
  for (const cpu::Isa isa : {cpu::Isa::baseline, cpu::Isa::avx2, cpu::Isa::avx512}) {
    std::printf(" %s%s", cpu::name_of(isa), cpu::supported(isa) ? "" : " (not on this machine)");
  }
  std::printf("\ncuda: %s\n", report.versions.empty() ? "not in this build" : report.versions.c_str());
  for (size_t i = 0; i < report.devices.size(); ++i) {
    const cuda::DeviceReport& device = report.devices[i];
    std::printf("cuda:%zu: %s, compute capability %d.%d, %d multiprocessors, %.1f GiB\n", i, device.name.c_str(),
                device.major, device.minor, device.multiprocessors,
                static_cast<double>(device.memory) / static_cast<double>(size_t{1} << 30));
  }
  if (!report.missing.empty()) {
    std::printf("no GPU: %s; its part is left out\n", report.missing.c_str());
  }
}

std::vector<Side> sides_of(const cuda::Report& report) {
  std::vector<Side> sides;
  sides.push_back({"fast", make_cpu_backend()});
  for (size_t i = 0; i < report.devices.size(); ++i) {
    const std::string name = "cuda:" + std::to_string(i);
    sides.push_back({name, make_backend({.device = name, .deterministic = true})});
    sides.push_back({name + " tf32", make_backend({.device = name, .tf32 = true}), kTf32Tolerance});
  }
  return sides;
}

// The difference and the time of one op on one side; an op that fails says why under the table's row.
std::string examine(const Check& check, const Outcome& expected, int rounds, Side& side) {
  try {
    const Outcome found = run(check, *side.backend, rounds);
    double worst = 0;
    const bool rounded = side.tolerance > kTolerance;
    const size_t compared = rounded && check.chooses ? 1 : expected.values.size();
    for (size_t i = 0; i < compared; ++i) {
      worst = std::max(worst, difference(expected.values[i], found.values[i]));
    }
    const bool good = worst <= side.tolerance;
    side.failed += good ? 0 : 1;
    std::printf(" %12.1e %10.3f", worst, found.seconds * 1e3);
    return good ? "" : "    WRONG on " + side.name + ": more than " + std::to_string(side.tolerance) + "\n";
  } catch (const Error& e) {
    ++side.failed;
    std::printf(" %12s %10s", "failed", "");
    return "    FAILED on " + side.name + ": " + e.what() + "\n";
  }
}

int examine_ops(int rounds) {
  const cuda::Report report = cuda::report();
  describe_machine(report);
  const auto plain = make_cpu_backend({.isa = cpu::Isa::baseline, .threads = 1, .library = false});
  std::vector<Side> sides = sides_of(report);
  std::printf("\nplain: %s\n", plain->description());
  for (const Side& side : sides) {
    std::printf("%s: %s\n", side.name.c_str(), side.backend->description());
  }
  std::printf(
      "\nThe largest difference from plain, of the output or a gradient, relative to its largest value; and the time "
      "of\n"
      "forward and backward. TF32 may choose other pairs for a loss: those that choose are judged by their value.\n"
      "\n%-31s %10s",
      "op", "plain ms");
  for (const Side& side : sides) {
    std::printf(" %12s %10s", side.name.c_str(), "ms");
  }
  std::printf("\n");
  for (const Check& check : all_checks()) {
    const Outcome expected = run(check, *plain, rounds);
    std::printf("%-31s %10.2f", check.name.c_str(), expected.seconds * 1e3);
    std::string complaints;
    for (Side& side : sides) {
      complaints += examine(check, expected, rounds, side);
    }
    std::printf("\n%s", complaints.c_str());
    std::fflush(stdout);
  }
  std::printf("\n");
  int failed = 0;
  for (const Side& side : sides) {
    std::printf("%s: %s\n", side.name.c_str(),
                side.failed == 0 ? "all ops agree" : (std::to_string(side.failed) + " ops are WRONG").c_str());
    failed += side.failed;
  }
  if (failed > 0) {
    std::printf("please report this output\n");
  }
  return failed == 0 ? 0 : 1;
}

int main(int argc, char** argv) {
  tools::Program program("gle-doctor",
                         "Prints what this machine has, and runs every op forward and backward on plain kernels, on "
                         "the fast ones and on every GPU. Exit code 0 if all agree, else 1.\n"
                         "GLE_ISA=baseline|avx2|avx512 and GLE_NUM_THREADS=N choose what is fast; "
                         "CUDA_VISIBLE_DEVICES which GPUs are seen.",
                         "GLE_ISA=avx2 gle-doctor");
  int rounds = 4;
  std::string oracle;
  std::string device = "auto";
  program.options()
      .add_option("--rounds", rounds, "how often an op is run; the time is the fastest but for the first, default: 4")
      ->option_text("N")
      ->check(CLI::Range(1, 1000));
  program.options()
      .add_option("--oracle", oracle, "run the Group Loss on every .npz of a folder of known answers instead")
      ->option_text("DIR");
  program.options().add_option("--device", device, "of --oracle: auto, cpu, cuda or cuda:1")->option_text("NAME");
  return program.run(argc, argv, [&] {
    return oracle.empty()                                                   ? examine_ops(rounds)
           : examine_oracle(oracle, *make_backend({.device = device})) == 0 ? 0
                                                                            : 1;
  });
}

}  // namespace

}  // namespace gle::doctor

int main(int argc, char** argv) { return gle::doctor::main(argc, argv); }
