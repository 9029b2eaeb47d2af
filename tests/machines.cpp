#include "tests/machines.h"

#include <cstdlib>
#include <iostream>
#include <map>
#include <memory>
#include <string_view>
#include <tuple>

#include "engine/cuda/cuda.h"
#include "tests/device_watch.h"

namespace gle::test {

namespace {

std::vector<Machine> processors() {
  std::vector<Machine> result;
  for (const cpu::Isa isa : {cpu::Isa::baseline, cpu::Isa::avx2, cpu::Isa::avx512}) {
    if (cpu::supported(isa)) {
      result.push_back({Machine::Kind::cpu, isa});
    }
  }
  const Machine with_library{Machine::Kind::cpu_library, result.back().isa};
  if (std::string_view(backend_of(with_library, 1).description()).find("oneDNN") != std::string_view::npos) {
    result.push_back(with_library);
  }
  return result;
}

std::vector<Machine> gpus(Machine::Kind kind) {
  const cuda::Report report = cuda::report();
  if (report.devices.empty()) {
    // ctest takes this for a skipped test; there is nothing for any test of this process to run on.
    std::cout << "no GPU: " << report.missing << std::endl;
    std::_Exit(0);
  }
  watch_device();
  return {{kind}};
}

}  // namespace

bool Machine::takes(int64_t elements) const {
  constexpr int64_t kMostEmulated = 2500;
  return kind != Kind::emulated_gpu || elements <= kMostEmulated;
}

const std::vector<Machine>& machines() {
  static const std::vector<Machine> all = [] {
    const char* wanted = std::getenv("GLE_TEST_MACHINES");
    const std::string_view name = wanted ? wanted : "";
    return name == "gpu"            ? gpus(Machine::Kind::gpu)
           : name == "emulated_gpu" ? gpus(Machine::Kind::emulated_gpu)
                                    : processors();
  }();
  return all;
}

std::string name_of(const Machine& machine) {
  switch (machine.kind) {
    case Machine::Kind::cpu:
      return cpu::name_of(machine.isa);
    case Machine::Kind::cpu_library:
      return std::string(cpu::name_of(machine.isa)) + " with oneDNN";
    case Machine::Kind::gpu:
    case Machine::Kind::emulated_gpu:
      break;
  }
  return "cuda";
}

Backend& backend_of(const Machine& machine, int threads) {
  static std::map<std::tuple<Machine::Kind, cpu::Isa, int>, std::unique_ptr<Backend>> made;
  const bool cpu = machine.kind == Machine::Kind::cpu || machine.library();
  std::unique_ptr<Backend>& backend = made[{machine.kind, machine.isa, cpu ? threads : 0}];
  if (!backend && cpu) {
    backend = make_cpu_backend({.isa = machine.isa, .threads = threads, .library = machine.library()});
    backend->workspace().set_poison(true);
  } else if (!backend) {
    backend = make_cuda_backend({.deterministic = true, .graphs = true});
  }
  return *backend;
}

Backend& any_backend() {
  const Machine& last = machines().back();
  return backend_of({last.library() ? Machine::Kind::cpu : last.kind, last.isa}, 2);
}

}  // namespace gle::test
