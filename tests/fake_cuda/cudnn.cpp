#include <cudnn.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>

#include "fake_cuda/cudnn_convolution.h"
#include "fake_cuda/cudnn_descriptor.h"
#include "fake_cuda/device_check.h"
#include "fake_cuda/scheduler.h"

struct cudnnContext {
  int device = fake_cuda::current_device();
  cudaStream_t stream = nullptr;
};

namespace fake_cuda {

namespace {

thread_local std::string last_text;

// What cudnnBackendDescriptor_t points to. Others keep the content alive: a descriptor may be destroyed before its
// users.
struct Handle {
  std::shared_ptr<Descriptor> content;
};

Descriptor& content(cudnnBackendDescriptor_t descriptor) { return *static_cast<Handle*>(descriptor)->content; }

bool all_positive(const std::vector<int64_t>& values) {
  return std::all_of(values.begin(), values.end(), [](int64_t value) { return value > 0; });
}

cudnnStatus_t finalise_tensor(const Descriptor& tensor) {
  const auto dims = tensor.list<int64_t>(CUDNN_ATTR_TENSOR_DIMENSIONS);
  const auto strides = tensor.list<int64_t>(CUDNN_ATTR_TENSOR_STRIDES);
  const auto alignment = tensor.value<int64_t>(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, 0);
  if (dims.size() != 4 || strides.size() != 4 || !all_positive(dims) || !all_positive(strides)) {
    return refuse(CUDNN_STATUS_BAD_PARAM, "tensor: four positive dimensions and strides are needed");
  }
  if (alignment <= 0 || (alignment & (alignment - 1)) != 0 ||
      tensor.attributes.count(CUDNN_ATTR_TENSOR_UNIQUE_ID) == 0) {
    return refuse(CUDNN_STATUS_BAD_PARAM, "tensor: an id, and a power of two as alignment, are needed");
  }
  if (tensor.value<cudnnDataType_t>(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_DATA_HALF) != CUDNN_DATA_FLOAT) {
    return refuse(CUDNN_STATUS_NOT_SUPPORTED_DATA_TYPE, "tensor: the stand-in knows floats only");
  }
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t finalise_shape(const Descriptor& shape) {
  const auto spatial = static_cast<size_t>(shape.value<int64_t>(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, 0));
  const auto padding = shape.list<int64_t>(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS);
  const auto strides = shape.list<int64_t>(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES);
  const auto dilations = shape.list<int64_t>(CUDNN_ATTR_CONVOLUTION_DILATIONS);
  if (spatial != 2 || padding.size() != 2 || strides.size() != 2 || dilations.size() != 2 || !all_positive(strides) ||
      !all_positive(dilations) || *std::min_element(padding.begin(), padding.end()) < 0) {
    return refuse(CUDNN_STATUS_BAD_PARAM, "convolution: two paddings, strides and dilations are needed");
  }
  if (padding != shape.list<int64_t>(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS) ||
      shape.value<cudnnConvolutionMode_t>(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_CONVOLUTION) !=
          CUDNN_CROSS_CORRELATION ||
      shape.value<cudnnDataType_t>(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_DATA_HALF) != CUDNN_DATA_FLOAT) {
    return refuse(CUDNN_STATUS_NOT_SUPPORTED, "convolution: the stand-in knows symmetric cross-correlation in floats");
  }
  return CUDNN_STATUS_SUCCESS;
}

// The operation that a graph, a heuristic, an engine or a plan is about; null if a link is missing or not finalised.
const Descriptor* operation_of(const Descriptor& descriptor) {
  const auto next = [&](cudnnBackendAttributeName_t name) -> const Descriptor* {
    const Descriptor* const found = descriptor.descriptor(name);
    return found == nullptr || !found->finalised ? nullptr : operation_of(*found);
  };
  switch (descriptor.type) {
    case CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR: {
      const Descriptor* const operation = descriptor.descriptor(CUDNN_ATTR_OPERATIONGRAPH_OPS);
      const bool known = operation != nullptr && operation->finalised && is_convolution(operation->type);
      return known ? operation : nullptr;
    }
    case CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR:
      return next(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
    case CUDNN_BACKEND_ENGINE_DESCRIPTOR:
      return next(CUDNN_ATTR_ENGINE_OPERATION_GRAPH);
    case CUDNN_BACKEND_ENGINECFG_DESCRIPTOR:
      return next(CUDNN_ATTR_ENGINECFG_ENGINE);
    case CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR:
      return next(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
    default:
      return nullptr;
  }
}

void set_descriptor(Descriptor& on, cudnnBackendAttributeName_t name, std::shared_ptr<const Descriptor> value) {
  on.attributes[name] = {CUDNN_TYPE_BACKEND_DESCRIPTOR, {}, {std::move(value)}};
}

cudnnStatus_t finalise(Descriptor& descriptor) {
  switch (descriptor.type) {
    case CUDNN_BACKEND_TENSOR_DESCRIPTOR:
      return finalise_tensor(descriptor);
    case CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR:
      return finalise_shape(descriptor);
    case CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR:
      if (descriptor.attributes[CUDNN_ATTR_OPERATIONGRAPH_OPS].descriptors.size() != 1) {
        return refuse(CUDNN_STATUS_NOT_SUPPORTED_GRAPH_PATTERN, "graph: the stand-in knows single convolutions");
      }
      break;
    case CUDNN_BACKEND_ENGINE_DESCRIPTOR:
      descriptor.engine = descriptor.value<int64_t>(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, -1);
      if (descriptor.engine < 0 || descriptor.engine >= static_cast<int64_t>(engines().size())) {
        return refuse(CUDNN_STATUS_NOT_SUPPORTED, "engine: no such index");
      }
      break;
    case CUDNN_BACKEND_ENGINECFG_DESCRIPTOR:
    case CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR: {
      const Descriptor* const from = descriptor.descriptor(descriptor.type == CUDNN_BACKEND_ENGINECFG_DESCRIPTOR
                                                               ? CUDNN_ATTR_ENGINECFG_ENGINE
                                                               : CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
      descriptor.engine = from == nullptr ? -1 : from->engine;
      break;
    }
    case CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR:
      if (descriptor.list<int64_t>(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS).size() !=
          descriptor.list<void*>(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS).size()) {
        return refuse(CUDNN_STATUS_BAD_PARAM, "variant pack: as many pointers as ids are needed");
      }
      return CUDNN_STATUS_SUCCESS;
    case CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR:
      break;
    case CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR:
      return CUDNN_STATUS_SUCCESS;
    default:
      return is_convolution(descriptor.type)
                 ? check_convolution(descriptor)
                 : refuse(CUDNN_STATUS_NOT_SUPPORTED, "the stand-in knows no such descriptor");
  }
  return operation_of(descriptor) == nullptr
             ? refuse(CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED, "a descriptor that this one needs is missing")
             : CUDNN_STATUS_SUCCESS;
}

template <class T>
cudnnStatus_t give(const std::vector<T>& values, int64_t requested, int64_t* count, void* to) {
  if (count != nullptr) {
    *count = static_cast<int64_t>(values.size());
  }
  if (to != nullptr) {
    std::copy_n(values.begin(), std::min(static_cast<size_t>(std::max<int64_t>(requested, 0)), values.size()),
                static_cast<T*>(to));
  }
  return CUDNN_STATUS_SUCCESS;
}

// Fills the caller's descriptor number `i` of an array, which must be of this type.
Descriptor* caller_descriptor(void* array, size_t i, cudnnBackendDescriptorType_t type) {
  cudnnBackendDescriptor_t const given = static_cast<cudnnBackendDescriptor_t*>(array)[i];
  return given == nullptr || content(given).type != type ? nullptr : &content(given);
}

std::shared_ptr<const Descriptor> make_engine(const Descriptor& heuristic, const Engine& engine) {
  auto made = std::make_shared<Descriptor>();
  made->type = CUDNN_BACKEND_ENGINE_DESCRIPTOR;
  made->engine = engine.index;
  made->attributes[CUDNN_ATTR_ENGINE_OPERATION_GRAPH] = heuristic.attributes.at(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
  made->finalised = true;
  return made;
}

cudnnStatus_t give_results(const Descriptor& heuristic, int64_t requested, int64_t* count, void* to) {
  const auto mode = heuristic.value<cudnnBackendHeurMode_t>(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_HEUR_MODE_INSTANT);
  std::vector<const Engine*> chosen;
  for (const Engine& engine : engines()) {
    if (engine.fallback == (mode == CUDNN_HEUR_MODE_FALLBACK)) {
      chosen.push_back(&engine);
    }
  }
  // Asked for nothing it says how many there are, else how many it gave.
  const size_t given = requested == 0 ? chosen.size() : std::min(chosen.size(), static_cast<size_t>(requested));
  *count = static_cast<int64_t>(given);
  for (size_t i = 0; requested > 0 && i < given; ++i) {
    Descriptor* const configuration = caller_descriptor(to, i, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    if (configuration == nullptr) {
      return refuse(CUDNN_STATUS_BAD_PARAM, "heuristics: results go into engine configurations of the caller");
    }
    set_descriptor(*configuration, CUDNN_ATTR_ENGINECFG_ENGINE, make_engine(heuristic, *chosen[i]));
    configuration->engine = chosen[i]->index;
    configuration->finalised = true;
  }
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t execute(const cudnnContext& handle, const Descriptor& plan, const Descriptor& pack) {
  const Convolution convolution = read_convolution(*operation_of(plan));
  const Engine& engine = engines()[static_cast<size_t>(plan.engine)];
  const auto ids = pack.list<int64_t>(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
  const auto pointers = pack.list<void*>(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
  void* const workspace = pack.value<void*>(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, nullptr);
  const auto workspace_bytes = static_cast<size_t>(engine.workspace_bytes(convolution));
  if (!usable("cudnnBackendExecute", "the workspace", workspace, workspace_bytes, handle.device)) {
    return refuse(CUDNN_STATUS_BAD_PARAM, "execute: the workspace is smaller than the plan asks for");
  }
  float* data[3] = {};
  const TensorView* const tensors[3] = {&convolution.x, &convolution.w, &convolution.y};
  for (size_t i = 0; i < 3; ++i) {
    const auto found = std::find(ids.begin(), ids.end(), tensors[i]->id);
    if (found == ids.end()) {
      return refuse(CUDNN_STATUS_BAD_PARAM, "execute: no pointer for a tensor of the plan");
    }
    void* const pointer = pointers[static_cast<size_t>(found - ids.begin())];
    if (!usable("cudnnBackendExecute", "a tensor", pointer, tensors[i]->extent(), handle.device)) {
      return refuse(CUDNN_STATUS_EXECUTION_FAILED, "execute: a tensor is not in device memory");
    }
    if (reinterpret_cast<uintptr_t>(pointer) % static_cast<uintptr_t>(tensors[i]->alignment) != 0) {
      misuse(cudaSuccess, "cudnnBackendExecute: a tensor is less aligned than its descriptor promises");
      return refuse(CUDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER, "execute: a misaligned tensor");
    }
    data[i] = static_cast<float*>(pointer);
  }
  CUstream_st* const stream = scheduler().find(handle.stream, handle.device);
  if (stream == nullptr || handle.device != current_device()) {
    misuse(cudaSuccess, "cudnnBackendExecute: the handle's stream is gone, or another device is current");
    return refuse(CUDNN_STATUS_EXECUTION_FAILED, "execute: no stream");
  }
  const cudaError_t status = scheduler().submit(
      *stream, [convolution, &engine, x = data[0], w = data[1], y = data[2], workspace, workspace_bytes] {
        scribble(workspace, workspace_bytes);
        run_convolution(convolution, engine, x, w, y);
      });
  return status == cudaSuccess ? CUDNN_STATUS_SUCCESS : refuse(CUDNN_STATUS_EXECUTION_FAILED, "execute: device error");
}

}  // namespace

cudnnStatus_t refuse(cudnnStatus_t status, const std::string& text) {
  last_text = text;
  return status;
}

}  // namespace fake_cuda

using fake_cuda::content;
using fake_cuda::Descriptor;
using fake_cuda::Handle;
using fake_cuda::refuse;
using fake_cuda::scheduler;

extern "C" {

size_t cudnnGetVersion() { return CUDNN_VERSION; }
size_t cudnnGetCudartVersion() { return CUDART_VERSION; }

const char* cudnnGetErrorString(cudnnStatus_t status) {
  switch (CUDNN_STATUS_CATEGORY(status)) {
    case 0:
      return "CUDNN_STATUS_SUCCESS";
    case 2000:
      return "CUDNN_STATUS_BAD_PARAM";
    case 3000:
      return "CUDNN_STATUS_NOT_SUPPORTED";
    case 5000:
      return "CUDNN_STATUS_EXECUTION_FAILED";
    default:
      return "CUDNN_STATUS_NOT_INITIALIZED";
  }
}

void cudnnGetLastErrorString(char* message, size_t size) {
  if (size > 0) {
    std::strncpy(message, fake_cuda::last_text.c_str(), size - 1);
    message[size - 1] = 0;
  }
}

cudnnStatus_t cudnnCreate(cudnnHandle_t* handle) {
  const std::lock_guard lock(scheduler().mutex);
  *handle = new cudnnContext;
  ++scheduler().statistics.handles;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) {
  const std::lock_guard lock(scheduler().mutex);
  delete handle;
  --scheduler().statistics.handles;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
  handle->stream = stream;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetStream(cudnnHandle_t handle, cudaStream_t* stream) {
  *stream = handle->stream;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type, cudnnBackendDescriptor_t* descriptor) {
  const std::lock_guard lock(scheduler().mutex);
  auto made = std::make_shared<Descriptor>();
  made->type = type;
  *descriptor = new Handle{made};
  ++scheduler().statistics.handles;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t descriptor) {
  const std::lock_guard lock(scheduler().mutex);
  delete static_cast<Handle*>(descriptor);
  --scheduler().statistics.handles;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t count, const void* elements) {
  Descriptor& to = content(descriptor);
  const fake_cuda::AttributeRule* const rule = fake_cuda::rule_of(name);
  if (to.finalised) {
    return refuse(CUDNN_STATUS_BAD_PARAM, "set attribute: the descriptor is final");
  }
  if (rule == nullptr || rule->of != to.type || rule->type != type || count < 1 || elements == nullptr) {
    return refuse(CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE,
                  "set attribute: " + std::to_string(name) + " is not of this descriptor, or not of this type");
  }
  Descriptor::Value value{type, {}, {}};
  if (type == CUDNN_TYPE_BACKEND_DESCRIPTOR) {
    for (int64_t i = 0; i < count; ++i) {
      value.descriptors.push_back(
          static_cast<Handle*>(static_cast<const cudnnBackendDescriptor_t*>(elements)[i])->content);
    }
  } else {
    const char* const bytes = static_cast<const char*>(elements);
    value.bytes.assign(bytes, bytes + static_cast<size_t>(count) * fake_cuda::bytes_of(type));
  }
  to.attributes[name] = std::move(value);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t descriptor) {
  const cudnnStatus_t status = fake_cuda::finalise(content(descriptor));
  content(descriptor).finalised = status == CUDNN_STATUS_SUCCESS;
  return status;
}

cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t const descriptor, cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t requested, int64_t* count,
                                       void* elements) {
  const Descriptor& from = content(descriptor);
  const fake_cuda::AttributeRule* const rule = fake_cuda::rule_of(name);
  if (!from.finalised) {
    return refuse(CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED, "get attribute: the descriptor is not final");
  }
  if (rule == nullptr || rule->of != from.type || rule->type != type) {
    return refuse(CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE,
                  "get attribute: " + std::to_string(name) + " is not of this descriptor, or not of this type");
  }
  const auto& engines = fake_cuda::engines();
  switch (name) {
    case CUDNN_ATTR_ENGINEHEUR_RESULTS:
      return fake_cuda::give_results(from, requested, count, elements);
    case CUDNN_ATTR_ENGINECFG_ENGINE: {
      *count = 1;
      if (requested == 0) {
        return CUDNN_STATUS_SUCCESS;
      }
      Descriptor* const engine = fake_cuda::caller_descriptor(elements, 0, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
      if (engine == nullptr) {
        return refuse(CUDNN_STATUS_BAD_PARAM, "get engine: it goes into an engine descriptor of the caller");
      }
      *engine = *from.descriptor(CUDNN_ATTR_ENGINECFG_ENGINE);
      return CUDNN_STATUS_SUCCESS;
    }
    case CUDNN_ATTR_OPERATIONGRAPH_ENGINE_GLOBAL_COUNT:
      return fake_cuda::give<int64_t>({static_cast<int64_t>(engines.size())}, requested, count, elements);
    case CUDNN_ATTR_ENGINE_GLOBAL_INDEX:
      return fake_cuda::give<int64_t>({from.engine}, requested, count, elements);
    case CUDNN_ATTR_ENGINE_NUMERICAL_NOTE:
      return fake_cuda::give(engines[static_cast<size_t>(from.engine)].notes, requested, count, elements);
    case CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE:
      return fake_cuda::give<cudnnBackendBehaviorNote_t>({}, requested, count, elements);
    case CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE: {
      const auto convolution = fake_cuda::read_convolution(*fake_cuda::operation_of(from));
      return fake_cuda::give<int64_t>({engines[static_cast<size_t>(from.engine)].workspace_bytes(convolution)},
                                      requested, count, elements);
    }
    default:
      return refuse(CUDNN_STATUS_NOT_SUPPORTED, "get attribute: the stand-in does not give this one");
  }
}

cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan, cudnnBackendDescriptor_t pack) {
  const std::lock_guard lock(scheduler().mutex);
  if (!content(plan).finalised || !content(pack).finalised ||
      content(plan).type != CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR ||
      content(pack).type != CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR) {
    return refuse(CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED, "execute: a plan and a variant pack, both final, are needed");
  }
  return fake_cuda::execute(*handle, content(plan), content(pack));
}

}  // extern "C"
