#include "tools/step_profile.h"

#include <algorithm>
#include <cstdio>

namespace gle::tools {

void StepProfile::step(const StepReport& report) {
  const auto now = std::chrono::steady_clock::now();
  const Position& at = report.position;
  of_phase_ = at.phase == before_.phase ? of_phase_ + 1 : 1;
  const bool saved = config_.run.checkpoint_steps > 0 && before_.step % config_.run.checkpoint_steps == 0;
  constexpr int64_t kWarming = 3;
  if (of_phase_ > kWarming && at.epoch == before_.epoch && !saved) {
    ++steps_;
    seconds_ += std::chrono::duration<double>(now - last_).count();
    loading_ += report.loading_seconds;
    for (const TimedBackend::Kernel& kernel : backend_.kernels()) {
      auto found = std::ranges::find(kernels_, kernel.name, &TimedBackend::Kernel::name);
      if (found == kernels_.end()) {
        found = kernels_.insert(found, {.name = kernel.name});
      }
      *found += kernel;
    }
  }
  before_ = at;
  last_ = now;
  backend_.reset();
}

void StepProfile::print() const {
  if (steps_ == 0) {
    std::printf("profile    no step to measure: too few in an epoch\n");
    return;
  }
  const auto count = static_cast<double>(steps_);
  const auto line = [&](const char* name, double seconds, const std::string& more) {
    std::printf("  %-26s %10.3f %7.2f%% %s\n", name, 1000 * seconds / count, 100 * seconds / seconds_, more.c_str());
  };
  std::printf("profile    %ld steps of %.1f ms\n  %-26s %10s %8s %8s %8s %8s\n", static_cast<long>(steps_),
              1000 * seconds_ / count, "", "ms a step", "share", "calls", "GFLOP/s", "GB/s");
  std::vector<TimedBackend::Kernel> sorted = kernels_;
  std::ranges::stable_sort(sorted, std::greater(), &TimedBackend::Kernel::seconds);
  double in_kernels = 0;
  for (const TimedBackend::Kernel& kernel : sorted) {
    char rates[64];
    std::snprintf(rates, sizeof rates, "%8.1f %8.1f %8.1f", static_cast<double>(kernel.calls) / count,
                  kernel.operations / kernel.seconds * 1e-9, kernel.bytes / kernel.seconds * 1e-9);
    line(std::string(kernel.name).c_str(), kernel.seconds, rates);
    in_kernels += kernel.seconds;
  }
  line("all kernels", in_kernels, "");
  line("waiting for pictures", loading_, "");
  line("everything else", seconds_ - in_kernels - loading_, "");
}

}  // namespace gle::tools
