#pragma once

namespace gle::test {

// Where the GPU is emulated: from now on a test fails for what the emulator has found in it.
void watch_device();

}  // namespace gle::test
