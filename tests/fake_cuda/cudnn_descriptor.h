#pragma once

#include <cudnn.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace fake_cuda {

// A descriptor of the backend API: attributes by name, in the type that the manual gives each.
struct Descriptor {
  struct Value {
    cudnnBackendAttributeType_t type;
    std::vector<char> bytes;
    std::vector<std::shared_ptr<const Descriptor>> descriptors;
  };

  cudnnBackendDescriptorType_t type;
  std::map<cudnnBackendAttributeName_t, Value> attributes;
  bool finalised = false;
  int64_t engine = -1;  // of engines, configurations and plans

  template <class T>
  std::vector<T> list(cudnnBackendAttributeName_t name) const {
    const auto found = attributes.find(name);
    if (found == attributes.end()) {
      return {};
    }
    std::vector<T> values(found->second.bytes.size() / sizeof(T));
    std::copy_n(found->second.bytes.data(), values.size() * sizeof(T), reinterpret_cast<char*>(values.data()));
    return values;
  }
  template <class T>
  T value(cudnnBackendAttributeName_t name, T otherwise) const {
    const std::vector<T> values = list<T>(name);
    return values.empty() ? otherwise : values.front();
  }
  // Null if there is none.
  const Descriptor* descriptor(cudnnBackendAttributeName_t name) const;
};

// What an attribute is by the manual, and on which descriptors; null if the stand-in does not know it.
struct AttributeRule {
  cudnnBackendAttributeName_t name;
  cudnnBackendDescriptorType_t of;
  cudnnBackendAttributeType_t type;
};
const AttributeRule* rule_of(cudnnBackendAttributeName_t name);

size_t bytes_of(cudnnBackendAttributeType_t type);

// Remembers the text for cudnnGetLastErrorString.
cudnnStatus_t refuse(cudnnStatus_t status, const std::string& text);

}  // namespace fake_cuda
