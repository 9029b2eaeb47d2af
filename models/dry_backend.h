#pragma once

#include <vector>

#include "engine/backend.h"

namespace gle {

// A convolution that was asked for. x and y stand for their gradients where the direction says so.
struct DryConvolution {
  enum class Direction { forward, backward_data, backward_weights };
  struct Place {
    Shape shape;
    int64_t pitch;
    int64_t alignment;  // of the first element, up to 16 bytes
  };
  Direction direction;
  Place x;
  Place w;
  Place y;
  Conv2dOptions options;
  Accumulate mode;
};

// A backend without kernels and without memory: what an op would allocate is counted and handed out as addresses that
// nobody may touch. Running a network on it tells shapes and memory in milliseconds.
class DryBackend final : public Backend {
 public:
  DryBackend();
  ~DryBackend() override;

  // From now on convolutions are appended here.
  void note_convolutions(std::vector<DryConvolution>* list) { convolutions_ = list; }

  const char* description() const override { return "dry"; }
  void upload(const void*, const Tensor&) override {}
  void download(const Tensor&, void*) override;
  void synchronise() override {}
  void prefetch(const void*, const Tensor&) override {}
  void await_prefetched() override {}
  void run_step(int64_t, const std::function<void()>& step) override { step(); }
  void images_from_bytes(const Tensor&, const PixelScale&, const Tensor&, const Tensor&) override {}

  void fill(float, const Tensor&) override {}
  void add(const Tensor&, const Tensor&, const Tensor&) override {}
  void scale(float, const Tensor&, const GradTarget&) override {}
  void scale_by(const Tensor&, const Tensor&, const GradTarget&) override {}
  void activation_forward(const Tensor&, Activation, const Tensor&) override {}
  void activation_backward(const Tensor&, Activation, const Tensor&, const GradTarget&) override {}
  void dropout(const Tensor&, float, RandomKey, int64_t, const GradTarget&) override {}
  bool all_finite(const Tensor&) override { return true; }
  void column_sums(const Tensor&, const GradTarget&) override {}
  void centre_rows(const Tensor&, const GradTarget&) override {}
  void normalise_rows_forward(const Tensor&, float, const Tensor&, const Tensor&) override {}
  void normalise_rows_backward(const Tensor&, const Tensor&, float, const Tensor&, const GradTarget&) override {}
  void take_columns(const Tensor&, const Tensor&, const Tensor&) override {}
  void put_columns(const Tensor&, const Tensor&, const GradTarget&) override {}
  void softmax_forward(const Tensor&, const Tensor&) override {}
  void softmax_backward(const Tensor&, const Tensor&, const GradTarget&) override {}
  void log_softmax_forward(const Tensor&, const Tensor&) override {}
  void log_softmax_backward(const Tensor&, const Tensor&, const GradTarget&) override {}
  void check_labels(const Tensor&, int64_t) override {}
  void cross_entropy_forward(const Tensor&, const Tensor&, float, const Tensor&, const Tensor&) override {}
  void cross_entropy_backward(const Tensor&, const Tensor&, float, const Tensor&, const Tensor&,
                              const GradTarget&) override {}
  void group_loss_forward(const Tensor&, const Tensor&, const Tensor&, const GroupColumns&, const GroupRefinement&,
                          float, const GroupSaved&, const Tensor&) override {}
  void group_loss_backward(const Tensor&, const Tensor&, const GroupColumns&, const GroupRefinement&, float,
                           const GroupSaved&, const Tensor&, const GradTarget&, const GradTarget&,
                           const GradTarget&) override {}
  void group_loss_iterate(const GroupColumns&, const GroupSaved&, int, const Tensor&) override {}
  void pair_loss(const Tensor&, const Tensor&, const Tensor&, Pairs, const PairLossOptions&, const Tensor&,
                 const Tensor&) override {}
  void gemm(const Tensor&, Transpose, const Tensor&, Transpose, const Tensor&, const GradTarget&) override {}
  void conv2d_forward(const Tensor& x, const Tensor& w, const Tensor&, const Conv2dOptions& options, Activation,
                      PackedWeights*, const Tensor& y) override {
    note(DryConvolution::Direction::forward, x, w, y, options, Accumulate::overwrite);
  }
  void conv2d_backward_data(const Tensor& w, const Tensor& dy, const Conv2dOptions& options,
                            const GradTarget& dx) override {
    note(DryConvolution::Direction::backward_data, dx.grad, w, dy, options, dx.mode);
  }
  void conv2d_backward_weights(const Tensor& x, const Tensor& dy, const Conv2dOptions& options,
                               const GradTarget& dw) override {
    note(DryConvolution::Direction::backward_weights, x, dw.grad, dy, options, dw.mode);
  }
  void batch_norm_statistics(const Tensor&, float, float, const Tensor&, const Tensor&, const Tensor&,
                             const Tensor&) override {}
  void batch_norm_join_statistics(const Tensor&, int64_t, float, float, const Tensor&, const Tensor&, const Tensor&,
                                  const Tensor&) override {}
  void batch_norm_inv_std(const Tensor&, float, const Tensor&) override {}
  void batch_norm_forward(const Tensor&, const Tensor&, const Tensor&, const Tensor&, const Tensor&, Activation,
                          const Tensor&) override {}
  void batch_norm_backward(const Tensor&, const Tensor&, const Tensor&, const Tensor&, const Tensor&, Activation,
                           Statistics, const Tensor&, const GradTarget&, const GradTarget&,
                           const GradTarget&) override {}
  void batch_norm_backward_sums(const Tensor&, const Tensor&, const Tensor&, const Tensor&, const Tensor&, Activation,
                                const Tensor&, const Tensor&, const GradTarget&, const GradTarget&) override {}
  void batch_norm_backward_data(const Tensor&, const Tensor&, const Tensor&, const Tensor&, const Tensor&, Activation,
                                const Tensor&, const Tensor&, int64_t, const GradTarget&) override {}
  void batch_norm_backward_moments(const Tensor&, const Tensor&, const Tensor&, const Tensor&, int64_t,
                                   const GradTarget&) override {}
  void moments_backward(const Tensor&, const Tensor&, const Tensor&, int64_t, const GradTarget&) override {}
  void batch_norm_fold(const Tensor&, const Tensor&, const Tensor&, const Tensor&, const Tensor&, const Tensor&,
                       const Tensor&, const Tensor&) override {}
  void adam_step(const AdamStep&, const Tensor&, const Tensor&, const Tensor&, const Tensor&) override {}
  void momentum_step(const MomentumStep&, const Tensor&, const Tensor&, const Tensor&) override {}
  void moving_average(float, const Tensor&, const Tensor&) override {}
  double sum_of_squares(const Tensor&) override { return 0; }
  void max_pool_forward(const Tensor&, const Pool2dOptions&, const Tensor&, const Tensor&) override {}
  void max_pool_backward(const Tensor&, const Pool2dOptions&, const Tensor&, const GradTarget&) override {}
  void average_pool_forward(const Tensor&, const Pool2dOptions&, const Tensor&) override {}
  void average_pool_backward(const Pool2dOptions&, const Tensor&, const GradTarget&) override {}
  void global_pool_forward(const Tensor&, float, const Tensor&, const Tensor&) override {}
  void global_pool_backward(const Tensor&, float, const Tensor&, const GradTarget&) override {}

 private:
  void note(DryConvolution::Direction direction, const Tensor& x, const Tensor& w, const Tensor& y,
            const Conv2dOptions& options, Accumulate mode);

  std::vector<DryConvolution>* convolutions_ = nullptr;
};

}  // namespace gle
