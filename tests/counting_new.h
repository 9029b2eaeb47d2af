#pragma once

#include <cstdint>

namespace gle::test {

// How often operator new was called so far, in a program that links counting_new.cpp.
int64_t calls_of_new();

}  // namespace gle::test
