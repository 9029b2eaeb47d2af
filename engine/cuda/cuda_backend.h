#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "engine/backend.h"
#include "engine/cuda/cuda.h"
#include "engine/cuda/device_status.h"
#include "engine/cuda/runtime.h"

namespace gle::cuda {

class Blas;
class Convolutions;
struct Launch;

// Everything is queued on one compute stream in the order of the calls; only what returns a number, download() and
// synchronise() wait. Memory that is given back may be handed out again while kernels that use it are still queued:
// what uses it next is queued behind them.
class CudaBackend final : public Backend {
 public:
  explicit CudaBackend(const CudaOptions& options);
  ~CudaBackend() override;

  CudaRuntime& runtime() { return *runtime_; }

  const char* description() const override;
  void upload(const void* host, const Tensor& to) override;
  void download(const Tensor& from, void* host) override;
  void synchronise() override;
  void prefetch(const void* host, const Tensor& to) override;
  void await_prefetched() override;
  void run_step(int64_t kind, const std::function<void()>& step) override;

  void images_from_bytes(const Tensor& x, const PixelScale& scale, const Tensor& erased, const Tensor& y) override;

  void fill(float value, const Tensor& y) override;
  void add(const Tensor& a, const Tensor& b, const Tensor& y) override;
  void scale(float factor, const Tensor& x, const GradTarget& y) override;
  void scale_by(const Tensor& factor, const Tensor& x, const GradTarget& y) override;
  void activation_forward(const Tensor& x, Activation f, const Tensor& y) override;
  void activation_backward(const Tensor& y, Activation f, const Tensor& dy, const GradTarget& dx) override;
  void dropout(const Tensor& x, float probability, RandomKey key, int64_t first, const GradTarget& y) override;
  bool all_finite(const Tensor& x) override;

  void column_sums(const Tensor& x, const GradTarget& sums) override;
  void centre_rows(const Tensor& x, const GradTarget& y) override;
  void normalise_rows_forward(const Tensor& x, float beta, const Tensor& norms, const Tensor& y) override;
  void normalise_rows_backward(const Tensor& x, const Tensor& norms, float beta, const Tensor& dy,
                               const GradTarget& dx) override;
  void take_columns(const Tensor& x, const Tensor& columns, const Tensor& y) override;
  void put_columns(const Tensor& dy, const Tensor& columns, const GradTarget& dx) override;
  void softmax_forward(const Tensor& x, const Tensor& y) override;
  void softmax_backward(const Tensor& y, const Tensor& dy, const GradTarget& dx) override;
  void log_softmax_forward(const Tensor& x, const Tensor& y) override;
  void log_softmax_backward(const Tensor& y, const Tensor& dy, const GradTarget& dx) override;
  void check_labels(const Tensor& labels, int64_t classes) override;
  void cross_entropy_forward(const Tensor& logits, const Tensor& labels, float smoothing, const Tensor& log_sums,
                             const Tensor& loss) override;
  void cross_entropy_backward(const Tensor& logits, const Tensor& labels, float smoothing, const Tensor& log_sums,
                              const Tensor& dloss, const GradTarget& dlogits) override;

  void group_loss_forward(const Tensor& embeddings, const Tensor& given, const Tensor& logits,
                          const GroupColumns& batch, const GroupRefinement& options, float weight,
                          const GroupSaved& saved, const Tensor& loss) override;
  void group_loss_backward(const Tensor& embeddings, const Tensor& given, const GroupColumns& batch,
                           const GroupRefinement& options, float weight, const GroupSaved& saved, const Tensor& dloss,
                           const GradTarget& dembeddings, const GradTarget& dgiven, const GradTarget& dlogits) override;
  void group_loss_iterate(const GroupColumns& batch, const GroupSaved& saved, int step, const Tensor& x) override;

  void pair_loss(const Tensor& s, const Tensor& row_labels, const Tensor& column_labels, Pairs pairs,
                 const PairLossOptions& options, const Tensor& loss, const Tensor& ds) override;

  void gemm(const Tensor& a, Transpose op_a, const Tensor& b, Transpose op_b, const Tensor& bias,
            const GradTarget& c) override;

  void conv2d_forward(const Tensor& x, const Tensor& w, const Tensor& bias, const Conv2dOptions& options, Activation f,
                      PackedWeights* packed, const Tensor& y) override;
  void conv2d_backward_data(const Tensor& w, const Tensor& dy, const Conv2dOptions& options,
                            const GradTarget& dx) override;
  void conv2d_backward_weights(const Tensor& x, const Tensor& dy, const Conv2dOptions& options,
                               const GradTarget& dw) override;

