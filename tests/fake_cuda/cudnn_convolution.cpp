#include "fake_cuda/cudnn_convolution.h"

#include <algorithm>
#include <random>

#include "fake_cuda/device_check.h"
#include "fake_cuda/numbers.h"
#include "fake_cuda/scheduler.h"
#include "simt/memory.h"

namespace fake_cuda {

namespace {

struct Names {
  cudnnBackendDescriptorType_t operation;
  Direction direction;
  cudnnBackendAttributeName_t x, w, y, convolution, alpha, beta;
};

constexpr Names kNames[] = {
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR, Direction::forward,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR, Direction::data,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR, Direction::weights,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA},
};

const Names* names_of(cudnnBackendDescriptorType_t type) {
  const auto found =
      std::find_if(std::begin(kNames), std::end(kNames), [&](const Names& names) { return names.operation == type; });
  return found == std::end(kNames) ? nullptr : found;
}

TensorView read_tensor(const Descriptor& tensor) {
  return {tensor.value<int64_t>(CUDNN_ATTR_TENSOR_UNIQUE_ID, 0),
          tensor.value<int64_t>(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, 1),
          tensor.list<int64_t>(CUDNN_ATTR_TENSOR_DIMENSIONS), tensor.list<int64_t>(CUDNN_ATTR_TENSOR_STRIDES)};
}

// A dense copy N H W C, so that the loops below need not know the layout.
class Dense {
 public:
  Dense(const TensorView& view, float* data) : view_(view), data_(data) {
    values_.resize(static_cast<size_t>(d(0) * d(1) * d(2) * d(3)));
  }

  void load(const char* what, bool tf32) {
    for_all([&](float& here, float& there) {
      check_read("cuDNN convolution", what, &there, sizeof(float));
      here = tf32 ? to_tf32(there) : there;
    });
  }
  void store(float alpha, float beta) {
    for_all([&](const float& here, float& there) {
      if (beta != 0.0F) {
        check_read("cuDNN convolution", "the output with beta", &there, sizeof(float));
      }
      there = beta == 0.0F ? alpha * here : alpha * here + beta * there;
      simt::mark_written(&there, sizeof(float));
    });
  }
  float* at(int64_t n, int64_t h, int64_t w) { return values_.data() + ((n * d(2) + h) * d(3) + w) * d(1); }
  int64_t d(size_t i) const { return view_.dims[i]; }

 private:
  template <class F>
  void for_all(const F& f) {
    float* here = values_.data();
    for (int64_t n = 0; n < d(0); ++n) {
      for (int64_t h = 0; h < d(2); ++h) {
        for (int64_t w = 0; w < d(3); ++w) {
          for (int64_t c = 0; c < d(1); ++c) {
            f(*here++,
              data_[n * view_.strides[0] + c * view_.strides[1] + h * view_.strides[2] + w * view_.strides[3]]);
          }
        }
      }
    }
  }

  TensorView view_;
  float* data_;
  std::vector<float> values_;
};

void add_scaled(float factor, const float* from, float* to, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    to[i] += factor * from[i];
  }
}

}  // namespace

size_t TensorView::extent() const {
  int64_t last = 0;
  for (size_t i = 0; i < dims.size(); ++i) {
    last += (dims[i] - 1) * strides[i];
  }
  return static_cast<size_t>(last + 1) * sizeof(float);
}

bool is_convolution(cudnnBackendDescriptorType_t type) { return names_of(type) != nullptr; }

cudnnStatus_t check_convolution(const Descriptor& operation) {
  const Names& names = *names_of(operation.type);
  for (const auto name : {names.x, names.w, names.y, names.convolution}) {
    const Descriptor* const part = operation.descriptor(name);
    if (part == nullptr || !part->finalised) {
      return refuse(CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED, "convolution: a tensor or the convolution is missing");
    }
  }
  const Convolution c = read_convolution(operation);
  for (const TensorView* tensor : {&c.x, &c.w, &c.y}) {
    if (tensor->dims.size() != c.padding.size() + 2) {
      return refuse(CUDNN_STATUS_BAD_PARAM, "convolution: the tensors' dimensions do not fit the spatial ones");
    }
  }
  if (c.x.dims[0] != c.y.dims[0] || c.y.dims[1] != c.w.dims[0] || c.x.dims[1] != c.w.dims[1]) {
    return refuse(CUDNN_STATUS_BAD_PARAM, "convolution: images or channels do not fit together");
  }
  for (size_t i = 0; i < 2; ++i) {
    const int64_t room = c.x.dims[2 + i] + 2 * c.padding[i] - c.dilations[i] * (c.w.dims[2 + i] - 1) - 1;
    if (room < 0 || c.y.dims[2 + i] != room / c.strides[i] + 1) {
      return refuse(CUDNN_STATUS_BAD_PARAM, "convolution: not the output size that padding and stride give");
    }
  }
  if (c.x.id == c.w.id || c.w.id == c.y.id || c.x.id == c.y.id) {
    return refuse(CUDNN_STATUS_BAD_PARAM_DUPLICATED_ENTRIES, "convolution: two tensors with one id");
  }
  return CUDNN_STATUS_SUCCESS;
}

