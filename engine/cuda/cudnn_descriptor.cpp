#include "engine/cuda/cudnn_descriptor.h"

#include <array>

#include "engine/error.h"

namespace gle::cuda {

namespace {

constexpr const char* kOp = "conv2d";

}  // namespace

std::string cudnn_reason(cudnnStatus_t status) {
  std::array<char, 512> text{};
  cudnnGetLastErrorString(text.data(), text.size());
  return std::string(cudnnGetErrorString(status)) + (text[0] ? ": " : "") + text.data();
}

void check(cudnnStatus_t status, const char* op) {
  if (status != CUDNN_STATUS_SUCCESS) [[unlikely]] {
    fail(status == CUDNN_STATUS_ALLOC_FAILED ? ErrorCode::memory : ErrorCode::runtime, op,
         ": cuDNN: ", cudnn_reason(status));
  }
}

Descriptor::Descriptor(cudnnBackendDescriptorType_t type) {
  cudnnBackendDescriptor_t handle = nullptr;
  check(cudnnBackendCreateDescriptor(type, &handle), kOp);
  handle_ = Owned<cudnnBackendDescriptor_t, cudnnBackendDestroyDescriptor>(handle);
}

void Descriptor::put(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, size_t count,
                     const void* values) {
  check(cudnnBackendSetAttribute(get(), name, type, static_cast<int64_t>(count), values), kOp);
}

void Descriptor::set(cudnnBackendAttributeName_t name, std::span<const int64_t> values) {
  put(name, CUDNN_TYPE_INT64, values.size(), values.data());
}
void Descriptor::set(cudnnBackendAttributeName_t name, float value) { put(name, CUDNN_TYPE_FLOAT, 1, &value); }
void Descriptor::set(cudnnBackendAttributeName_t name, cudnnDataType_t value) {
  put(name, CUDNN_TYPE_DATA_TYPE, 1, &value);
}
void Descriptor::set(cudnnBackendAttributeName_t name, cudnnConvolutionMode_t value) {
  put(name, CUDNN_TYPE_CONVOLUTION_MODE, 1, &value);
}
void Descriptor::set(cudnnBackendAttributeName_t name, cudnnBackendHeurMode_t value) {
  put(name, CUDNN_TYPE_HEUR_MODE, 1, &value);
}
void Descriptor::set(cudnnBackendAttributeName_t name, cudnnHandle_t value) { put(name, CUDNN_TYPE_HANDLE, 1, &value); }
void Descriptor::set(cudnnBackendAttributeName_t name, const std::string& text) {
  put(name, CUDNN_TYPE_CHAR, text.size() + 1, text.c_str());
}
void Descriptor::set(cudnnBackendAttributeName_t name, std::span<void* const> pointers) {
  put(name, CUDNN_TYPE_VOID_PTR, pointers.size(), pointers.data());
}
void Descriptor::set(cudnnBackendAttributeName_t name, cudnnBackendDescriptor_t value) {
  put(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &value);
}

void Descriptor::finalise() { check(try_finalise(), kOp); }
cudnnStatus_t Descriptor::try_finalise() { return cudnnBackendFinalize(get()); }

int64_t Descriptor::number(cudnnBackendAttributeName_t name) const {
  int64_t value = 0;
  int64_t count = 0;
  check(cudnnBackendGetAttribute(get(), name, CUDNN_TYPE_INT64, 1, &count, &value), kOp);
  return value;
}

std::vector<cudnnBackendNumericalNote_t> Descriptor::notes(cudnnBackendAttributeName_t name) const {
  std::vector<cudnnBackendNumericalNote_t> found(CUDNN_NUMERICAL_NOTE_TYPE_COUNT);
  int64_t count = 0;
  check(cudnnBackendGetAttribute(get(), name, CUDNN_TYPE_NUMERICAL_NOTE, static_cast<int64_t>(found.size()), &count,
                                 found.data()),
        kOp);
  found.resize(static_cast<size_t>(count));
  return found;
}

Descriptor Descriptor::descriptor(cudnnBackendAttributeName_t name, cudnnBackendDescriptorType_t type) const {
  Descriptor found(type);
  cudnnBackendDescriptor_t place = found.get();
  int64_t count = 0;
  check(cudnnBackendGetAttribute(get(), name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &count, &place), kOp);
  return found;
}

std::vector<Descriptor> Descriptor::descriptors(cudnnBackendAttributeName_t name,
                                                cudnnBackendDescriptorType_t type) const {
  int64_t count = 0;
  check(cudnnBackendGetAttribute(get(), name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, &count, nullptr), kOp);
  std::vector<Descriptor> found;
  std::vector<cudnnBackendDescriptor_t> places;
  for (int64_t i = 0; i < count; ++i) {
    places.push_back(found.emplace_back(type).get());
  }
  if (count > 0) {
    check(cudnnBackendGetAttribute(get(), name, CUDNN_TYPE_BACKEND_DESCRIPTOR, count, &count, places.data()), kOp);
  }
  found.resize(static_cast<size_t>(count));
  return found;
}

}  // namespace gle::cuda
