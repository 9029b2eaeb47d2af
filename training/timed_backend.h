#pragma once

#include <chrono>
#include <map>
#include <string_view>
#include <type_traits>
#include <vector>

#include "engine/backend.h"

namespace gle {

// A CPU backend with a clock: every call of a kernel is counted, timed and weighed. Its tensors and those of `inner`
// can be used for each other.
class TimedBackend final : public Backend {
 public:
  // `inner` must outlive it. Throws ErrorCode::usage if its kernels go on beside the program, as a GPU's do.
  explicit TimedBackend(Backend& inner);
  ~TimedBackend() override;

  struct Kernel {
    std::string_view name;
    int64_t calls = 0;
    double seconds = 0;
    double operations = 0;  // of products, as their definition counts: a multiplication and an addition are two
    double bytes = 0;       // of the tensors it was given, each once, those it adds to twice

    Kernel& operator+=(const Kernel& other);
  };
  // Since the last reset(), the slowest first.
  std::vector<Kernel> kernels() const;
  double seconds() const;
  void reset();

  const char* description() const override { return inner_.description(); }
  void run_step(int64_t, const std::function<void()>& step) override { step(); }
  void upload(const void* host, const Tensor& to) override { run("upload", &Backend::upload, host, to); }
  void download(const Tensor& from, void* host) override { run("download", &Backend::download, from, host); }
  void synchronise() override { run("synchronise", &Backend::synchronise); }
  void prefetch(const void* host, const Tensor& to) override { run("prefetch", &Backend::prefetch, host, to); }
  void await_prefetched() override { run("await_prefetched", &Backend::await_prefetched); }
  void images_from_bytes(const Tensor& x, const PixelScale& scale, const Tensor& erased, const Tensor& y) override {
    run("images_from_bytes", &Backend::images_from_bytes, x, scale, erased, y);
  }
  void fill(float value, const Tensor& y) override { run("fill", &Backend::fill, value, y); }
  void add(const Tensor& a, const Tensor& b, const Tensor& y) override { run("add", &Backend::add, a, b, y); }
  void scale(float factor, const Tensor& x, const GradTarget& y) override {
    run("scale", &Backend::scale, factor, x, y);
  }
  void scale_by(const Tensor& factor, const Tensor& x, const GradTarget& y) override {
    run("scale_by", &Backend::scale_by, factor, x, y);
  }
  void activation_forward(const Tensor& x, Activation f, const Tensor& y) override {
    run("activation_forward", &Backend::activation_forward, x, f, y);
  }
  void activation_backward(const Tensor& y, Activation f, const Tensor& dy, const GradTarget& dx) override {
    run("activation_backward", &Backend::activation_backward, y, f, dy, dx);
  }
  void dropout(const Tensor& x, float probability, RandomKey key, int64_t first, const GradTarget& y) override {
    run("dropout", &Backend::dropout, x, probability, key, first, y);
  }
  bool all_finite(const Tensor& x) override { return run("all_finite", &Backend::all_finite, x); }
  void column_sums(const Tensor& x, const GradTarget& sums) override {
    run("column_sums", &Backend::column_sums, x, sums);
  }
  void centre_rows(const Tensor& x, const GradTarget& y) override { run("centre_rows", &Backend::centre_rows, x, y); }
  void normalise_rows_forward(const Tensor& x, float beta, const Tensor& norms, const Tensor& y) override {
    run("normalise_rows_forward", &Backend::normalise_rows_forward, x, beta, norms, y);
  }
  void normalise_rows_backward(const Tensor& x, const Tensor& norms, float beta, const Tensor& dy,
                               const GradTarget& dx) override {
    run("normalise_rows_backward", &Backend::normalise_rows_backward, x, norms, beta, dy, dx);
  }
  void take_columns(const Tensor& x, const Tensor& columns, const Tensor& y) override {
    run("take_columns", &Backend::take_columns, x, columns, y);
  }
  void put_columns(const Tensor& dy, const Tensor& columns, const GradTarget& dx) override {
    run("put_columns", &Backend::put_columns, dy, columns, dx);
  }
  void softmax_forward(const Tensor& x, const Tensor& y) override {
    run("softmax_forward", &Backend::softmax_forward, x, y);
  }
  void softmax_backward(const Tensor& y, const Tensor& dy, const GradTarget& dx) override {
    run("softmax_backward", &Backend::softmax_backward, y, dy, dx);
  }
  void log_softmax_forward(const Tensor& x, const Tensor& y) override {
    run("log_softmax_forward", &Backend::log_softmax_forward, x, y);
  }
  void log_softmax_backward(const Tensor& y, const Tensor& dy, const GradTarget& dx) override {
    run("log_softmax_backward", &Backend::log_softmax_backward, y, dy, dx);
  }
  void check_labels(const Tensor& labels, int64_t classes) override {
    run("check_labels", &Backend::check_labels, labels, classes);
  }
  void cross_entropy_forward(const Tensor& logits, const Tensor& labels, float smoothing, const Tensor& log_sums,
                             const Tensor& loss) override {
    run("cross_entropy_forward", &Backend::cross_entropy_forward, logits, labels, smoothing, log_sums, loss);
  }
  void cross_entropy_backward(const Tensor& logits, const Tensor& labels, float smoothing, const Tensor& log_sums,
                              const Tensor& dloss, const GradTarget& dlogits) override {
    run("cross_entropy_backward", &Backend::cross_entropy_backward, logits, labels, smoothing, log_sums, dloss,
        dlogits);
  }
  void group_loss_forward(const Tensor& embeddings, const Tensor& given, const Tensor& logits,
                          const GroupColumns& batch, const GroupRefinement& options, float weight,
                          const GroupSaved& saved, const Tensor& loss) override {
    run("group_loss_forward", &Backend::group_loss_forward, embeddings, given, logits, batch, options, weight, saved,
        loss);
  }
  void group_loss_backward(const Tensor& embeddings, const Tensor& given, const GroupColumns& batch,
                           const GroupRefinement& options, float weight, const GroupSaved& saved, const Tensor& dloss,
                           const GradTarget& dembeddings, const GradTarget& dgiven,
                           const GradTarget& dlogits) override {
    run("group_loss_backward", &Backend::group_loss_backward, embeddings, given, batch, options, weight, saved, dloss,
        dembeddings, dgiven, dlogits);
  }
  void group_loss_iterate(const GroupColumns& batch, const GroupSaved& saved, int step, const Tensor& x) override {
    run("group_loss_iterate", &Backend::group_loss_iterate, batch, saved, step, x);
  }
  void pair_loss(const Tensor& s, const Tensor& row_labels, const Tensor& column_labels, Pairs pairs,
                 const PairLossOptions& options, const Tensor& loss, const Tensor& ds) override {
    run("pair_loss", &Backend::pair_loss, s, row_labels, column_labels, pairs, options, loss, ds);
  }
  void gemm(const Tensor& a, Transpose op_a, const Tensor& b, Transpose op_b, const Tensor& bias,
            const GradTarget& c) override {
    run({"gemm", products(c.grad, op_a == Transpose::yes ? a.rows() : a.channels())}, &Backend::gemm, a, op_a, b, op_b,
        bias, c);
  }
  void conv2d_forward(const Tensor& x, const Tensor& w, const Tensor& bias, const Conv2dOptions& options, Activation f,
                      PackedWeights* packed, const Tensor& y) override {
    run({"conv2d_forward", products(y, w.elements() / y.channels())}, &Backend::conv2d_forward, x, w, bias, options, f,
        packed, y);
  }
  void conv2d_backward_data(const Tensor& w, const Tensor& dy, const Conv2dOptions& options,
                            const GradTarget& dx) override {
    run({"conv2d_backward_data", products(dy, w.elements() / dy.channels())}, &Backend::conv2d_backward_data, w, dy,
        options, dx);
  }
  void conv2d_backward_weights(const Tensor& x, const Tensor& dy, const Conv2dOptions& options,
                               const GradTarget& dw) override {
    run({"conv2d_backward_weights", products(dy, dw.grad.elements() / dy.channels())},
        &Backend::conv2d_backward_weights, x, dy, options, dw);
  }
  void batch_norm_statistics(const Tensor& x, float eps, float momentum, const Tensor& running_mean,
                             const Tensor& running_var, const Tensor& mean, const Tensor& inv_std) override {
    run("batch_norm_statistics", &Backend::batch_norm_statistics, x, eps, momentum, running_mean, running_var, mean,
        inv_std);
  }
  void batch_norm_join_statistics(const Tensor& moments, int64_t rows, float eps, float momentum,
                                  const Tensor& running_mean, const Tensor& running_var, const Tensor& mean,
                                  const Tensor& inv_std) override {
    run("batch_norm_join_statistics", &Backend::batch_norm_join_statistics, moments, rows, eps, momentum, running_mean,
        running_var, mean, inv_std);
  }
  void batch_norm_inv_std(const Tensor& variance, float eps, const Tensor& inv_std) override {
    run("batch_norm_inv_std", &Backend::batch_norm_inv_std, variance, eps, inv_std);
  }
  void batch_norm_forward(const Tensor& x, const Tensor& mean, const Tensor& inv_std, const Tensor& gamma,
                          const Tensor& beta, Activation f, const Tensor& y) override {
    run("batch_norm_forward", &Backend::batch_norm_forward, x, mean, inv_std, gamma, beta, f, y);
  }
  void batch_norm_backward(const Tensor& x, const Tensor& mean, const Tensor& inv_std, const Tensor& gamma,
                           const Tensor& beta, Activation f, Statistics statistics, const Tensor& dy,
                           const GradTarget& dx, const GradTarget& dgamma, const GradTarget& dbeta) override {
    run("batch_norm_backward", &Backend::batch_norm_backward, x, mean, inv_std, gamma, beta, f, statistics, dy, dx,
        dgamma, dbeta);
  }
  void batch_norm_backward_sums(const Tensor& x, const Tensor& mean, const Tensor& inv_std, const Tensor& gamma,
                                const Tensor& beta, Activation f, const Tensor& dy, const Tensor& sums,
                                const GradTarget& dgamma, const GradTarget& dbeta) override {
    run("batch_norm_backward_sums", &Backend::batch_norm_backward_sums, x, mean, inv_std, gamma, beta, f, dy, sums,
        dgamma, dbeta);
  }
  void batch_norm_backward_data(const Tensor& x, const Tensor& mean, const Tensor& inv_std, const Tensor& gamma,
                                const Tensor& beta, Activation f, const Tensor& dy, const Tensor& sums, int64_t rows,
                                const GradTarget& dx) override {
    run("batch_norm_backward_data", &Backend::batch_norm_backward_data, x, mean, inv_std, gamma, beta, f, dy, sums,
        rows, dx);
  }
  void batch_norm_backward_moments(const Tensor& inv_std, const Tensor& gamma, const Tensor& dgamma,
                                   const Tensor& dbeta, int64_t rows, const GradTarget& dmoments) override {
    run("batch_norm_backward_moments", &Backend::batch_norm_backward_moments, inv_std, gamma, dgamma, dbeta, rows,
        dmoments);
  }
  void moments_backward(const Tensor& x, const Tensor& moments, const Tensor& dmoments, int64_t rows,
                        const GradTarget& dx) override {
    run("moments_backward", &Backend::moments_backward, x, moments, dmoments, rows, dx);
  }
  void batch_norm_fold(const Tensor& w, const Tensor& bias, const Tensor& mean, const Tensor& inv_std,
                       const Tensor& gamma, const Tensor& beta, const Tensor& folded_w,
                       const Tensor& folded_bias) override {
    run("batch_norm_fold", &Backend::batch_norm_fold, w, bias, mean, inv_std, gamma, beta, folded_w, folded_bias);
  }
  void adam_step(const AdamStep& step, const Tensor& gradient, const Tensor& moment1, const Tensor& moment2,
                 const Tensor& value) override {
    run("adam_step", &Backend::adam_step, step, gradient, moment1, moment2, value);
  }
  void momentum_step(const MomentumStep& step, const Tensor& gradient, const Tensor& moment,
                     const Tensor& value) override {
    run("momentum_step", &Backend::momentum_step, step, gradient, moment, value);
  }
  void moving_average(float keep, const Tensor& x, const Tensor& average) override {
    run("moving_average", &Backend::moving_average, keep, x, average);
  }
  double sum_of_squares(const Tensor& x) override { return run("sum_of_squares", &Backend::sum_of_squares, x); }
  void max_pool_forward(const Tensor& x, const Pool2dOptions& options, const Tensor& y, const Tensor& taps) override {
    run("max_pool_forward", &Backend::max_pool_forward, x, options, y, taps);
  }
  void max_pool_backward(const Tensor& taps, const Pool2dOptions& options, const Tensor& dy,
                         const GradTarget& dx) override {
    run("max_pool_backward", &Backend::max_pool_backward, taps, options, dy, dx);
  }
  void average_pool_forward(const Tensor& x, const Pool2dOptions& options, const Tensor& y) override {
    run("average_pool_forward", &Backend::average_pool_forward, x, options, y);
  }
  void average_pool_backward(const Pool2dOptions& options, const Tensor& dy, const GradTarget& dx) override {
    run("average_pool_backward", &Backend::average_pool_backward, options, dy, dx);
  }
  void global_pool_forward(const Tensor& x, float max_share, const Tensor& y, const Tensor& where) override {
    run("global_pool_forward", &Backend::global_pool_forward, x, max_share, y, where);
  }
  void global_pool_backward(const Tensor& where, float max_share, const Tensor& dy, const GradTarget& dx) override {
    run("global_pool_backward", &Backend::global_pool_backward, where, max_share, dy, dx);
  }

