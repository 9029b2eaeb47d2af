#include <gtest/gtest.h>

#include "simt/simt.h"
#include "tests/device_watch.h"

namespace gle::test {

namespace {

class Watch : public testing::EmptyTestEventListener {
  void OnTestEnd(const testing::TestInfo&) override {
    for (const simt::Report& report : simt::take_reports()) {
      ADD_FAILURE() << simt::name_of(report.kind) << ": " << report.text;
    }
  }
};

}  // namespace

void watch_device() {
  static const bool watching = [] {
    testing::UnitTest::GetInstance()->listeners().Append(new Watch);
    return true;
  }();
  (void)watching;
}

}  // namespace gle::test
