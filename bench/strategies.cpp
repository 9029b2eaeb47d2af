// What each strategy of Group Loss++ costs at inference beside none, in turns, the best of several rounds.
//   gle-bench-strategies [NETWORK [BATCH [ROUNDS]]]
// CPU seconds stand beside the clock's: other programs on the machine do not lengthen them as much.
#include <sys/resource.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "bench/machine.h"
#include "models/network.h"
#include "retrieval/strategies.h"

namespace gle::bench {

namespace {

double cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto of = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return of(usage.ru_utime) + of(usage.ru_stime);
}

struct Row {
  std::string name;
  ForwardOptions options;
  double clock = 1e30;
  double cpu = 1e30;
};

int main(int argc, char** argv) {
  const std::string name = argc > 1 ? argv[1] : "bn_inception";
  const int64_t batch = argc > 2 ? std::strtoll(argv[2], nullptr, 10) : 16;
  const int rounds = argc > 3 ? std::atoi(argv[3]) : 12;
  Backend& b = backend();
  Network network(b, {.name = name});
  network.initialise(b, 1);
  const int64_t side = name == "bn_inception" ? 227 : 224;
  const Var images(random_tensor(b, {batch, side, side, 3}));
  const StrategyValues values = published_values("cub", Source::paper);
  std::vector<Row> rows;
  for (const char* used : {"none", "L", "M", "B", "L,M,B", "F", "M,B,L,F"}) {
    rows.push_back({used, forward_options(parse_strategies(used), values)});
  }
  for (int round = 0; round <= rounds; ++round) {
    for (Row& row : rows) {
      const double before = cpu_seconds();
      const double time = seconds([&] {
        Context ctx{.backend = b};
        network.forward(ctx, images, row.options);
        b.synchronise();
      });
      if (round > 0) {  // the first warms up
        row.clock = std::min(row.clock, time);
        row.cpu = std::min(row.cpu, cpu_seconds() - before);
      }
    }
  }
  std::printf("%s, %s, %lld images, best of %d\n\n%-10s %10s %8s %10s %8s\n", b.description(), name.c_str(),
              static_cast<long long>(batch), rounds, "strategies", "seconds", "times", "CPU s", "times");
  for (const Row& row : rows) {
    std::printf("%-10s %10.4f %8.3f %10.4f %8.3f\n", row.name.c_str(), row.clock, row.clock / rows[0].clock, row.cpu,
                row.cpu / rows[0].cpu);
  }
  return 0;
}

}  // namespace

}  // namespace gle::bench

int main(int argc, char** argv) {
  try {
    return gle::bench::main(argc, argv);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "gle-bench-strategies: %s\n", e.what());
    return 2;
  }
}
