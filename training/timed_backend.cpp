#include "training/timed_backend.h"

#include <algorithm>

#include "engine/error.h"

namespace gle {

TimedBackend::TimedBackend(Backend& inner) : Backend(host_memory(), inner.allocator().limit()), inner_(inner) {
  require(inner.device() == device(), "profile",
          "times what a CPU does; on a GPU let Nsight Systems watch the program");
}

TimedBackend::~TimedBackend() = default;

TimedBackend::Kernel& TimedBackend::Kernel::operator+=(const Kernel& other) {
  calls += other.calls;
  seconds += other.seconds;
  operations += other.operations;
  bytes += other.bytes;
  return *this;
}

TimedBackend::Timer::Timer(TimedBackend& backend, const Work& work, double bytes)
    : backend_(backend), work_(work), bytes_(bytes), start_(std::chrono::steady_clock::now()) {}

TimedBackend::Timer::~Timer() {
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  Kernel& kernel = backend_.kernels_[work_.name];
  kernel.name = work_.name;
  kernel += {.name = work_.name, .calls = 1, .seconds = seconds, .operations = work_.operations, .bytes = bytes_};
}

std::vector<TimedBackend::Kernel> TimedBackend::kernels() const {
  std::vector<Kernel> list;
  for (const auto& [name, kernel] : kernels_) {
    list.push_back(kernel);
  }
  std::ranges::stable_sort(list, std::greater(), &Kernel::seconds);
  return list;
}

double TimedBackend::seconds() const {
  double sum = 0;
  for (const auto& [name, kernel] : kernels_) {
    sum += kernel.seconds;
  }
  return sum;
}

void TimedBackend::reset() { kernels_.clear(); }

}  // namespace gle
