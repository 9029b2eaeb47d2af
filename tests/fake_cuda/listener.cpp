// Linked into every test of a build for the emulated GPU: what the checker and the stand-ins report fails the test.
//   GLE_SIMT_CHECK=0    kernels compute without the checker
//   GLE_SIMT_SEED=N     another order of threads, blocks and streams

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "fake_cuda/fake_cuda.h"
#include "simt/simt.h"

namespace fake_cuda {

namespace {

class Listener : public testing::EmptyTestEventListener {
  void OnTestEnd(const testing::TestInfo&) override {
    size_t shown = 0;
    for (const simt::Report& report : simt::take_reports()) {
      if (++shown <= kMost) {
        ADD_FAILURE() << simt::name_of(report.kind) << ": " << report.text;
      }
    }
  }

  static constexpr size_t kMost = 10;
};

uint64_t seed_of_environment() {
  const char* const text = std::getenv("GLE_SIMT_SEED");
  return text == nullptr ? 1 : std::strtoull(text, nullptr, 10);
}

const bool registered = [] {
  const char* const check = std::getenv("GLE_SIMT_CHECK");
  const uint64_t seed = seed_of_environment();
  simt::set_options(
      {.order = simt::Order::random, .seed = seed, .check = check == nullptr || std::string(check) != "0"});
  reset({.seed = seed});
  testing::UnitTest::GetInstance()->listeners().Append(new Listener);
  return true;
}();

}  // namespace

}  // namespace fake_cuda
