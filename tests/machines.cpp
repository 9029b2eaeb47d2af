#include "tests/machines.h"

#include <map>
#include <memory>
#include <string_view>
#include <tuple>

namespace gle::test {

const std::vector<Machine>& machines() {
  static const std::vector<Machine> all = [] {
    std::vector<Machine> result;
    for (const cpu::Isa isa : {cpu::Isa::baseline, cpu::Isa::avx2, cpu::Isa::avx512}) {
      if (cpu::supported(isa)) {
        result.push_back({isa, false});
      }
    }
    const Machine with_library{result.back().isa, true};
    if (std::string_view(backend_of(with_library, 1).description()).find("oneDNN") != std::string_view::npos) {
      result.push_back(with_library);
    }
    return result;
  }();
  return all;
}

std::string name_of(const Machine& machine) {
  return std::string(cpu::name_of(machine.isa)) + (machine.library ? " with oneDNN" : "");
}

Backend& backend_of(const Machine& machine, int threads) {
  static std::map<std::tuple<cpu::Isa, bool, int>, std::unique_ptr<Backend>> made;
  std::unique_ptr<Backend>& backend = made[{machine.isa, machine.library, threads}];
  if (!backend) {
    backend = make_cpu_backend({.isa = machine.isa, .threads = threads, .library = machine.library});
    backend->workspace().set_poison(true);
  }
  return *backend;
}

Backend& any_backend() {
  const std::vector<Machine>& all = machines();
  return backend_of({all.back().isa, false}, 2);
}

}  // namespace gle::test
