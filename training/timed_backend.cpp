#include "training/timed_backend.h"

#include <algorithm>

#include "engine/error.h"

namespace gle {

TimedBackend::TimedBackend(Backend& inner) : Backend(host_memory(), inner.allocator().limit()), inner_(inner) {
  require(inner.device() == device(), "profile",
          "times what a CPU does; on a GPU let Nsight Systems watch the program");
}

TimedBackend::~TimedBackend() = default;

TimedBackend::Timer::Timer(TimedBackend& backend, const char* name)
    : backend_(backend), name_(name), start_(std::chrono::steady_clock::now()) {}

TimedBackend::Timer::~Timer() {
  Kernel& kernel = backend_.kernels_[name_];
  kernel.name = name_;
  ++kernel.calls;
  kernel.seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
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
