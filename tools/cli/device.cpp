#include "tools/cli/device.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <map>

#include "engine/backends.h"
#include "engine/comm/nccl_comm.h"
#include "engine/cuda/cuda.h"
#include "engine/error.h"
#include "engine/thread_count.h"
#include "tools/cli/command.h"

namespace gle::tools {

namespace {

// Of the machine, or of the container if it has less.
size_t memory_at_hand() {
  auto bytes = static_cast<size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<size_t>(sysconf(_SC_PAGESIZE));
  for (const char* path : {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}) {
    size_t limit = 0;
    if (std::ifstream(path) >> limit) {
      bytes = std::min(bytes, limit);
    }
  }
  return bytes;
}

}  // namespace

void add_device_options(CLI::App& app, DeviceOptions& options) {
  app.add_option("--device", options.device, "auto, cpu, cuda or cuda:1")
      ->option_text("NAME")
      ->check(suggested({"auto", "cpu", "cuda"}));
  app.add_option("--threads", options.threads, "of the CPU; 0: GLE_NUM_THREADS, or the cores at hand")
      ->option_text("N")
      ->check(CLI::Range(0, 1024));
  app.add_option("--max-memory", options.max_memory,
                 "limit for tensors, such as 8GiB; default: nine tenths of the memory at hand")
      ->option_text("SIZE");
  app.add_flag("--tf32", options.tf32, "on a GPU: faster products, 10 bits of mantissa");
  app.add_flag("--deterministic", options.deterministic, "on a GPU: the same bits every time; the CPU always is");
  app.add_flag("--cuda-time-plans", options.cuda_time_plans,
               "on a GPU: time the ways to do each convolution, and keep the fastest");
}

void add_training_device_options(CLI::App& app, DeviceOptions& options) {
  add_device_options(app, options);
  app.add_flag("--cuda-graphs", options.cuda_graphs, "on a GPU: a training step in one launch");
}

size_t parse_bytes(const std::string& text) {
  static const std::map<std::string, int, std::less<>> kShifts = {{"", 0},     {"B", 0},    {"KiB", 10},
                                                                  {"MiB", 20}, {"GiB", 30}, {"TiB", 40}};
  uint64_t number = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  const auto unit = kShifts.find(std::string_view(end, static_cast<size_t>(text.data() + text.size() - end)));
  if (problem != std::errc() || unit == kShifts.end() || number == 0 || number > (SIZE_MAX >> unit->second)) {
    fail(ErrorCode::usage, "'", text, "' is no size; 512MiB or 8GiB is");
  }
  return number << unit->second;
}

DeviceOptions for_rank(const DeviceOptions& options, const Comm& comm) {
  DeviceOptions own = options;
  if (comm.local_size() > 1) {
    own.threads = thread_count_among(options.threads, comm.local_size());
    const auto gpus = static_cast<int>(cuda::report().devices.size());
    if (gpus > 0 && (options.device == "auto" || options.device == "cuda")) {
      own.device = "cuda:" + std::to_string(comm.local_rank() % gpus);
    }
  }
  return own;
}

std::unique_ptr<Comm> device_ranks(Comm& comm, Backend& backend) {
  const bool gpus = backend.device().kind == Device::Kind::cuda;
  return gpus && comm.size() > 1 ? make_nccl_comm(comm, backend) : nullptr;
}

std::unique_ptr<Backend> make_backend(const DeviceOptions& options) {
  const size_t limit = options.max_memory.empty() ? CachingAllocator::kNoLimit : parse_bytes(options.max_memory);
  auto backend = gle::make_backend({.device = options.device,
                                    .memory_limit = limit,
                                    .threads = options.threads,
                                    .tf32 = options.tf32,
                                    .deterministic = options.deterministic,
                                    .graphs = options.cuda_graphs,
                                    .time_plans = options.cuda_time_plans});
  if (options.max_memory.empty() && backend->device().kind == Device::Kind::cpu) {
    backend->allocator().set_limit(memory_at_hand() / 10 * 9);
  }
  return backend;
}

}  // namespace gle::tools
