#include <gtest/gtest.h>

#include <cstdlib>
#include <string_view>

#include "fake_cuda/fake_cuda.h"
#include "simt/simt.h"
#include "tests/device_watch.h"

namespace gle::test {

namespace {

class Watch : public testing::EmptyTestEventListener {
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

//   GLE_SIMT_CHECK=0    kernels compute without the checker
//   GLE_SIMT_SEED=N     another order of threads, blocks and streams
void follow_environment() {
  const char* const check = std::getenv("GLE_SIMT_CHECK");
  const char* const number = std::getenv("GLE_SIMT_SEED");
  const uint64_t seed = number == nullptr ? 1 : std::strtoull(number, nullptr, 10);
  fake_cuda::reset({.seed = seed});
  simt::set_options(
      {.order = simt::Order::random, .seed = seed, .check = check == nullptr || std::string_view(check) != "0"});
}

}  // namespace

void watch_device() {
  static const bool watching = [] {
    follow_environment();
    testing::UnitTest::GetInstance()->listeners().Append(new Watch);
    return true;
  }();
  (void)watching;
}

}  // namespace gle::test