  void batch_norm_statistics(const Tensor& x, float eps, float momentum, const Tensor& running_mean,
                             const Tensor& running_var, const Tensor& mean, const Tensor& inv_std) override;
  void batch_norm_join_statistics(const Tensor& moments, int64_t rows, float eps, float momentum,
                                  const Tensor& running_mean, const Tensor& running_var, const Tensor& mean,
                                  const Tensor& inv_std) override;
  void batch_norm_inv_std(const Tensor& variance, float eps, const Tensor& inv_std) override;
  void batch_norm_forward(const Tensor& x, const Tensor& mean, const Tensor& inv_std, const Tensor& gamma,
                          const Tensor& beta, Activation f, const Tensor& y) override;
  void batch_norm_backward(const Tensor& x, const Tensor& mean, const Tensor& inv_std, const Tensor& gamma,
                           const Tensor& beta, Activation f, Statistics statistics, const Tensor& dy,
                           const GradTarget& dx, const GradTarget& dgamma, const GradTarget& dbeta) override;
  void batch_norm_backward_sums(const Tensor& x, const Tensor& mean, const Tensor& inv_std, const Tensor& gamma,
                                const Tensor& beta, Activation f, const Tensor& dy, const Tensor& sums,
                                const GradTarget& dgamma, const GradTarget& dbeta) override;
  void batch_norm_backward_data(const Tensor& x, const Tensor& mean, const Tensor& inv_std, const Tensor& gamma,
                                const Tensor& beta, Activation f, const Tensor& dy, const Tensor& sums, int64_t rows,
                                const GradTarget& dx) override;
  void batch_norm_backward_moments(const Tensor& inv_std, const Tensor& gamma, const Tensor& dgamma,
                                   const Tensor& dbeta, int64_t rows, const GradTarget& dmoments) override;
  void moments_backward(const Tensor& x, const Tensor& moments, const Tensor& dmoments, int64_t rows,
                        const GradTarget& dx) override;
  void batch_norm_fold(const Tensor& w, const Tensor& bias, const Tensor& mean, const Tensor& inv_std,
                       const Tensor& gamma, const Tensor& beta, const Tensor& folded_w,
                       const Tensor& folded_bias) override;

  void adam_step(const AdamStep& step, const Tensor& gradient, const Tensor& moment1, const Tensor& moment2,
                 const Tensor& value) override;
  void momentum_step(const MomentumStep& step, const Tensor& gradient, const Tensor& moment,
                     const Tensor& value) override;
  void moving_average(float keep, const Tensor& x, const Tensor& average) override;
  double sum_of_squares(const Tensor& x) override;

  void max_pool_forward(const Tensor& x, const Pool2dOptions& options, const Tensor& y, const Tensor& taps) override;
  void max_pool_backward(const Tensor& taps, const Pool2dOptions& options, const Tensor& dy,
                         const GradTarget& dx) override;
  void average_pool_forward(const Tensor& x, const Pool2dOptions& options, const Tensor& y) override;
  void average_pool_backward(const Pool2dOptions& options, const Tensor& dy, const GradTarget& dx) override;
  void global_pool_forward(const Tensor& x, float max_share, const Tensor& y, const Tensor& where) override;
  void global_pool_backward(const Tensor& where, float max_share, const Tensor& dy, const GradTarget& dx) override;

 private:
  CudaBackend(const CudaOptions& options, std::unique_ptr<CudaRuntime> runtime);

  // For the kernels. at() begins an op: its launches go to `.stream`, and errors are reported under its name.
  Launch at(const char* op) const;
  int multiprocessors() const { return runtime_->multiprocessors; }
  // In device memory; see DeviceStatus.
  DeviceStatus* status() const { return runtime_->status; }
  // Waits for the compute stream and reads a small result of the op that began last.
  template <class T>
  T fetch(const T* device) const {
    T value;
    runtime_->fetch(device, sizeof(T), &value);
    return value;
  }

  // What the libraries leave to us (epilogue.cu): y = f(y + bias); bias may be empty.
  void bias_activation(const char* op, const Tensor& bias, Activation f, const Tensor& y) const;

  std::unique_ptr<CudaRuntime> runtime_;
  std::unique_ptr<Blas> blas_;
  std::unique_ptr<Convolutions> convolutions_;
  bool graphs_;
  std::optional<int64_t> kind_;  // of the last step
};

}  // namespace gle::cuda
