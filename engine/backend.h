#pragma once

#include <functional>
#include <span>

#include "engine/device.h"
#include "engine/memory/caching_allocator.h"
#include "engine/memory/workspace.h"
#include "engine/options.h"
#include "engine/packed_weights.h"
#include "engine/tensor.h"

namespace gle {

// THE list of kernels. Every backend defines each in a file named after it. A kernel trusts its arguments (the ops in
// layers/ check them), takes inputs first and outputs last, allocates nothing but the leased workspace, and writes
// every element of its outputs. Tensors are float NHWC with a channel pitch unless the contract says otherwise;
// "dense" means without one. `(=)` is = or += as the target's mode says. A target without a tensor is left out.
//
// Letters: N images, H W input pixels, C input channels, K output channels, R S kernel, P Q output pixels.
class Backend {
 public:
  virtual ~Backend();
  Backend(const Backend&) = delete;
  Backend& operator=(const Backend&) = delete;

  Device device() const { return device_; }
  CachingAllocator& allocator() { return allocator_; }
  Workspace& workspace() { return workspace_; }
  Tensor new_tensor(const char* purpose, const Shape& shape, DType type = DType::f32);

  // What runs the kernels, for logs and reports: "cpu, avx512, 2 threads, oneDNN 2.6.3".
  virtual const char* description() const = 0;

  // -- transfer (runtime.cpp) ---------------------------------------------------------------------------------------
  // Host memory, in row order without pitch, to and from a tensor of any type. The host memory is the caller's again
  // when they return.
  virtual void upload(const void* host, const Tensor& to) = 0;
  virtual void download(const Tensor& from, void* host) = 0;
  virtual void synchronise() = 0;
  // upload() beside the kernels: what arrives is there for kernels called after the next await_prefetched(). `to` must
  // not be used in between, nor by kernels called since the one before: a training loop has two places and alternates.
  virtual void prefetch(const void* host, const Tensor& to) = 0;
  virtual void await_prefetched() = 0;
  // Calls step(), whose kernels may be held back and handed to the device in one piece. It may not wait: no download(),
  // synchronise(), await_prefetched(), and no kernel that returns a number. Steps of one `kind` call the same kernels
  // for the same shapes, with any numbers; the first after one of another kind runs by itself.
  virtual void run_step(int64_t kind, const std::function<void()>& step) = 0;

  // -- images (images.cpp) ------------------------------------------------------------------------------------------
  // y[N,H,W,3] = (x - shift[c]) * factor[c] for bytes x (u8), and scale.erased in the rectangle erased[N,4] (i32: x, y,
  // width, height; may be empty) of each image. All dense. The same bits on every device.
  virtual void images_from_bytes(const Tensor& x, const PixelScale& scale, const Tensor& erased, const Tensor& y) = 0;

  // -- elementwise (elementwise.cpp) --------------------------------------------------------------------------------
  virtual void fill(float value, const Tensor& y) = 0;
  virtual void add(const Tensor& a, const Tensor& b, const Tensor& y) = 0;
  // y (=) factor * x
  virtual void scale(float factor, const Tensor& x, const GradTarget& y) = 0;
  // y (=) factor[1] * x
  virtual void scale_by(const Tensor& factor, const Tensor& x, const GradTarget& y) = 0;
  virtual void activation_forward(const Tensor& x, Activation f, const Tensor& y) = 0;
  // dx (=) dy * f'(x), where y = f(x) is what is left of x.
  virtual void activation_backward(const Tensor& y, Activation f, const Tensor& dy, const GradTarget& dx) = 0;
  // y (=) x * m / (1 - probability), m = 0 with that probability, else 1: element i (counted without pitch) is dropped
  // if uniform(key, first + i) < probability. Its own backward.
  virtual void dropout(const Tensor& x, float probability, RandomKey key, int64_t first, const GradTarget& y) = 0;
  virtual bool all_finite(const Tensor& x) = 0;

