#include "tests/counting_new.h"

#include <atomic>
#include <cstdlib>
#include <new>

namespace gle::test {

namespace {
std::atomic<int64_t> calls = 0;
}

int64_t calls_of_new() { return calls; }

}  // namespace gle::test

void* operator new(size_t bytes, const std::nothrow_t&) noexcept {
  ++gle::test::calls;
  return std::malloc(bytes);
}
void* operator new(size_t bytes) {
  if (void* data = operator new(bytes, std::nothrow)) {
    return data;
  }
  throw std::bad_alloc();
}
void operator delete(void* data) noexcept { std::free(data); }
void operator delete(void* data, size_t) noexcept { std::free(data); }
void operator delete(void* data, const std::nothrow_t&) noexcept { std::free(data); }
