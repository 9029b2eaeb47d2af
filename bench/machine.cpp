#include "bench/machine.h"

#include <algorithm>
#include <chrono>
#include <fstream>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "engine/error.h"
#include "engine/thread_pool.h"

namespace gle::cpu {

namespace baseline {
double peak_multiply_adds(int64_t rounds, float* sink);
void peak_traffic(int64_t begin, int64_t end, const float* x, float* y);
}  // namespace baseline
namespace avx2 {
double peak_multiply_adds(int64_t rounds, float* sink);
void peak_traffic(int64_t begin, int64_t end, const float* x, float* y);
}  // namespace avx2
namespace avx512 {
double peak_multiply_adds(int64_t rounds, float* sink);
void peak_traffic(int64_t begin, int64_t end, const float* x, float* y);
}  // namespace avx512

}  // namespace gle::cpu

namespace gle::bench {

namespace {

struct Kernels {
  double (*multiply_adds)(int64_t, float*);
  void (*traffic)(int64_t, int64_t, const float*, float*);
};

Kernels kernels_of(cpu::Isa isa) {
  switch (isa) {
    case cpu::Isa::avx512:
      return {cpu::avx512::peak_multiply_adds, cpu::avx512::peak_traffic};
    case cpu::Isa::avx2:
      return {cpu::avx2::peak_multiply_adds, cpu::avx2::peak_traffic};
    case cpu::Isa::baseline:
      return {cpu::baseline::peak_multiply_adds, cpu::baseline::peak_traffic};
  }
  bug("unknown instruction set");
}

}  // namespace

double peak_mebibytes() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    if (double kibibytes = 0; word == "VmHWM:" && status >> kibibytes) {
      return kibibytes / 1024;
    }
  }
  fail(ErrorCode::io, "/proc/self/status: has no VmHWM");
}

double seconds(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double best_seconds(int rounds, const std::function<void()>& work) {
  work();
  double best = 1e30;
  for (int i = 0; i < rounds; ++i) {
    best = std::min(best, seconds(work));
  }
  return best;
}

Peak measure_peak(cpu::Isa isa, int threads) {
  const Kernels kernels = kernels_of(isa);
  ThreadPool pool(threads);
  constexpr int kRounds = 7;
  constexpr int64_t kPieces = 64;
  Peak peak;

  double operations = 0;
  const double compute = best_seconds(kRounds, [&] {
    std::vector<double> done(kPieces);
    pool.parallel_for(kPieces, [&](int64_t piece, int) {
      float sink[16];
      done[static_cast<size_t>(piece)] = kernels.multiply_adds(20000, sink);
    });
    operations = 0;
    for (const double d : done) {
      operations += d;
    }
  });
  peak.gflops = operations / compute * 1e-9;

  constexpr int64_t kFloats = int64_t{64} << 20;
  std::vector<float> x(kFloats, 1.0F);
  std::vector<float> y(kFloats, 1.0F);
  const double memory = best_seconds(kRounds, [&] {
    pool.parallel_for(kPieces, [&](int64_t piece, int) {
      kernels.traffic(piece * (kFloats / kPieces), (piece + 1) * (kFloats / kPieces), x.data(), y.data());
    });
  });
  peak.gbytes = 3.0 * sizeof(float) * kFloats / memory * 1e-9;
  return peak;
}

Backend& backend() {
  static const std::unique_ptr<Backend> instance = make_cpu_backend();
  return *instance;
}

const Peak& peak() {
  static const Peak measured = [] {
    const cpu::Isa isa = cpu::chosen_isa();
    return measure_peak(isa, 0);
  }();
  return measured;
}

Tensor random_tensor(Backend& backend, const Shape& shape, uint64_t seed) {
  std::vector<float> values(static_cast<size_t>(shape.elements()));
  std::minstd_rand generator(static_cast<unsigned>(seed));
  std::uniform_real_distribution<float> uniform(-1.0F, 1.0F);
  std::generate(values.begin(), values.end(), [&] { return uniform(generator); });
  Tensor tensor = backend.new_tensor("bench", shape);
  backend.upload(values.data(), tensor);
  return tensor;
}

}  // namespace gle::bench