  // -- rows (rows.cpp): a row is the channels of one pixel ----------------------------------------------------------
  // sums[C] (=) sum of x over rows
  virtual void column_sums(const Tensor& x, const GradTarget& sums) = 0;
  // y (=) x - mean of the row. Its own backward.
  virtual void centre_rows(const Tensor& x, const GradTarget& y) = 0;
  // y = x / max(|x|, 1e-12) + beta * x, norms[rows] = |x|
  virtual void normalise_rows_forward(const Tensor& x, float beta, const Tensor& norms, const Tensor& y) = 0;
  // A row of length 0 gets the gradient beta * dy.
  virtual void normalise_rows_backward(const Tensor& x, const Tensor& norms, float beta, const Tensor& dy,
                                       const GradTarget& dx) = 0;
  // y[N,c] = these columns of x[N,C]; columns[c] (i32) ascend.
  virtual void take_columns(const Tensor& x, const Tensor& columns, const Tensor& y) = 0;
  // dx[N,C] (=) dy[N,c] in these columns and 0 in the others.
  virtual void put_columns(const Tensor& dy, const Tensor& columns, const GradTarget& dx) = 0;

  // -- softmax (softmax.cpp) ----------------------------------------------------------------------------------------
  virtual void softmax_forward(const Tensor& x, const Tensor& y) = 0;
  virtual void softmax_backward(const Tensor& y, const Tensor& dy, const GradTarget& dx) = 0;
  virtual void log_softmax_forward(const Tensor& x, const Tensor& y) = 0;
  virtual void log_softmax_backward(const Tensor& y, const Tensor& dy, const GradTarget& dx) = 0;
  // Throws ErrorCode::data if one of labels (i32) is not in [0, classes); a GPU may throw at the next synchronise().
  virtual void check_labels(const Tensor& labels, int64_t classes) = 0;
  // loss[1] = mean over rows of -sum_c t_c log softmax(logits)_c, t = (1 - smoothing) onehot(label) + smoothing / C.
  // log_sums[rows,2], for backward: the row's largest logit m and log sum exp(logits - m), apart because the sum of a
  // large m and it would keep nothing of it. labels: i32.
  virtual void cross_entropy_forward(const Tensor& logits, const Tensor& labels, float smoothing,
                                     const Tensor& log_sums, const Tensor& loss) = 0;
  // dlogits (=) dloss[1] * (softmax(logits) - t) / rows
  virtual void cross_entropy_backward(const Tensor& logits, const Tensor& labels, float smoothing,
                                      const Tensor& log_sums, const Tensor& dloss, const GradTarget& dlogits) = 0;

  // -- group loss (group_loss.cpp) ----------------------------------------------------------------------------------
  // W = similarities of embeddings[n,D], or given[n,n] where that is not negative (either may be empty);
  // X_0 = softmax(logits[n,C] / temperature) over the batch's columns, anchors one-hot;
  // X_t+1 = S / rowsum(S), S = X_t * (W X_t), but a row without support (rowsum 0) keeps its value;
  // loss[1] = weight * sum_i -log(X_T[i, target_i] + 1e-12).
  virtual void group_loss_forward(const Tensor& embeddings, const Tensor& given, const Tensor& logits,
                                  const GroupColumns& batch, const GroupRefinement& options, float weight,
                                  const GroupSaved& saved, const Tensor& loss) = 0;
  // Gradients of the above. None reaches the logits of an anchor, a similarity that was clamped, or a given one that is
  // 0. Finite always: support below 1e-20 and probabilities below 1e-30 count as 0 in both directions.
  virtual void group_loss_backward(const Tensor& embeddings, const Tensor& given, const GroupColumns& batch,
                                   const GroupRefinement& options, float weight, const GroupSaved& saved,
                                   const Tensor& dloss, const GradTarget& dembeddings, const GradTarget& dgiven,
                                   const GradTarget& dlogits) = 0;
  // x[n,c] = X_step, from 0 to T.
  virtual void group_loss_iterate(const GroupColumns& batch, const GroupSaved& saved, int step, const Tensor& x) = 0;

