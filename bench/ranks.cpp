// Training steps of ranks with the Group Loss over all their samples: bytes that each has to send, bytes that its
// network devices sent, and how much of the exchange the backward pass hid. Under mpirun; bench/ranks.sh gives each
// rank a network device of its own.
//   gle-bench-ranks NETWORK BATCH_OF_A_RANK HEIGHT WIDTH STEPS sync|own
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "bench/machine.h"
#include "engine/comm/mpi_comm.h"
#include "engine/cpu/cpu.h"
#include "engine/error.h"
#include "training/learner.h"

namespace gle::bench {

namespace {

constexpr int64_t kClasses = 100;
constexpr int kWarmUp = 2;

// By all devices of this process's network but the loopback.
double device_bytes_sent() {
  std::ifstream file("/proc/self/net/dev");
  double sum = 0;
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.find(':');
    if (colon == std::string::npos || line.substr(0, colon).ends_with("lo")) {
      continue;
    }
    std::istringstream numbers(line.substr(colon + 1));
    double number = 0;
    for (int column = 0; column <= 8; ++column) {  // the ninth: bytes sent
      numbers >> number;
    }
    sum += number;
  }
  return sum;
}

struct Measured {
  double seconds, handed_over, least, sent, busy, waiting;

  static Measured now(const Comm& comm) {
    const CommStatistics s = comm.statistics();
    return {std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(),
            static_cast<double>(s.bytes),
            static_cast<double>(s.least_sent),
            device_bytes_sent(),
            s.busy_seconds,
            s.waiting_seconds};
  }
};

void run(Comm& comm, int argc, char** argv) {
  require(argc == 7, "gle-bench-ranks", "expected NETWORK BATCH_OF_A_RANK HEIGHT WIDTH STEPS sync|own");
  const auto backend = make_cpu_backend({.threads = 1});
  const int64_t batch = std::atol(argv[2]);
  const int64_t steps = std::atol(argv[5]);
  TrainingConfig config;
  config.network.name = argv[1];
  config.phase1.loss = "group_loss";
  config.distributed.sync_batch_norm = std::string(argv[6]) == "sync";
  Learner learner(*backend, config, kClasses, &comm);
  learner.network().initialise(*backend, 1);
  learner.begin_phase(config.phase1, Learner::Moments::reset);
  const Tensor images = random_tensor(*backend, {batch, std::atol(argv[3]), std::atol(argv[4]), 3});
  std::vector<int32_t> labels;
  for (int64_t i = 0; i < batch * comm.size(); ++i) {
    labels.push_back(static_cast<int32_t>(i / 4 % kClasses));
  }

  Measured before{};
  for (int64_t step = 0; step < kWarmUp + steps; ++step) {
    if (step == kWarmUp) {
      comm.barrier();
      before = Measured::now(comm);
    }
    learner.add(images, labels, static_cast<uint64_t>(step), 1);
    learner.measure();
    learner.step(1e-4F);
  }
  const Measured after = Measured::now(comm);
  const auto each = static_cast<double>(steps * comm.size());
  double mean[] = {after.seconds - before.seconds, after.handed_over - before.handed_over,
                   after.least - before.least,     after.sent - before.sent,
                   after.busy - before.busy,       after.waiting - before.waiting};
  comm.all_reduce(mean);
  for (double& number : mean) {
    number /= each;
  }
  if (comm.rank() == 0) {
    const auto gradients = static_cast<double>(learner.network().parameters().gradients().elements()) * sizeof(float);
    const double ranks = comm.size();
    const double of_gradients = 2 * (ranks - 1) / ranks * gradients;
    std::printf("%s, %d ranks of %ld images %sx%s, batch-norm of %s\n", argv[1], comm.size(), static_cast<long>(batch),
                argv[3], argv[4], config.distributed.sync_batch_norm ? "all" : "each rank");
    std::printf("  a step         %9.1f ms\n", mean[0] * 1e3);
    std::printf("  gradients      %9.3f MB, of which a rank has to send %.3f MB\n", gradients / 1e6,
                of_gradients / 1e6);
    std::printf("  handed over    %9.3f MB\n", mean[1] / 1e6);
    std::printf("  has to send    %9.3f MB, %.2f%% of them gradients\n", mean[2] / 1e6, 100 * of_gradients / mean[2]);
    std::printf("  devices sent   %9.3f MB, %.3f times that\n", mean[3] / 1e6, mean[3] / mean[2]);
    std::printf("  collectives    %9.1f ms, waited for %.1f ms: %.0f%% hidden\n", mean[4] * 1e3, mean[5] * 1e3,
                100 * (1 - mean[5] / mean[4]));
  }
}

}  // namespace

}  // namespace gle::bench

int main(int argc, char** argv) {
  const std::unique_ptr<gle::Comm> comm = gle::make_mpi_comm();
  try {
    gle::bench::run(*comm, argc, argv);
  } catch (const gle::Error& e) {
    std::fprintf(stderr, "%s\n", e.what());
    comm->abort(static_cast<int>(e.code()));
  }
  return 0;
}
