#pragma once

#include <memory>
#include <string>

#include "engine/backend.h"
#include "tools/cli/program.h"

namespace gle::tools {

struct DeviceOptions {
  std::string device = "auto";
  int threads = 0;
  std::string max_memory;  // "24GiB"; empty: nine tenths of the host's, all of a GPU's
  // Of GPUs.
  bool tf32 = false;
  bool deterministic = false;
  bool cuda_graphs = false;
  bool cuda_time_plans = false;
};

// --device, --threads, --max-memory, --tf32, --deterministic, --cuda-time-plans.
void add_device_options(CLI::App& app, DeviceOptions& options);
// These and --cuda-graphs.
void add_training_device_options(CLI::App& app, DeviceOptions& options);
std::unique_ptr<Backend> make_backend(const DeviceOptions& options);
// What a rank takes where the options leave it open: the GPU of its number on its host, its share of the cores.
DeviceOptions for_rank(const DeviceOptions& options, const Comm& comm);
// What exchanges the tensors of several GPUs, NCCL beside `comm`; null where `comm` itself does.
std::unique_ptr<Comm> device_ranks(Comm& comm, Backend& backend);

// "512MiB", "24GiB", "1000000" -> bytes. ErrorCode::usage for anything else.
size_t parse_bytes(const std::string& text);

}  // namespace gle::tools