  // -- losses of pairs (pair_loss.cpp) ------------------------------------------------------------------------------
  // loss[1] of the similarities s[M,N] of rows and columns with these labels (i32), and ds = dloss/ds. Zero where there
  // is nothing to compare; the gradient of a distance below 1e-6 is 0.
  virtual void pair_loss(const Tensor& s, const Tensor& row_labels, const Tensor& column_labels, Pairs pairs,
                         const PairLossOptions& options, const Tensor& loss, const Tensor& ds) = 0;

  // -- gemm (gemm.cpp) ----------------------------------------------------------------------------------------------
  // c[M,N] (=) op(a) op(b) + bias[N]; bias may be empty. a, b, c may have a pitch.
  virtual void gemm(const Tensor& a, Transpose op_a, const Tensor& b, Transpose op_b, const Tensor& bias,
                    const GradTarget& c) = 0;

  // -- convolution (conv2d.cpp): x[N,H,W,C], w[K,R,S,C] dense, y[N,P,Q,K] -----------------------------------------
  // y = f(conv(x, w) + bias); bias[K] may be empty. `packed`: null, or a cache of w that the caller
  // keeps; with it y may differ in its last bits, but never by the batch that an image is in.
  virtual void conv2d_forward(const Tensor& x, const Tensor& w, const Tensor& bias, const Conv2dOptions& options,
                              Activation f, PackedWeights* packed, const Tensor& y) = 0;
  // dx (=) transposed conv of dy
  virtual void conv2d_backward_data(const Tensor& w, const Tensor& dy, const Conv2dOptions& options,
                                    const GradTarget& dx) = 0;
  // dw (=) correlation of x with dy
  virtual void conv2d_backward_weights(const Tensor& x, const Tensor& dy, const Conv2dOptions& options,
                                       const GradTarget& dw) = 0;

  // -- batch norm (batch_norm.cpp): per channel, all vectors dense [C] ----------------------------------------------
  // mean and inv_std = 1 / sqrt(variance + eps) of x over its rows (biased variance, numerically sound), and
  // running = (1 - momentum) * running + momentum * (mean, unbiased variance).
  virtual void batch_norm_statistics(const Tensor& x, float eps, float momentum, const Tensor& running_mean,
                                     const Tensor& running_var, const Tensor& mean, const Tensor& inv_std) = 0;
  // The same of a batch in parts of `rows` rows: moments[2 parts,C], which may have a pitch, are the mean and the
  // unbiased variance of each.
  virtual void batch_norm_join_statistics(const Tensor& moments, int64_t rows, float eps, float momentum,
                                          const Tensor& running_mean, const Tensor& running_var, const Tensor& mean,
                                          const Tensor& inv_std) = 0;
  // inv_std = 1 / sqrt(variance + eps)
  virtual void batch_norm_inv_std(const Tensor& variance, float eps, const Tensor& inv_std) = 0;
  // y = f((x - mean) * inv_std * gamma + beta)
  virtual void batch_norm_forward(const Tensor& x, const Tensor& mean, const Tensor& inv_std, const Tensor& gamma,
                                  const Tensor& beta, Activation f, const Tensor& y) = 0;
  // Gradients of the above; f' is found again from x. With Statistics::of_batch the gradient also flows through mean
  // and inv_std as functions of x.
  virtual void batch_norm_backward(const Tensor& x, const Tensor& mean, const Tensor& inv_std, const Tensor& gamma,
                                   const Tensor& beta, Activation f, Statistics statistics, const Tensor& dy,
                                   const GradTarget& dx, const GradTarget& dgamma, const GradTarget& dbeta) = 0;
  // The same of a batch in parts, with Statistics::of_batch. Of a part: sums[2,C] (dense) = sum of e and of
  // e (x - mean), e the gradient of what f is given; dgamma and dbeta. Then, with the sums of all parts, which have
  // `rows` rows together, the part's dx.
  virtual void batch_norm_backward_sums(const Tensor& x, const Tensor& mean, const Tensor& inv_std, const Tensor& gamma,
                                        const Tensor& beta, Activation f, const Tensor& dy, const Tensor& sums,
                                        const GradTarget& dgamma, const GradTarget& dbeta) = 0;
  virtual void batch_norm_backward_data(const Tensor& x, const Tensor& mean, const Tensor& inv_std, const Tensor& gamma,
                                        const Tensor& beta, Activation f, const Tensor& dy, const Tensor& sums,
                                        int64_t rows, const GradTarget& dx) = 0;
  // What flows into the moments[2,C] of `rows` rows, mean and unbiased variance, that mean and inv_std were made of:
  // dmoments (=), from a backward of frozen statistics that gave dgamma and dbeta, which are dense.
  virtual void batch_norm_backward_moments(const Tensor& inv_std, const Tensor& gamma, const Tensor& dgamma,
                                           const Tensor& dbeta, int64_t rows, const GradTarget& dmoments) = 0;
  // And from the moments[2,C] of `rows` rows, of which x are some or all, into x: dx (=). moments and dmoments may have
  // a pitch.
  virtual void moments_backward(const Tensor& x, const Tensor& moments, const Tensor& dmoments, int64_t rows,
                                const GradTarget& dx) = 0;
  // folded_w[k,...] = w[k,...] * gamma[k] * inv_std[k]; folded_bias = (bias - mean) * gamma * inv_std + beta; bias may
  // be empty.
  virtual void batch_norm_fold(const Tensor& w, const Tensor& bias, const Tensor& mean, const Tensor& inv_std,
                               const Tensor& gamma, const Tensor& beta, const Tensor& folded_w,
                               const Tensor& folded_bias) = 0;

