// Elementwise kernels: one launch and one pass over memory each (map.h), all tensors without a pitch taken as one row.
// Dropout draws the number of element first + row * C + c from Philox (math/philox.h), four to a block; nothing is
// saved, its backward draws them again.
//
// Bytes that must move, for e elements (adding to a target reads it too, + 4e):
//   fill 4e   scale, scale_by, activation_forward, dropout 8e   add, activation_backward 12e
//   all_finite 4e, two launches (total.h)

#include "engine/cuda/cuda_backend.h"
#include "engine/cuda/map.h"
#include "engine/cuda/total.h"
#include "engine/math/philox.h"

namespace gle::cuda {

namespace {

struct Fill {
  float value;

  template <int kWidth>
  __device__ auto at(int64_t) const {
    return [this](int64_t) { return each<kWidth>([&](int) { return value; }); };
  }
};

struct Add {
  In a, b;

  template <int kWidth>
  __device__ auto at(int64_t column) const {
    return [this, column](int64_t row) {
      const auto u = a.load<kWidth>(row, column), v = b.load<kWidth>(row, column);
      return each<kWidth>([&](int i) { return u.at[i] + v.at[i]; });
    };
  }
};

struct Scale {
  In x;
  float value;
  const float* factor;  // instead of the value, unless null

  template <int kWidth>
  __device__ auto at(int64_t column) const {
    return [this, column, scale = factor ? *factor : value](int64_t row) {
      const auto v = x.load<kWidth>(row, column);
      return each<kWidth>([&](int i) { return v.at[i] * scale; });
    };
  }
};

struct Activate {
  In x;
  float slope;

  template <int kWidth>
  __device__ auto at(int64_t column) const {
    return [this, column](int64_t row) {
      const auto v = x.load<kWidth>(row, column);
      return each<kWidth>([&](int i) { return activate(v.at[i], slope); });
    };
  }
};

struct ActivateBack {
  In y, dy;
  float slope;

  template <int kWidth>
  __device__ auto at(int64_t column) const {
    return [this, column](int64_t row) {
      const auto v = y.load<kWidth>(row, column), d = dy.load<kWidth>(row, column);
      return each<kWidth>([&](int i) { return activation_gradient(v.at[i], slope, d.at[i]); });
    };
  }
};

struct Dropout {
  In x;
  int64_t channels;
  RandomKey key;
  int64_t number;  // of the first element
  float probability, factor;

  __device__ float keep(uint32_t word, float v) const {
    // Selected, not multiplied: what is dropped may be infinite.
    return uniform_of_word(word) < probability ? 0.0F : v * factor;
  }

  template <int kWidth>
  __device__ auto at(int64_t column) const {
    return [this, column](int64_t row) {
      const auto v = x.load<kWidth>(row, column);
      const auto first = static_cast<uint64_t>(number + row * channels + column);
      const PhiloxBlock words = random_words(key, first / 4);
      if (kWidth == 4 && first % 4 == 0) {
        return each<kWidth>([&](int i) { return keep(words.word[i], v.at[i]); });
      }
      return each<kWidth>([&](int i) {
        const uint64_t index = first + static_cast<uint64_t>(i);
        return uniform(key, index) < probability ? 0.0F : v.at[i] * factor;
      });
    };
  }
};

// 0 * v is 0 for every finite v and NaN for the others, and NaN stays in the sum.
struct NotFinite {
  In x;

  template <int kWidth>
  __device__ float operator()(int64_t row, int64_t column) const {
    const auto v = x.load<kWidth>(row, column);
    float sum = 0.0F;
    for (int i = 0; i < kWidth; ++i) {
      sum += v.at[i] * 0.0F;
    }
    return sum;
  }
};

}  // namespace

void CudaBackend::fill(float value, const Tensor& y) { map_elements(at("fill"), {&y}, Fill{value}, y); }

void CudaBackend::add(const Tensor& a, const Tensor& b, const Tensor& y) {
  map_elements(at("add"), {&a, &b, &y}, Add{a, b}, y);
}

void CudaBackend::scale(float factor, const Tensor& x, const GradTarget& y) {
  if (y) {
    map_elements(at("scale"), {&x, &y.grad}, Scale{x, factor, nullptr}, y);
  }
}

void CudaBackend::scale_by(const Tensor& factor, const Tensor& x, const GradTarget& y) {
  if (y) {
    map_elements(at("scale_by"), {&x, &y.grad}, Scale{x, 0.0F, factor.data()}, y);
  }
}

void CudaBackend::activation_forward(const Tensor& x, Activation f, const Tensor& y) {
  map_elements(at("activation_forward"), {&x, &y}, Activate{x, f.slope}, y);
}

void CudaBackend::activation_backward(const Tensor& y, Activation f, const Tensor& dy, const GradTarget& dx) {
  if (dx) {
    map_elements(at("activation_backward"), {&y, &dy, &dx.grad}, ActivateBack{y, dy, f.slope}, dx);
  }
}

void CudaBackend::dropout(const Tensor& x, float probability, RandomKey key, int64_t first, const GradTarget& y) {
  if (y) {
    const float factor = probability < 1.0F ? 1.0F / (1.0F - probability) : 0.0F;
    map_elements(at("dropout"), {&x, &y.grad}, Dropout{x, x.channels(), key, first, probability, factor}, y);
  }
}

bool CudaBackend::all_finite(const Tensor& x) {
  const Workspace::Lease lease = workspace().lease(kTotalBytes, "all_finite");
  return fetch(total(at("all_finite"), x, NotFinite{x}, reinterpret_cast<double*>(lease.data()))) == 0.0;
}

}  // namespace gle::cuda
