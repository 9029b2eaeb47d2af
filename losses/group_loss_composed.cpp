#include "losses/group_loss_composed.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "layers/elementwise.h"
#include "layers/linear.h"
#include "layers/rows.h"
#include "losses/cross_entropy.h"

namespace gle {

namespace {

using Values = std::vector<float>;

Values fetch(Backend& b, const Tensor& tensor) {
  Values values(static_cast<size_t>(tensor.elements()));
  b.download(tensor, values.data());
  return values;
}

Tensor place(Backend& b, const Shape& shape, const Values& values) {
  Tensor tensor = b.new_tensor("group_loss_composed", shape);
  b.upload(values.data(), tensor);
  return tensor;
}

// An op of one or two inputs in plain loops on the host. forward(a, b) gives the output; backward(a, b, dy, da, db)
// adds to da and db.
struct HostOp {
  const char* name;
  std::function<Values(const Values& a, const Values& b)> forward;
  std::function<void(const Values& a, const Values& b, const Values& dy, Values& da, Values& db)> backward;
};

Var run(Context& ctx, const HostOp& op, const Var& a, const Var& b, const Shape& shape) {
  const Values none;
  const auto values_of = [](Backend& backend, const Tensor& t) { return t ? fetch(backend, t) : Values(); };
  Var y = ctx.new_var(op.name, shape);
  ctx.backend.upload(op.forward(values_of(ctx.backend, a.value()), values_of(ctx.backend, b.value())).data(),
                     y.value());
  ctx.record(op.name, {a, b}, y,
             [op, a = a.value(), b = b.value(), values_of](Backend& backend, const Tensor& dy, GradTargets to) {
               const Values va = values_of(backend, a), vb = values_of(backend, b);
               Values da(va.size()), db(vb.size());
               op.backward(va, vb, fetch(backend, dy), da, db);
               if (to[0]) {
                 backend.scale(1.0F, place(backend, a.shape(), da), to[0]);
               }
               if (to[1]) {
                 backend.scale(1.0F, place(backend, b.shape(), db), to[1]);
               }
             });
  return y;
}

Var multiply(Context& ctx, const Var& a, const Var& b) {
  return run(ctx,
             {.name = "multiply",
              .forward =
                  [](const Values& x, const Values& y) {
                    Values z(x.size());
                    std::transform(x.begin(), x.end(), y.begin(), z.begin(), std::multiplies<>());
                    return z;
                  },
              .backward =
                  [](const Values& x, const Values& y, const Values& dz, Values& dx, Values& dy) {
                    for (size_t i = 0; i < dz.size(); ++i) {
                      dx[i] += dz[i] * y[i];
                      dy[i] += dz[i] * x[i];
                    }
                  }},
             a, b, a.shape());
}

Var product(Context& ctx, const Var& a, const Var& b) {
  const char* op = "product";
  Var y = ctx.new_var(op, {a.shape()[0], b.shape()[1]});
  ctx.backend.gemm(a.value(), Transpose::no, b.value(), Transpose::no, Tensor(), {y.value()});
  ctx.record(op, {a, b}, y, [a = a.value(), b = b.value()](Backend& backend, const Tensor& dy, GradTargets to) {
    if (to[0]) {
      backend.gemm(dy, Transpose::no, b, Transpose::yes, Tensor(), to[0]);
    }
    if (to[1]) {
      backend.gemm(a, Transpose::yes, dy, Transpose::no, Tensor(), to[1]);
    }
  });
  return y;
}

// x less its smallest entry among those with use > 0.
Var subtract_smallest(Context& ctx, const Var& x, const Values& use) {
  const auto smallest = [use](const Values& v) {
    float low = INFINITY;
    for (size_t i = 0; i < v.size(); ++i) {
      low = use[i] > 0 ? std::min(low, v[i]) : low;
    }
    return std::isinf(low) ? 0.0F : low;
  };
  return run(ctx,
             {.name = "subtract_smallest",
              .forward =
                  [smallest](const Values& v, const Values&) {
                    Values y = v;
                    for (float& one : y) {
                      one -= smallest(v);
                    }
                    return y;
                  },
              .backward =
                  [smallest, use](const Values& v, const Values&, const Values& dy, Values& dx, Values&) {
                    const float low = smallest(v);
                    float sum = 0, count = 0;
                    for (size_t i = 0; i < v.size(); ++i) {
                      dx[i] += dy[i];
                      sum += dy[i];
                      count += use[i] > 0 && v[i] == low ? 1.0F : 0.0F;
                    }
                    for (size_t i = 0; i < v.size(); ++i) {
                      dx[i] -= use[i] > 0 && v[i] == low ? sum / count : 0.0F;
                    }
                  }},
             x, Var(), x.shape());
}

// Rows of s divided by their sums; a row that sums to 0 becomes that of `before`.
Var divide_by_sums(Context& ctx, const Var& s, const Var& before) {
  const auto columns = static_cast<size_t>(s.shape()[1]);
  const auto sum_of = [columns](const Values& v, size_t row) {
    double sum = 0;
    for (size_t c = 0; c < columns; ++c) {
      sum += static_cast<double>(v[row * columns + c]);
    }
    return static_cast<float>(sum);
  };
  return run(ctx,
             {.name = "divide_by_sums",
              .forward =
                  [=](const Values& v, const Values& old) {
                    Values y(v.size());
                    for (size_t i = 0; i < v.size(); ++i) {
                      const float sum = sum_of(v, i / columns);
                      y[i] = sum == 0 ? old[i] : v[i] / sum;
                    }
                    return y;
                  },
              .backward =
                  [=](const Values& v, const Values&, const Values& dy, Values& dv, Values& dold) {
                    for (size_t row = 0; row * columns < v.size(); ++row) {
                      const float sum = sum_of(v, row);
                      double dot = 0;
                      for (size_t i = row * columns; i < (row + 1) * columns; ++i) {
                        dot += sum == 0 ? 0.0 : static_cast<double>(dy[i]) * static_cast<double>(v[i] / sum);
                      }
                      for (size_t i = row * columns; i < (row + 1) * columns; ++i) {
                        (sum == 0 ? dold : dv)[i] += sum == 0 ? dy[i] : (dy[i] - static_cast<float>(dot)) / sum;
                      }
                    }
                  }},
             s, before, s.shape());
}

Var negative_log_likelihood(Context& ctx, const Var& x, std::span<const int32_t> targets, float weight) {
  const auto columns = static_cast<size_t>(x.shape()[1]);
  const std::vector<int32_t> own(targets.begin(), targets.end());
  const auto place_of = [own, columns](size_t row) { return row * columns + static_cast<size_t>(own[row]); };
  return run(ctx,
             {.name = "negative_log_likelihood",
              .forward =
                  [=](const Values& v, const Values&) {
                    double sum = 0;
                    for (size_t row = 0; row < own.size(); ++row) {
                      sum -= std::log(static_cast<double>(v[place_of(row)]) + 1e-12);
                    }
                    return Values{static_cast<float>(sum) * weight};
                  },
              .backward =
                  [=](const Values& v, const Values&, const Values& dy, Values& dv, Values&) {
                    for (size_t row = 0; row < own.size(); ++row) {
                      dv[place_of(row)] -= dy[0] * weight / (v[place_of(row)] + 1e-12F);
                    }
                  }},
             x, Var(), {1});
}

Var similarities(Context& ctx, const Var& embeddings, const GroupRefinement& options, const Var& given, int64_t n) {
  const Values known = given ? fetch(ctx.backend, given.value()) : Values(static_cast<size_t>(n * n), -1.0F);
  Values unknown(known.size()), used(known.size());
  for (size_t i = 0; i < known.size(); ++i) {
    unknown[i] = known[i] < 0 ? 1.0F : 0.0F;
    used[i] = known[i] > 0 ? 1.0F : 0.0F;
  }
  Var w;
  if (embeddings) {
    const Var centred = options.similarity == Similarity::correlation ? centre_rows(ctx, embeddings) : embeddings;
    const Var unit = normalise_rows(ctx, centred);
    const Var r = linear(ctx, unit, unit, Var());
    w = options.negatives == Negatives::clamp ? activation(ctx, r, kRelu) : subtract_smallest(ctx, r, unknown);
    for (int64_t i = 0; i < n && options.diagonal == Diagonal::zero; ++i) {
      unknown[static_cast<size_t>(i * n + i)] = 0.0F;
    }
    w = multiply(ctx, w, Var(place(ctx.backend, {n, n}, unknown)));
  }
  if (given) {
    const Var fixed = multiply(ctx, given, Var(place(ctx.backend, {n, n}, used)));
    w = w ? add(ctx, w, fixed) : fixed;
  }
  return w;
}

Var prior(Context& ctx, const Var& logits, const GroupBatch& batch, float temperature) {
  const int64_t n = batch.size();
  Var z = logits;
  if (batch.columns().columns) {
    const auto columns = static_cast<int64_t>(batch.refined_classes().size());
    Values selection(static_cast<size_t>(columns * batch.classes()));
    for (int64_t c = 0; c < columns; ++c) {
      selection[static_cast<size_t>(c * batch.classes() + batch.refined_classes()[static_cast<size_t>(c)])] = 1.0F;
    }
    z = linear(ctx, logits, Var(place(ctx.backend, {columns, batch.classes()}, selection)), Var());
  }
  const Var x = softmax(ctx, scale(ctx, z, 1.0F / temperature));
  Values keep(static_cast<size_t>(x.value().elements())), labels(keep.size());
  const auto columns = static_cast<size_t>(x.shape()[1]);
  for (size_t i = 0; i < static_cast<size_t>(n); ++i) {
    for (size_t c = 0; c < columns; ++c) {
      keep[i * columns + c] = batch.anchors()[i] ? 0.0F : 1.0F;
    }
    labels[i * columns + static_cast<size_t>(batch.targets()[i])] = batch.anchors()[i] ? 1.0F : 0.0F;
  }
  return add(ctx, multiply(ctx, x, Var(place(ctx.backend, x.shape(), keep))),
             Var(place(ctx.backend, x.shape(), labels)));
}

}  // namespace

Var group_loss_composed(Context& ctx, const Var& embeddings, const Var& logits, const GroupBatch& batch,
                        const GroupLossOptions& options, const Var& given) {
  const int64_t n = batch.size();
  const Var w = similarities(ctx, embeddings, options.refinement, given, n);
  Var x = prior(ctx, logits, batch, options.refinement.temperature);
  for (int step = 0; step < options.refinement.steps; ++step) {
    x = divide_by_sums(ctx, multiply(ctx, x, product(ctx, w, x)), x);
  }
  const int64_t counted = options.mean_over == MeanOver::all ? n : std::max<int64_t>(1, n - batch.anchor_count());
  Var loss = negative_log_likelihood(ctx, x, batch.targets(), options.weight / static_cast<float>(counted));
  if (options.cross_entropy_weight == 0.0F) {
    return loss;
  }
  const Var plain = cross_entropy(ctx, logits, batch.labels(), options.smoothing);
  return add(ctx, loss, scale(ctx, plain, options.cross_entropy_weight));
}

}  // namespace gle
