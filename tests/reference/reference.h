#pragma once

#include <vector>

#include "engine/options.h"
#include "tests/array.h"

// What every kernel of engine/backend.h computes, in double precision and plain loops: the specification that the
// kernels are held to. Written for reading, never for speed, and without any code of the engine.
namespace gle::reference {

using test::Array;
using test::Arrays;

// -- images.cpp; `erased` may be empty
Array images_from_bytes(const Array& x, const PixelScale& scale, const Array& erased);

// -- elementwise.cpp
Array add(const Array& a, const Array& b);
Array scale(const Array& x, double factor);
Array activation(const Array& x, Activation f);
Array activation_backward(const Array& x, Activation f, const Array& dy);
Array dropout(const Array& x, double probability, RandomKey key, int64_t first = 0);

// -- rows.cpp
Array column_sums(const Array& x);
Array take_columns(const Array& x, const Array& columns);
Array put_columns(const Array& dy, const Array& columns, const Shape& shape);
Array centre_rows(const Array& x);
Array row_norms(const Array& x);
Array normalise_rows(const Array& x, double beta);
Array normalise_rows_backward(const Array& x, double beta, const Array& dy);

// -- softmax.cpp
Array softmax(const Array& x);
Array softmax_backward(const Array& y, const Array& dy);
Array log_softmax(const Array& x);
Array log_softmax_backward(const Array& y, const Array& dy);
Array log_sums(const Array& logits);  // [rows,2]: the largest logit, log sum exp of what they are below it
Array cross_entropy(const Array& logits, const std::vector<int>& labels, double smoothing);
Array cross_entropy_backward(const Array& logits, const std::vector<int>& labels, double smoothing, double dloss);

// -- gemm.cpp
Array gemm(const Array& a, Transpose op_a, const Array& b, Transpose op_b, const Array& bias);

// -- conv2d.cpp
Array conv2d(const Array& x, const Array& w, const Array& bias, const Conv2dOptions& options, Activation f);
Array conv2d_backward_data(const Array& w, const Array& dy, const Conv2dOptions& options, const Shape& x);
Array conv2d_backward_weights(const Array& x, const Array& dy, const Conv2dOptions& options, const Shape& w);

// -- batch_norm.cpp
struct BatchStatistics {
  Array mean, variance, unbiased_variance;
};
BatchStatistics batch_statistics(const Array& x);
Array inv_std(const Array& variance, double eps);
Array batch_norm(const Array& x, const Array& mean, const Array& inv_std, const Array& gamma, const Array& beta,
                 Activation f);
struct BatchNormGradients {
  Array dx, dgamma, dbeta;
};
BatchNormGradients batch_norm_backward(const Array& x, const Array& mean, const Array& inv_std, const Array& gamma,
                                       const Array& beta, Activation f, Statistics statistics, const Array& dy);
// Mean and unbiased variance, [2,C], and what flows from them into x.
Array moments(const Array& x);
Array moments_backward(const Array& x, const Array& dmoments);
// What a backward with frozen statistics sends to the moments of so many rows, through mean and inv_std.
Array gradient_of_moments(const Array& inv_std, const Array& gamma, const BatchNormGradients& g, int64_t rows);
struct Folded {
  Array w, bias;
};
Folded batch_norm_fold(const Array& w, const Array& bias, const Array& mean, const Array& inv_std, const Array& gamma,
                       const Array& beta);

// -- pool2d.cpp
struct MaxPooled {
  Array y, taps;
};
MaxPooled max_pool(const Array& x, const Pool2dOptions& options);
Array max_pool_backward(const Array& taps, const Pool2dOptions& options, const Array& dy, const Shape& x);
Array average_pool(const Array& x, const Pool2dOptions& options);
Array average_pool_backward(const Pool2dOptions& options, const Array& dy, const Shape& x);
struct GlobalPooled {
  Array y, where;
};
GlobalPooled global_pool(const Array& x, double max_share);
Array global_pool_backward(const Array& where, double max_share, const Array& dy, const Shape& x);

}  // namespace gle::reference
