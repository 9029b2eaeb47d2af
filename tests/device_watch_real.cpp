#include "tests/device_watch.h"

namespace gle::test {

void watch_device() {}

}  // namespace gle::test
