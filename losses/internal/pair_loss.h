#pragma once

#include "engine/context.h"

namespace gle {

// What the losses of pairs share: similarities of the rows of x[M,D] with those of y[N,D], one kernel for value and
// gradient. With Pairs::of_batch x and y are the same. Labels: i32 [M], [N].
Var pair_loss(Context& ctx, const char* op, const Var& x, const Tensor& x_labels, const Var& y, const Tensor& y_labels,
              Pairs pairs, const PairLossOptions& options);

// Throws unless there is a whole number for each of the rows, on the context's device.
void require_labels(const Context& ctx, const char* op, const Tensor& labels, int64_t rows);

// Proxies [C,D] are those of the classes 0 ... C - 1.
Tensor proxy_labels(Context& ctx, int64_t classes);

}  // namespace gle