Convolution read_convolution(const Descriptor& operation) {
  const Names& names = *names_of(operation.type);
  const Descriptor& shape = *operation.descriptor(names.convolution);
  return {names.direction,
          read_tensor(*operation.descriptor(names.x)),
          read_tensor(*operation.descriptor(names.w)),
          read_tensor(*operation.descriptor(names.y)),
          shape.list<int64_t>(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS),
          shape.list<int64_t>(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES),
          shape.list<int64_t>(CUDNN_ATTR_CONVOLUTION_DILATIONS),
          operation.value<float>(names.alpha, 1.0F),
          operation.value<float>(names.beta, 0.0F)};
}

int64_t Engine::workspace_bytes(const Convolution& convolution) const {
  if (fallback) {
    return 0;
  }
  const auto output = static_cast<int64_t>(convolution.output().extent());
  // One asks for more than a sensible budget, as Winograd and FFT engines do.
  return index == 2 ? (int64_t{1} << 32) + output : 1024 + output / 256 * 4 + index;
}

const std::vector<Engine>& engines() {
  static const std::vector<Engine> all = {
      {0, {CUDNN_NUMERICAL_NOTE_TENSOR_CORE, CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS}, false, true, false},
      {1, {CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC}, false, false, true},
      {2, {CUDNN_NUMERICAL_NOTE_WINOGRAD, CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_4x4}, false, false, false},
      {3, {}, false, false, false},
      {4, {}, true, false, false},
  };
  return all;
}

void run_convolution(const Convolution& c, const Engine& engine, float* x_data, float* w_data, float* y_data) {
  Dense x(c.x, x_data);
  Dense w(c.w, w_data);
  Dense y(c.y, y_data);
  if (c.direction != Direction::data) {
    x.load("x", engine.tf32);
  }
  if (c.direction != Direction::weights) {
    w.load("w", engine.tf32);
  }
  if (c.direction != Direction::forward) {
    y.load("dy", engine.tf32);
  }
  static std::mt19937_64 random(scheduler().options.seed);
  const bool backwards = engine.any_order && random() % 2 == 0;
  const int64_t channels = c.x.dims[1];
  const int64_t taps = w.d(2) * w.d(3);
  for (int64_t n = 0; n < y.d(0); ++n) {
    for (int64_t p = 0; p < y.d(2); ++p) {
      for (int64_t q = 0; q < y.d(3); ++q) {
        for (int64_t i = 0; i < taps; ++i) {
          const int64_t tap = backwards ? taps - 1 - i : i;
          const int64_t r = tap / w.d(3);
          const int64_t s = tap % w.d(3);
          const int64_t row = p * c.strides[0] - c.padding[0] + r * c.dilations[0];
          const int64_t column = q * c.strides[1] - c.padding[1] + s * c.dilations[1];
          if (row < 0 || column < 0 || row >= x.d(2) || column >= x.d(3)) {
            continue;
          }
          float* const pixel = x.at(n, row, column);
          float* const result = y.at(n, p, q);
          for (int64_t k = 0; k < y.d(1); ++k) {
            float* const filter = w.at(k, r, s);
            if (c.direction == Direction::forward) {
              result[k] += dot(pixel, filter, static_cast<size_t>(channels));
            } else if (c.direction == Direction::data) {
              add_scaled(result[k], filter, pixel, channels);
            } else {
              add_scaled(result[k], pixel, filter, channels);
            }
          }
        }
      }
    }
  }
  (c.direction == Direction::forward ? y : c.direction == Direction::data ? x : w).store(c.alpha, c.beta);
}

}  // namespace fake_cuda
