// The Group Loss: similarities (group_loss_similarity.cu), prior, refinement (group_loss_refine.cu), likelihood.
//   X_0 = softmax(Z / temperature) over the columns that take part; the row of an anchor is its label
//   L = weight * sum_i -log(x_i + 1e-12), x_i = X_T[i, target_i]
//   dL/dlog x_i = -weight x_i / (x_i + 1e-12);  dZ = (A_0 - X_0 rowsum(A_0)) / temperature, 0 for anchors
// The prior is stored as exp((z - max) / temperature) with the scale 1 / sum. -log x = log(1 + others / own), where
// `others` sums the classes other than the target: exact to the last bits even where x is nearly 1.
//
// Bytes that must move besides those of the parts: forward 8 n C, two launches; backward 8 n C + 4 n (all classes), one
// launch; group_loss_iterate 8 n C, one launch. A batch of the usual size takes 6 launches forward (clamped, T > 0) and
// 4 backward.

#include <cmath>

#include "engine/cuda/cuda_backend.h"
#include "engine/cuda/group_loss_kernels.h"
#include "engine/cuda/map.h"
#include "engine/cuda/row_groups.h"
#include "engine/cuda/total.h"

namespace gle::cuda {

namespace {

// The samples' rows of logits, or of their gradient.
struct Columns {
  const uint8_t* anchors;
  const int32_t* chosen;  // null: all

  explicit Columns(const GroupColumns& batch)
      : anchors(batch.anchors.bytes()), chosen(batch.columns ? batch.columns.ints() : nullptr) {}
  __device__ int64_t operator[](int64_t c) const { return chosen ? chosen[c] : c; }
};

struct Prior {
  RefineTask t;
  In logits;
  Columns columns;
  float temperature;

  template <int kWidth, class Group>
  __device__ void row(const Group& group, int64_t i) const {
    float* y = t.iterate(0) + i * t.classes;
    const int32_t target = t.targets[i];
    const bool anchor = columns.anchors[i] != 0;
    float top = -HUGE_VALF;
    for (int64_t c = group.lane; c < t.classes; c += Group::threads) {
      const float z = logits.at(i, columns[c]);
      top = top < z ? z : top;
    }
    top = group.max(top);
    const float factor = 1.0F / temperature;
    float others = 0.0F, own = 0.0F;
    for (int64_t c = group.lane; c < t.classes; c += Group::threads) {
      float e = expf((logits.at(i, columns[c]) - top) * factor);
      e = e < kNoMass ? 0.0F : e;
      if (anchor) {
        e = c == target ? 1.0F : 0.0F;
      }
      y[c] = e;
      (c == target ? own : others) += e;
    }
    others = group.sum(others);
    const float total = others + group.sum(own);
    if (group.lane == 0) {
      t.inverse_sums[i] = 1.0F;
      t.scales[i] = 1.0F / total;
      t.misses[i] = others / total;
    }
  }
};

struct Likelihood {
  RefineTask t;

  __device__ double operator()(int64_t i) const {
    const float own = t.own_probability(i);
    return static_cast<double>(own < 1e-3F ? -logf(own + kFloor) : log1pf(t.misses[i] / own) - kFloor / own);
  }
};

struct PriorBack {
  RefineTask t;
  Columns columns;
  float temperature;
  const float* a;  // X_0 * dL/dX_0, unless there is no step
  const float* dloss;
  float weight;
  int64_t all;
  Out dlogits;

  template <int kWidth, class Group>
  __device__ void row(const Group& group, int64_t i) const {
    const bool anchor = columns.anchors[i] != 0;
    if (dlogits.mode == Accumulate::overwrite && (anchor || columns.chosen)) {
      for (int64_t c = group.lane; c < all; c += Group::threads) {
        dlogits.put<1>(i, c, {{0.0F}});
      }
      group.sync();
    }
    if (anchor) {
      return;
    }
    const float* y = t.iterate(0) + i * t.classes;
    const float* own = a + i * t.classes;
    float r = 0.0F;
    if (t.steps > 0) {
      for (int64_t c = group.lane; c < t.classes; c += Group::threads) {
        r += own[c];
      }
      r = group.sum(r);
    } else {
      r = slope_of(t, i, *dloss * weight);
    }
    const float minus = -r * t.scales[i], factor = 1.0F / temperature;
    for (int64_t c = group.lane; c < t.classes; c += Group::threads) {
      const float before = t.steps > 0 ? own[c] : c == t.targets[i] ? r : 0.0F;
      dlogits.put<1>(i, columns[c], {{fmaf(y[c], minus, before) * factor}});
    }
  }
};

struct Iterate {
  In y;
  const float* scales;

