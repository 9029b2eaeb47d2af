#pragma once

#include <cuda_runtime_api.h>

#include <utility>

namespace gle::cuda {

// Owns one handle of a library whose null is "none"; destroying never throws.
template <class Handle, auto destroy>
class Owned {
 public:
  Owned() = default;
  explicit Owned(Handle handle) : handle_(handle) {}
  Owned(Owned&& other) noexcept : handle_(std::exchange(other.handle_, Handle{})) {}
  Owned& operator=(Owned&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Owned() {
    if (handle_) {
      (void)destroy(handle_);
    }
  }

  Handle get() const { return handle_; }
  Handle release() { return std::exchange(handle_, Handle{}); }
  explicit operator bool() const { return handle_ != Handle{}; }

 private:
  Handle handle_{};
};

using Stream = Owned<cudaStream_t, cudaStreamDestroy>;
using Event = Owned<cudaEvent_t, cudaEventDestroy>;

// A stream that does not wait for the default one; an event without a clock.
Stream new_stream(const char* op);
Event new_event(const char* op);

}  // namespace gle::cuda
