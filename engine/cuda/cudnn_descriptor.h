#pragma once

#include <cudnn.h>

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

#include "engine/cuda/handles.h"

namespace gle::cuda {

// Throws unless `status` is success, with the op and what cuDNN says of its own.
void check(cudnnStatus_t status, const char* op);
// What cuDNN says of its last failure in this thread.
std::string cudnn_reason(cudnnStatus_t status);

// A descriptor of cuDNN's graph API: attributes are set, then it is finalised, then attributes may be read.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(cudnnBackendDescriptorType_t type);

  cudnnBackendDescriptor_t get() const { return handle_.get(); }
  explicit operator bool() const { return static_cast<bool>(handle_); }

  void set(cudnnBackendAttributeName_t name, std::span<const int64_t> values);
  void set(cudnnBackendAttributeName_t name, int64_t value) { set(name, std::span(&value, 1)); }
  void set(cudnnBackendAttributeName_t name, float value);
  void set(cudnnBackendAttributeName_t name, cudnnDataType_t value);
  void set(cudnnBackendAttributeName_t name, cudnnConvolutionMode_t value);
  void set(cudnnBackendAttributeName_t name, cudnnBackendHeurMode_t value);
  void set(cudnnBackendAttributeName_t name, cudnnHandle_t value);
  void set(cudnnBackendAttributeName_t name, const std::string& text);
  void set(cudnnBackendAttributeName_t name, std::span<void* const> pointers);
  void set(cudnnBackendAttributeName_t name, cudnnBackendDescriptor_t value);
  void finalise();
  // Success, or why not; what a plan that does not fit the device says is no error.
  cudnnStatus_t try_finalise();

  int64_t number(cudnnBackendAttributeName_t name) const;
  std::vector<cudnnBackendNumericalNote_t> notes(cudnnBackendAttributeName_t name) const;
  Descriptor descriptor(cudnnBackendAttributeName_t name, cudnnBackendDescriptorType_t type) const;
  std::vector<Descriptor> descriptors(cudnnBackendAttributeName_t name, cudnnBackendDescriptorType_t type) const;

 private:
  void put(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, size_t count, const void* values);

  Owned<cudnnBackendDescriptor_t, cudnnBackendDestroyDescriptor> handle_;
};

}  // namespace gle::cuda
