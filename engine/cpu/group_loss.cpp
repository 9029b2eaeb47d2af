// The Group Loss: similarities (group_loss_similarity.cpp), prior, refinement (group_loss_refine.cpp), likelihood.
//   X_0 = softmax(Z / temperature) over the columns that take part; the row of an anchor is its label, and its loss 0
//   L = weight * sum_i -log(x_i + 1e-12), x_i = X_T[i, target_i]
//   dL/dlog x_i = -weight x_i / (x_i + 1e-12);  dZ = (A_0 - X_0 rowsum(A_0)) / temperature, 0 for anchors
// The prior is stored as exp((z - max) / temperature) with the scale 1 / sum. -log x = log(1 + others / own), where
// `others` sums the classes other than the target: exact to the last bits even where x is nearly 1.

#include <cmath>
#include <cstring>

#include "engine/cpu/cpu_backend.h"
#include "engine/cpu/group_loss_kernels.h"
#include "engine/cpu/lanes.h"

namespace gle::cpu::GLE_ISA {

namespace {

constexpr float kFloor = 1e-12F;
constexpr int64_t kRows = 8;  // that a thread takes at a time

struct Prior {
  const Tensor& logits;
  const GroupColumns& batch;
  float temperature;
  RefineTask task;
};

// The parts of a row lie a tile apart, which no prefetcher of the machine foresees.
GLE_INLINE void fetch_ahead(const float* matrix, int64_t at) {
  for (int64_t line = 0; line < kTile; line += 16) {
    __builtin_prefetch(matrix + at + line, 1);
  }
}

// body(place, first column, columns) for the part of a row in each tile; `matrix` is where the place lies, and so is
// `other` unless it is null.
template <class Body>
GLE_INLINE void for_row(const RefineTask& t, int64_t i, const float* matrix, const float* other, const Body& body) {
  constexpr int64_t kAhead = 3 * kTile;
  for (int64_t first = 0; first < t.classes; first += kTile) {
    if (first + kAhead + kTile <= t.classes) {
      fetch_ahead(matrix, tile_row(t, first + kAhead, i));
      if (other) {
        fetch_ahead(other, tile_row(t, first + kAhead, i));
      }
    }
    body(tile_row(t, first, i), first, tile_columns(t, first));
  }
}

void prior_row(const Prior& p, int64_t i) {
  const RefineTask& t = p.task;
  float* y = t.iterate(0);
  const int32_t target = t.target(i);
  t.inverse_sums[i] = 1.0F;
  const float* z = p.logits.data() + t.order[i] * p.logits.pitch();
  const int32_t* chosen = p.batch.columns ? p.batch.columns.ints() : nullptr;
  const vf lowest = set1(-__builtin_inff());
  vf highest = lowest;
  if (chosen) {
    for_row(t, i, y, nullptr, [&](int64_t at, int64_t first, int64_t columns) {
      for (int64_t c = 0; c < columns; ++c) {
        y[at + c] = z[chosen[first + c]];
        highest[0] = highest[0] < y[at + c] ? y[at + c] : highest[0];
      }
    });
  } else {
    for_vectors(t.classes,
                [&](int64_t c, auto lanes) { highest = max(lanes.keep(lanes.load(z + c), lowest), highest); });
  }
  const float top = horizontal_max(highest);
  const vf factor = set1(1.0F / p.temperature);
  vf sum = zero();
  for_row(t, i, y, nullptr, [&](int64_t at, int64_t first, int64_t columns) {
    const float* from = chosen ? y + at : z + first;
    const vi here = set1i(target - static_cast<int32_t>(first));
    for_vectors(columns, [&](int64_t c, auto lanes) {
      vf e = exp((lanes.load(from + c) - top) * factor);
      e = select(lt(e, set1(kNoMass)), zero(), e);
      lanes.store(y + at + c, e);
      sum += select(eqi(lane_numbers() + static_cast<int32_t>(c), here), zero(), lanes.keep(e, zero()));
    });
  });
  const float others = horizontal_sum(sum), total = others + y[tile_entry(t, i, target)];
  t.scales[i] = 1.0F / total;
  t.misses[i] = others / total;
}

// Without the order of the samples, which wants memory.
GLE_INLINE RefineTask refine_task(const GroupColumns& batch, int steps, const GroupSaved& saved) {
  const int64_t all = saved.similarities.rows();
  int64_t refined = 0;
  for (int64_t i = 0; i < all; ++i) {
    refined += batch.anchors.bytes()[i] ? 0 : 1;
  }
  return {.n = refined,
          .all = all,
          .classes = saved.iterates.channels(),
          .steps = steps,
          .order = nullptr,
          .similarities = saved.similarities.data(),
          .targets = batch.targets.ints(),
          .iterates = saved.iterates.data(),
          .scales = saved.scales.data(),
          .inverse_sums = saved.inverse_sums.data(),
          .misses = saved.misses.data()};
}

// The refined samples, then the anchors, in `memory` for as many numbers.
GLE_INLINE const int32_t* sort_samples(const RefineTask& t, const GroupColumns& batch, float* memory) {
  auto* order = reinterpret_cast<int32_t*>(memory);
  int64_t refined = 0, anchors = t.n;
  for (int64_t i = 0; i < t.all; ++i) {
    order[batch.anchors.bytes()[i] ? anchors++ : refined++] = static_cast<int32_t>(i);
  }
  return order;
}

GLE_INLINE SimilarityTask similarity_task(const Tensor& embeddings, const Tensor& given, const GroupRefinement& options,
                                          const GroupSaved& saved) {
  return {.n = saved.similarities.rows(),
          .features = embeddings ? embeddings.channels() : 0,
          .embeddings = embeddings,
          .given = given,
          .options = options,
          .similarities = saved.similarities.data(),
          .rows = saved.rows.data()};
}

GLE_INLINE float own_probability(const RefineTask& t, int64_t i) {
  return t.iterate(t.steps)[tile_entry(t, i, t.target(i))] * t.scales[t.steps * t.n + i];
}

// dz (=) the gradient of a row of logits; a and r are X_0 * dL/dX_0 and its sum, or, without a step, one-hot of value
// r.
void prior_row_back(const Prior& p, int64_t i, const float* a, float r, float* dz, Put mode) {
  const RefineTask& t = p.task;
  const int32_t* chosen = p.batch.columns ? p.batch.columns.ints() : nullptr;
  const vf sum = set1(-r * t.scales[i]), factor = set1(1.0F / p.temperature);
  for_row(t, i, t.iterate(0), t.steps > 0 ? a : nullptr, [&](int64_t at, int64_t first, int64_t columns) {
    const float* y = t.iterate(0) + at;
    for_vectors(columns, [&](int64_t c, auto lanes) {
      const vf before = t.steps > 0 ? lanes.load(a + at + c) : zero();
      const vf d = fma(lanes.load(y + c), sum, before) * factor;
      if (chosen) {
        float one[kLanes];
        store(one, d);
        for (int64_t l = 0; l < kLanes && c + l < columns; ++l) {
          dz[chosen[first + c + l]] += one[l];
        }
      } else {
        lanes.put(dz + first + c, d, mode);
      }
    });
  });
  if (t.steps == 0) {
    dz[chosen ? chosen[t.target(i)] : t.target(i)] += r / p.temperature;
  }
}

}  // namespace

void CpuBackend::group_loss_forward(const Tensor& embeddings, const Tensor& given, const Tensor& logits,
                                    const GroupColumns& batch, const GroupRefinement& options, float weight,
                                    const GroupSaved& saved, const Tensor& loss) {
  const SimilarityTask similarity = similarity_task(embeddings, given, options, saved);
  Prior prior{logits, batch, options.temperature, refine_task(batch, options.steps, saved)};
  RefineTask& task = prior.task;
  const int64_t refining = refine_scratch(task, runtime_.pool.size());
  const int64_t comparing = similarity_scratch(similarity, runtime_.pool.size());
  const Workspace::Lease lease =
      workspace().lease(static_cast<size_t>(task.all + 16 + refining + comparing) * sizeof(float), "group_loss");
  Scratch scratch{lease.floats()};
  task.order = sort_samples(task, batch, scratch.take(task.all));
  // Not one place for both, though they are never used at once: lines would have to change cores between them.
  float* refine_memory = scratch.take(refining);
  float* similarity_memory = scratch.take(comparing);
  runtime_.pool.parallel_for(divide_up(task.all, kRows), [&](int64_t piece, int) {
    for (int64_t i = piece * kRows; i < smaller((piece + 1) * kRows, task.all); ++i) {
      if (embeddings) {
        find_mean(similarity, i);
      }
      if (i < task.n) {
        prior_row(prior, i);
      }
    }
  });
  similarity_forward(runtime_.pool, similarity, similarity_memory);
  if (task.n == 0) {
    loss.data()[0] = 0.0F;
    return;
  }
  refine_forward(runtime_.pool, task, refine_memory);
  double sum = 0.0;
  for (int64_t i = 0; i < task.n; ++i) {
    const float own = own_probability(task, i);
    sum += static_cast<double>(own < 1e-3F ? -logf(own + kFloor) : log1pf(task.misses[i] / own) - kFloor / own);
  }
  loss.data()[0] = static_cast<float>(sum * static_cast<double>(weight));
}

void CpuBackend::group_loss_backward(const Tensor& embeddings, const Tensor& given, const GroupColumns& batch,
                                     const GroupRefinement& options, float weight, const GroupSaved& saved,
                                     const Tensor& dloss, const GradTarget& dembeddings, const GradTarget& dgiven,
                                     const GradTarget& dlogits) {
  const SimilarityTask similarity = similarity_task(embeddings, given, options, saved);
  Prior prior{dlogits.grad, batch, options.temperature, refine_task(batch, options.steps, saved)};
  RefineTask& task = prior.task;
  const int64_t n = task.n, all = task.all, classes = task.classes;
  const int64_t refining = refine_scratch(task, runtime_.pool.size());
  const int64_t comparing = similarity_scratch(similarity, runtime_.pool.size());
  const int64_t kept = 3 * (all + 16) + all * all + 16 + n * classes + 16;
  const Workspace::Lease lease =
      workspace().lease(static_cast<size_t>(refining + comparing + kept) * sizeof(float), "group_loss");
  Scratch scratch{lease.floats()};
  task.order = sort_samples(task, batch, scratch.take(all));
  float* refine_memory = scratch.take(refining);
  float* similarity_memory = scratch.take(comparing);
  float* slopes = scratch.take(n);
  float* sums = scratch.take(n);
  float* dw = scratch.take(all * all);
  float* a = scratch.take(n * classes);

  for (int64_t i = 0; i < n; ++i) {
    const float own = own_probability(task, i);
    slopes[i] = -(dloss.data()[0] * weight) * (own / (own + kFloor));
    sums[i] = slopes[i];
  }
  refine_backward(runtime_.pool, task, slopes, a, sums, dw, refine_memory);
  similarity_backward(similarity, dw, dembeddings, dgiven, similarity_memory);
  const bool add = dlogits.mode == Accumulate::add;
  const int64_t width = dlogits ? dlogits.grad.channels() : 0;
  const auto logits_row = [&](int64_t i) {
    float* dz = dlogits.grad.data() + task.order[i] * dlogits.grad.pitch();
    const bool anchor = i >= n;
    if ((anchor || batch.columns) && !add) {
      std::memset(dz, 0, static_cast<size_t>(width) * sizeof(float));
    }
    if (!anchor) {
      prior_row_back(prior, i, a, sums[i], dz, add ? Put::add : Put::overwrite);
    }
  };
  const int64_t stripes = dembeddings ? stripes_of(similarity) : 0;
  const int64_t pieces = larger(stripes, divide_up(all, kRows));
  runtime_.pool.parallel_for(pieces, [&](int64_t piece, int thread) {
    if (piece < stripes) {
      stripe_backward(similarity, piece, thread, dembeddings, similarity_memory);
    }
    for (int64_t i = all * piece / pieces; dlogits && i < all * (piece + 1) / pieces; ++i) {
      logits_row(i);
    }
  });
}

void CpuBackend::group_loss_iterate(const GroupColumns& batch, const GroupSaved& saved, int step, const Tensor& x) {
  RefineTask t = refine_task(batch, step, saved);
  const Workspace::Lease lease = workspace().lease(static_cast<size_t>(t.all) * sizeof(float), "group_loss");
  t.order = sort_samples(t, batch, lease.floats());
  for (int64_t i = t.n; i < t.all; ++i) {
    float* row = x.data() + t.order[i] * x.pitch();
    std::memset(row, 0, static_cast<size_t>(t.classes) * sizeof(float));
    row[t.target(i)] = 1.0F;
  }
  for (int64_t i = 0; i < t.n; ++i) {
    const vf scale = set1(t.scales[step * t.n + i]);
    for_row(t, i, t.iterate(step), nullptr, [&](int64_t at, int64_t first, int64_t columns) {
      const float* y = t.iterate(step) + at;
      float* to = x.data() + t.order[i] * x.pitch() + first;
      for_vectors(columns, [&](int64_t c, auto lanes) { lanes.store(to + c, lanes.load(y + c) * scale); });
    });
  }
}

}  // namespace gle::cpu::GLE_ISA
