#include "engine/cuda/conv_graph.h"

#include <array>

namespace gle::cuda {

namespace {

struct Names {
  cudnnBackendDescriptorType_t type;
  cudnnBackendAttributeName_t convolution, x, w, y, alpha, beta;
};

Names names_of(Direction direction) {
  switch (direction) {
    case Direction::forward:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA};
    case Direction::backward_data:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA};
    case Direction::backward_weights:
      break;
  }
  return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA};
}

// cuDNN counts N, C, H, W whatever the order in memory, which the strides tell: channels innermost, pitch from pixel to
// pixel.
Descriptor tensor(int64_t name, int64_t n, int64_t c, int64_t h, int64_t w, int64_t pitch, int64_t alignment) {
  const std::array<int64_t, 4> sizes = {n, c, h, w};
  const std::array<int64_t, 4> strides = {h * w * pitch, 1, w * pitch, pitch};
  Descriptor t(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  t.set(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_DATA_FLOAT);
  t.set(CUDNN_ATTR_TENSOR_DIMENSIONS, sizes);
  t.set(CUDNN_ATTR_TENSOR_STRIDES, strides);
  t.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, name);
  t.set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, alignment);
  t.finalise();
  return t;
}

Descriptor convolution(const ConvProblem& problem) {
  const std::array<int64_t, 2> padding = {problem.pad_h, problem.pad_w};
  const std::array<int64_t, 2> strides = {problem.stride_h, problem.stride_w};
  const std::array<int64_t, 2> dilation = {1, 1};
  Descriptor d(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  d.set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, int64_t{2});
  d.set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_DATA_FLOAT);
  d.set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_CROSS_CORRELATION);
  d.set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, padding);
  d.set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, padding);
  d.set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, strides);
  d.set(CUDNN_ATTR_CONVOLUTION_DILATIONS, dilation);
  d.finalise();
  return d;
}

}  // namespace

ConvGraph describe(const ConvProblem& o, cudnnHandle_t handle) {
  const Names names = names_of(o.direction);
  Descriptor x = tensor(kX, o.n, o.c, o.h, o.w, o.x_pitch, o.x_alignment);
  Descriptor w = tensor(kW, o.k, o.c, o.r, o.s, o.c, o.w_alignment);
  Descriptor y = tensor(kY, o.n, o.k, o.p, o.q, o.y_pitch, o.y_alignment);
  Descriptor conv = convolution(o);
  Descriptor op(names.type);
  op.set(names.convolution, conv.get());
  op.set(names.x, x.get());
  op.set(names.w, w.get());
  op.set(names.y, y.get());
  op.set(names.alpha, 1.0F);
  op.set(names.beta, o.mode == Accumulate::add ? 1.0F : 0.0F);
  op.finalise();

  ConvGraph made;
  made.graph = Descriptor(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  made.graph.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, op.get());
  if (handle) {
    made.graph.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, handle);
  }
  made.graph.finalise();
  for (Descriptor* part : {&x, &w, &y, &conv, &op}) {
    made.parts.push_back(std::move(*part));
  }
  return made;
}

}  // namespace gle::cuda
