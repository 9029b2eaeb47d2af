#pragma once

#include "layers/batch_norm.h"

namespace gle {

// The ranks that a batch's statistics in training are taken over; null: this process alone.
inline Comm* ranks_of_statistics(const Context& ctx) { return ctx.sync_batch_norm ? ctx.comm : nullptr; }

// Of a batch spread over ranks: mean and unbiased variance of what each of them has, [2 ranks, C].
Tensor moments_of_ranks(Backend& b, const char* op, const Tensor& x, Comm& comm);

// Throws unless a batch-norm of an input of this shape may have these parameters and this layer.
void require_sound(const Context& ctx, const char* op, const Shape& x, const Tensor& gamma, const Tensor& beta,
                   const BatchNorm& layer, Activation f);

// What a batch-norm subtracts and multiplies by, for the ops that contain one.
struct NormStatistics {
  Tensor mean, inv_std;
  Statistics kind = Statistics::frozen;
  Comm* comm = nullptr;  // of the ranks that the batch is spread over

  // Of the batch in training (over all ranks if the context says so, and the running ones move), else the running ones.
  NormStatistics(Context& ctx, const char* op, const Tensor& x, const BatchNorm& layer);

  // As Backend::batch_norm_backward.
  void backward(Backend& b, const Tensor& x, const Tensor& gamma, const Tensor& beta, Activation f, const Tensor& dy,
                const GradTarget& dx, const GradTarget& dgamma, const GradTarget& dbeta) const;
};

}  // namespace gle
