#pragma once

#include <cstdint>

namespace gle::cuda {

// What a kernel found wrong with its input. One word in device memory, cleared at the start: a kernel fills it if
// `what` is 0, and the next synchronise(), download() or returned number throws it.
struct DeviceStatus {
  enum What : int32_t { nothing = 0, bad_label = 1 };

  int32_t what;
  int32_t label;
  int32_t sample;
  int32_t classes;
};

}  // namespace gle::cuda
