#pragma once

#include "engine/context.h"

namespace gle {

struct BatchNorm {
  Parameter* gamma = nullptr;
  Parameter* beta = nullptr;
  Parameter* running_mean = nullptr;
  Parameter* running_var = nullptr;
  float eps = 1e-5F;
  // The share of the new batch in the running statistics, as PyTorch counts it.
  float momentum = 0.1F;
  // Use the running statistics in training too, and leave them as they are.
  bool frozen = false;
};

// Names: "<name>.weight", ".bias", ".running_mean", ".running_var".
BatchNorm make_batch_norm(ParameterSet& set, const std::string& name, int64_t channels);

// f(gamma * (x - mean) / sqrt(variance + eps) + beta) per channel, for [N,H,W,C] and [N,C] alike: over the statistics
// of the batch in training (which also moves the running ones), else over the running ones.
Var batch_norm(Context& ctx, const Var& x, const BatchNorm& layer, Activation f = kIdentity, const Var& out = {});
// The same with scale and shift as Vars; the layer gives the rest.
Var batch_norm(Context& ctx, const Var& x, const Var& gamma, const Var& beta, const BatchNorm& layer, Activation f,
               const Var& out = {});

// Mean and unbiased variance of each channel of x over its rows, on all ranks that share a batch, [2,C].
Var channel_moments(Context& ctx, const Var& x, const Var& out = {});
// The batch-norm of training over channel_moments(x), for an x that several layers normalise: its statistics are found
// once, and what flows back through them goes into x once.
Var batch_norm_given(Context& ctx, const Var& x, const Var& moments, const BatchNorm& layer, Activation f,
                     const Var& out = {});
Var batch_norm_given(Context& ctx, const Var& x, const Var& moments, const Var& gamma, const Var& beta,
                     const BatchNorm& layer, Activation f, const Var& out = {});

}  // namespace gle
