#pragma once

#include <cstddef>

namespace simt {

// A stack and where to go on with it. Switching saves what the System V ABI lets a function keep, nothing more.
class Fiber {
 public:
  static constexpr size_t kStackBytes = 128 * 1024;

  Fiber();
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // The next resume() begins entry(), which must never return. What was on the stack is forgotten.
  void reset(void (*entry)());
  void resume();
  // Back to resume(), from within.
  void pause();

  bool owns(const void* address) const {
    return static_cast<const char*>(address) >= stack_ && static_cast<const char*>(address) < stack_ + kStackBytes;
  }

 private:
  char* stack_;
  void* pointer_ = nullptr;
  void* caller_ = nullptr;
};

}  // namespace simt