  template <int kWidth>
  __device__ auto at(int64_t column) const {
    return [this, column](int64_t row) {
      const auto v = y.load<kWidth>(row, column);
      const float scale = scales[row];
      return each<kWidth>([&](int i) { return v.at[i] * scale; });
    };
  }
};

RefineTask refine_task(const int32_t* targets, int steps, const GroupSaved& saved) {
  return {.n = saved.similarities.rows(),
          .classes = saved.iterates.channels(),
          .steps = steps,
          .similarities = saved.similarities.data(),
          .targets = targets,
          .iterates = saved.iterates.data(),
          .scales = saved.scales.data(),
          .inverse_sums = saved.inverse_sums.data(),
          .misses = saved.misses.data()};
}

SimilarityTask similarity_task(const Tensor& embeddings, const Tensor& given, const GroupRefinement& options,
                               const GroupSaved& saved) {
  return {.n = saved.similarities.rows(),
          .features = embeddings ? embeddings.channels() : 0,
          .embeddings = embeddings,
          .given = given,
          .similarity = options.similarity,
          .negatives = options.negatives,
          .diagonal = options.diagonal,
          .similarities = saved.similarities.data(),
          .rows = saved.rows.data()};
}

}  // namespace

void CudaBackend::group_loss_forward(const Tensor& embeddings, const Tensor& given, const Tensor& logits,
                                     const GroupColumns& batch, const GroupRefinement& options, float weight,
                                     const GroupSaved& saved, const Tensor& loss) {
  const SimilarityTask similarity = similarity_task(embeddings, given, options, saved);
  const RefineTask task = refine_task(batch.targets.ints(), options.steps, saved);
  const Workspace::Lease lease =
      workspace().lease(static_cast<size_t>(similarity_scratch(similarity)) * sizeof(float), "group_loss");
  const Launch where = at("group_loss_forward");
  similarity_forward(where, similarity, lease.floats());
  for_rows_by_one(where, Prior{task, logits, Columns(batch), options.temperature}, task.n, task.classes);
  refine_forward(where, task);
  sum(where, Likelihood{task}, task.n, static_cast<double>(weight), loss.data());
}

void CudaBackend::group_loss_backward(const Tensor& embeddings, const Tensor& given, const GroupColumns& batch,
                                      const GroupRefinement& options, float weight, const GroupSaved& saved,
                                      const Tensor& dloss, const GradTarget& dembeddings, const GradTarget& dgiven,
                                      const GradTarget& dlogits) {
  const SimilarityTask similarity = similarity_task(embeddings, given, options, saved);
  const RefineTask task = refine_task(batch.targets.ints(), options.steps, saved);
  const int64_t n = task.n;
  const int64_t refining = refine_backward_scratch(task), comparing = similarity_scratch(similarity);
  const int64_t parts = refining > comparing ? refining : comparing;
  const Workspace::Lease lease =
      workspace().lease(static_cast<size_t>(parts + n * n + n * task.classes + 16) * sizeof(float), "group_loss");
  Scratch scratch{lease.floats()};
  const bool similarities = dembeddings || dgiven;
  const RefineGradient gradient{.dloss = dloss.data(),
                                .weight = weight,
                                .a = scratch.take(n * task.classes),
                                .dw = similarities ? scratch.take(n * n) : nullptr};
  float* rest = scratch.take(parts);
  const Launch where = at("group_loss_backward");
  refine_backward(where, task, gradient, rest);
  if (similarities) {
    similarity_backward(where, similarity, gradient.dw, dembeddings, dgiven, rest);
  }
  if (dlogits) {
    for_rows_by_one(where,
                    PriorBack{task, Columns(batch), options.temperature, gradient.a, dloss.data(), weight,
                              dlogits.grad.channels(), dlogits},
                    n, dlogits.grad.channels());
  }
}

void CudaBackend::group_loss_iterate(const GroupColumns&, const GroupSaved& saved, int step, const Tensor& x) {
  const RefineTask t = refine_task(nullptr, step, saved);
  const float* y = t.iterates + step * t.n * t.classes;
  map(at("group_loss_iterate"), false, Iterate{In(y, t.classes), t.scales + step * t.n}, t.n, t.classes, x);
}

}  // namespace gle::cuda