  // -- optimisers (optimiser.cpp): one pass over flat arrays, all dense and of one size --------------------------
  // Adam and its kin, see AdamStep. moment1, moment2 and value are updated.
  virtual void adam_step(const AdamStep& step, const Tensor& gradient, const Tensor& moment1, const Tensor& moment2,
                         const Tensor& value) = 0;
  // Gradient descent with momentum, see MomentumStep. moment and value are updated.
  virtual void momentum_step(const MomentumStep& step, const Tensor& gradient, const Tensor& moment,
                             const Tensor& value) = 0;
  // average = keep * average + (1 - keep) * x
  virtual void moving_average(float keep, const Tensor& x, const Tensor& average) = 0;
  // Waits for the result, which is summed in double in a fixed order.
  virtual double sum_of_squares(const Tensor& x) = 0;

  // -- pooling (pool2d.cpp): x[N,H,W,C], y[N,P,Q,C] -----------------------------------------------------------------
  // taps (u8, dense, like y): which tap of the window, r * kernel_w + s, was largest; the first among equals. NaN wins.
  // taps may be empty.
  virtual void max_pool_forward(const Tensor& x, const Pool2dOptions& options, const Tensor& y, const Tensor& taps) = 0;
  virtual void max_pool_backward(const Tensor& taps, const Pool2dOptions& options, const Tensor& dy,
                                 const GradTarget& dx) = 0;
  virtual void average_pool_forward(const Tensor& x, const Pool2dOptions& options, const Tensor& y) = 0;
  virtual void average_pool_backward(const Pool2dOptions& options, const Tensor& dy, const GradTarget& dx) = 0;
  // y[N,C] = max_share * max + (1 - max_share) * mean over the pixels; where[N,C] (i32, dense): pixel of the maximum,
  // the first among equals; may be empty.
  virtual void global_pool_forward(const Tensor& x, float max_share, const Tensor& y, const Tensor& where) = 0;
  virtual void global_pool_backward(const Tensor& where, float max_share, const Tensor& dy, const GradTarget& dx) = 0;

 protected:
  Backend(MemorySource memory, size_t limit);

 private:
  Device device_;
  CachingAllocator allocator_;
  Workspace workspace_;
};

}  // namespace gle