 private:
  struct Work {
    Work(const char* name, double operations = 0) : name(name), operations(operations) {}
    const char* name;
    double operations;
  };

  // Of outputs that are sums of so many products each.
  static double products(const Tensor& outputs, int64_t each) {
    return 2.0 * static_cast<double>(outputs.elements()) * static_cast<double>(each);
  }
  static double bytes(const Tensor& tensor) {
    return tensor ? static_cast<double>(tensor.elements()) * static_cast<double>(bytes_of(tensor.type())) : 0;
  }
  static double bytes(const GradTarget& target) {
    return bytes(target.grad) * (target.mode == Accumulate::add ? 2 : 1);
  }
  template <class Other>
  static double bytes(const Other&) {
    return 0;
  }

  template <class Result, class... Parameters>
  Result run(const Work& work, Result (Backend::*kernel)(Parameters...),
             std::type_identity_t<Parameters>... arguments) {
    const Timer timer(*this, work, (0.0 + ... + bytes(arguments)));
    return (inner_.*kernel)(arguments...);
  }

  class Timer {
   public:
    Timer(TimedBackend& backend, const Work& work, double bytes);
    ~Timer();

   private:
    TimedBackend& backend_;
    Work work_;
    double bytes_;
    std::chrono::steady_clock::time_point start_;
  };

  Backend& inner_;
  std::map<std::string_view, Kernel> kernels_;
};

}  // namespace gle
