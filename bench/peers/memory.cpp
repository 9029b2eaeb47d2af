// The resident memory of training steps, for bench/peers/memory.py:
//   gle-peer-memory NETWORK BATCH HEIGHT WIDTH CLASSES [recompute]
// prints the process's peak in MiB, what the allocator held and what was planned.
#include <sys/resource.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "engine/cpu/cpu.h"
#include "losses/cross_entropy.h"
#include "models/plan.h"

int main(int argc, char** argv) {
  using namespace gle;
  if (argc < 6) {
    std::fprintf(stderr, "usage: gle-peer-memory NETWORK BATCH HEIGHT WIDTH CLASSES [recompute]\n");
    return 2;
  }
  try {
    const int64_t classes = std::atoll(argv[5]);
    const Shape shape{std::atoll(argv[2]), std::atoll(argv[3]), std::atoll(argv[4]), 3};
    const NetworkOptions options{
        .name = argv[1], .head = {.classes = classes}, .recompute = argc > 6 && std::strcmp(argv[6], "recompute") == 0};
    const MemoryPlan plan = plan_memory(options, shape, Mode::training);
    const auto backend = make_cpu_backend();
    Network network(*backend, options);
    network.initialise(*backend, 1);
    std::vector<int32_t> label_values;
    for (int32_t i = 0; i < shape[0]; ++i) {
      label_values.push_back(i % static_cast<int32_t>(classes));
    }
    const Tensor labels = backend->new_tensor("labels", {shape[0]}, DType::i32);
    backend->upload(label_values.data(), labels);
    const Tensor images = backend->new_tensor("images", shape);
    backend->fill(0.5F, images);
    Tape tape(*backend);
    for (int step = 0; step < 2; ++step) {
      tape.clear();
      network.parameters().clear_gradients();
      Context ctx{.backend = *backend, .tape = &tape, .mode = Mode::training};
      tape.backward(cross_entropy(ctx, network.forward(ctx, Var(images)).logits, labels));
      network.parameters().complete_gradients(*backend);
    }
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    const MemoryStatistics statistics = backend->allocator().statistics();
    std::printf("%ld allocator %zu MiB live, %zu reserved; planned %zu and %zu\n", usage.ru_maxrss / 1024,
                statistics.peak_live >> 20U, statistics.peak_reserved >> 20U, plan.peak >> 20U, plan.reserved >> 20U);
  } catch (const Error& error) {
    std::fprintf(stderr, "gle-peer-memory: %s\n", error.what());
    return static_cast<int>(error.code());
  }
}
