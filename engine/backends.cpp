#include "engine/backends.h"

#include <charconv>
#include <string_view>

#include "engine/cpu/cpu.h"
#include "engine/cuda/cuda.h"
#include "engine/error.h"

namespace gle {

namespace {

std::unique_ptr<Backend> cpu_backend(const DeviceRequest& request, const std::string& note) {
  return make_cpu_backend({.threads = request.threads, .memory_limit = request.memory_limit, .note = note});
}

std::unique_ptr<Backend> cuda_backend(const DeviceRequest& request, int index) {
  return make_cuda_backend({.device = index,
                            .memory_limit = request.memory_limit,
                            .tf32 = request.tf32,
                            .deterministic = request.deterministic,
                            .time_plans = request.time_plans,
                            .graphs = request.graphs});
}

// 0 for "cuda", 1 for "cuda:1".
int index_of(std::string_view device) {
  constexpr std::string_view kPlain = "cuda";
  constexpr std::string_view kNumbered = "cuda:";
  if (device == kPlain) {
    return 0;
  }
  int index = -1;
  if (device.starts_with(kNumbered)) {
    const char* end = device.data() + device.size();
    const auto [stop, problem] = std::from_chars(device.data() + kNumbered.size(), end, index);
    index = problem == std::errc() && stop == end ? index : -1;
  }
  if (index < 0) {
    fail(ErrorCode::usage, "device '", device, "': expected auto, cpu, cuda or cuda:1");
  }
  return index;
}

}  // namespace

std::unique_ptr<Backend> make_backend(const DeviceRequest& request) {
  if (request.deterministic && request.time_plans) {
    fail(ErrorCode::usage,
         "device: convolutions that are timed may be done another way each time, and with other bits; "
         "choose between timed plans and determinism");
  }
  if (request.device == "cpu") {
    return cpu_backend(request, "");
  }
  if (request.device == "auto") {
    const std::string missing = cuda::report().missing;
    return missing.empty() ? cuda_backend(request, 0) : cpu_backend(request, missing);
  }
  return cuda_backend(request, index_of(request.device));
}

}  // namespace gle
