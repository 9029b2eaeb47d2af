// y = f(y + bias) over rows of channels, in place: what follows a convolution or a matrix product of the libraries.
// Moves 8 bytes an element. A thread takes V neighbouring channels.
#include <algorithm>

#include "engine/cuda/cuda_backend.h"
#include "engine/cuda/kernel.h"

namespace gle::cuda {

namespace {

constexpr unsigned kThreads = 256;
constexpr unsigned kBlocksPerMultiprocessor = 8;

template <int V>
__global__ void __launch_bounds__(kThreads)
    bias_activation_kernel(int64_t pieces, int64_t pieces_per_row, int64_t pitch, const float* bias, float slope,
                           float* y) {
  const int64_t step = static_cast<int64_t>(gridDim.x) * kThreads;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < pieces; i += step) {
    const int64_t row = i / pieces_per_row;
    const int64_t channel = (i - row * pieces_per_row) * V;
    float* at = y + row * pitch + channel;
    float v[V];
    if constexpr (V == 4) {
      const float4 four = *reinterpret_cast<const float4*>(at);
      v[0] = four.x, v[1] = four.y, v[2] = four.z, v[3] = four.w;
    } else {
      v[0] = *at;
    }
    for (int j = 0; j < V; ++j) {
      v[j] += bias ? __ldg(bias + channel + j) : 0.0F;
      v[j] = v[j] > 0 ? v[j] : slope * v[j];
    }
    if constexpr (V == 4) {
      *reinterpret_cast<float4*>(at) = make_float4(v[0], v[1], v[2], v[3]);
    } else {
      *at = v[0];
    }
  }
}

bool in_fours(const Tensor& t) {
  return t.channels() % 4 == 0 && t.pitch() % 4 == 0 && reinterpret_cast<uintptr_t>(t.data()) % sizeof(float4) == 0;
}

}  // namespace

Launch CudaBackend::at(const char* op) const {
  runtime_->begin(op);
  return {op, runtime_->compute.get()};
}

void CudaBackend::bias_activation(const char* op, const Tensor& bias, Activation f, const Tensor& y) const {
  const bool fours = in_fours(y);
  const int64_t pieces = y.elements() / (fours ? 4 : 1);
  const int64_t most = static_cast<int64_t>(multiprocessors()) * kBlocksPerMultiprocessor;
  const auto blocks = static_cast<unsigned>(std::min<int64_t>((pieces + kThreads - 1) / kThreads, most));
  launch(at(op), fours ? bias_activation_kernel<4> : bias_activation_kernel<1>, blocks, kThreads, 0, pieces,
         pieces / y.rows(), y.pitch(), bias.data(), f.slope, y.data());
}

}  // namespace gle::cuda
