// Losses of pairs, with their gradient: options.h has the formulas. A row at a time in doubles, rows in parallel where
// a row writes no other; with a batch of samples the whole matrix is small.
//   d = sqrt(s_ii + s_jj - 2 s_ij):  dL/ds_ij -= (dL/dd) / d,  dL/ds_ii and dL/ds_jj += (dL/dd) / 2d

#include <cmath>
#include <cstring>

#include "engine/cpu/cpu_backend.h"
#include "engine/cpu/partition.h"

namespace gle::cpu::GLE_ISA {

namespace {

constexpr double kNear = 1e-6;
constexpr int64_t kExpCost = 24;  // of a number, in floats of a plain pass over memory

struct Task {
  const Tensor& s;
  const int32_t* row_labels;
  const int32_t* column_labels;
  Pairs pairs;
  const PairLossOptions& options;
  const Tensor& ds;

  GLE_INLINE int64_t rows() const { return s.rows(); }
  GLE_INLINE int64_t columns() const { return s.channels(); }
  GLE_INLINE double at(int64_t i, int64_t j) const { return static_cast<double>(s.data()[i * s.pitch() + j]); }
  GLE_INLINE void add(int64_t i, int64_t j, double d) const {
    float* to = ds.data() + i * ds.pitch() + j;
    *to = static_cast<float>(static_cast<double>(*to) + d);
  }
  GLE_INLINE bool paired(int64_t i, int64_t j) const { return pairs == Pairs::with_proxies || i != j; }
  GLE_INLINE bool positive(int64_t i, int64_t j) const { return paired(i, j) && row_labels[i] == column_labels[j]; }
  GLE_INLINE bool negative(int64_t i, int64_t j) const { return row_labels[i] != column_labels[j]; }
  GLE_INLINE double distance(int64_t i, int64_t j) const {
    const double square = at(i, i) + at(j, j) - 2 * at(i, j);
    return square <= 0 ? 0 : std::sqrt(square);
  }
  GLE_INLINE void add_distance(int64_t i, int64_t j, double dd) const {
    const double d = distance(i, j);
    if (d < kNear || dd == 0) {
      return;
    }
    add(i, j, -dd / d);
    add(i, i, dd / (2 * d));
    add(j, j, dd / (2 * d));
  }
};

// log(1 + sum over j of e^x(j)) of those with take(j); weigh(j, share) gets the derivative by each x.
template <class Take, class Exponent, class Weigh>
GLE_INLINE double log_one_plus_sum(int64_t columns, double one, const Take& take, const Exponent& x,
                                   const Weigh& weigh) {
  double top = one > 0 ? 0 : -HUGE_VAL;
  for (int64_t j = 0; j < columns; ++j) {
    top = take(j) && x(j) > top ? x(j) : top;
  }
  if (top == -HUGE_VAL) {
    return 0;
  }
  double sum = one * std::exp(-top);
  for (int64_t j = 0; j < columns; ++j) {
    sum += take(j) ? std::exp(x(j) - top) : 0;
  }
  for (int64_t j = 0; j < columns; ++j) {
    if (take(j)) {
      weigh(j, std::exp(x(j) - top) / sum);
    }
  }
  return top + std::log(sum);
}

double contrastive(const Task& t) {
  const int64_t n = t.rows();
  const double weight = n > 1 ? 1.0 / (static_cast<double>(n) * static_cast<double>(n - 1)) : 0;  // met twice
  double loss = 0;
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      if (i == j) {
        continue;
      }
      const double d = t.distance(i, j);
      const double gap = static_cast<double>(t.options.margin) - d;
      if (t.positive(i, j)) {
        loss += weight * d * d / 2;
        t.add_distance(i, j, weight * d);
      } else if (!(gap <= 0)) {  // NaN too, so that it shows in the loss
        loss += weight * gap * gap / 2;
        t.add_distance(i, j, -weight * gap);
      }
    }
  }
  return loss;
}

// The column among those with take(j) of the largest sign * distance from row i, or -1.
template <class Take>
GLE_INLINE int64_t extreme(const Task& t, int64_t i, double sign, const Take& take) {
  int64_t best = -1;
  for (int64_t j = 0; j < t.columns(); ++j) {
    if (take(j) && (best < 0 || sign * t.distance(i, j) > sign * t.distance(i, best))) {
      best = j;
    }
  }
  return best;
}

GLE_INLINE double hinge(const Task& t, int64_t i, int64_t near, int64_t far, double weight) {
  const double value = static_cast<double>(t.options.margin) + t.distance(i, near) - t.distance(i, far);
  if (value <= 0) {
    return 0;
  }
  t.add_distance(i, near, weight);
  t.add_distance(i, far, -weight);
  return weight * value;
}

// terms(visit) calls visit(i, positive, negative) for every triplet that counts.
template <class Terms, class Counts>
GLE_INLINE double mean_hinge(const Task& t, const Terms& terms, const Counts& counts) {
  int64_t count = 0;
  terms([&](int64_t i, int64_t p, int64_t n) { count += counts(i, p, n) ? 1 : 0; });
  double loss = 0;
  if (count > 0) {
    terms([&](int64_t i, int64_t p, int64_t n) { loss += hinge(t, i, p, n, 1.0 / static_cast<double>(count)); });
  }
  return loss;
}

double triplet(const Task& t) {
  const int64_t n = t.rows();
  const auto positives = [&](int64_t i) { return [&t, i](int64_t j) { return t.positive(i, j); }; };
  const auto negatives = [&](int64_t i) { return [&t, i](int64_t j) { return t.negative(i, j); }; };
  const auto always = [](int64_t, int64_t, int64_t) { return true; };
  if (t.options.kind == PairLossKind::triplet_hard) {
    return mean_hinge(
        t,
        [&](const auto& visit) {
          for (int64_t i = 0; i < n; ++i) {
            const int64_t far = extreme(t, i, 1, positives(i)), near = extreme(t, i, -1, negatives(i));
            if (far >= 0 && near >= 0) {
              visit(i, far, near);
            }
          }
        },
        always);
  }
  const auto for_pairs = [&](const auto& body) {
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t p = 0; p < n; ++p) {
        if (t.positive(i, p)) {
          body(i, p);
        }
      }
    }
  };
  if (t.options.kind == PairLossKind::triplet_semihard) {
    return mean_hinge(
        t,
        [&](const auto& visit) {
          for_pairs([&](int64_t i, int64_t p) {
            const double d = t.distance(i, p);
            int64_t other = extreme(t, i, -1, [&](int64_t j) { return t.negative(i, j) && t.distance(i, j) > d; });
            other = other >= 0 ? other : extreme(t, i, 1, negatives(i));
            if (other >= 0) {
              visit(i, p, other);
            }
          });
        },
        always);
  }
  return mean_hinge(
      t,
      [&](const auto& visit) {
        for_pairs([&](int64_t i, int64_t p) {
          for (int64_t j = 0; j < n; ++j) {
            if (t.negative(i, j)) {
              visit(i, p, j);
            }
          }
        });
      },
      [&](int64_t i, int64_t p, int64_t j) {
        return !(static_cast<double>(t.options.margin) + t.distance(i, p) - t.distance(i, j) <= 0);
      });
}

double proxy_nca_row(const Task& t, int64_t i, double weight) {
  const auto scale = static_cast<double>(t.options.scale);
  double loss = weight * log_one_plus_sum(
                             t.columns(), 0, [&](int64_t j) { return t.negative(i, j); },
                             [&](int64_t j) { return scale * t.at(i, j); },
                             [&](int64_t j, double share) { t.add(i, j, weight * scale * share); });
  for (int64_t j = 0; j < t.columns(); ++j) {
    if (t.positive(i, j)) {
      loss -= weight * scale * t.at(i, j);
      t.add(i, j, -weight * scale);
    }
  }
  return loss;
}

double multi_similarity_row(const Task& t, int64_t i, double weight) {
  const auto margin = static_cast<double>(t.options.margin), base = static_cast<double>(t.options.base);
  const auto scale = static_cast<double>(t.options.scale), other = static_cast<double>(t.options.negative_scale);
  double smallest = HUGE_VAL, largest = -HUGE_VAL;
  for (int64_t j = 0; j < t.columns(); ++j) {
    smallest = t.positive(i, j) && t.at(i, j) < smallest ? t.at(i, j) : smallest;
    largest = t.negative(i, j) && t.at(i, j) > largest ? t.at(i, j) : largest;
  }
  const double pull = log_one_plus_sum(
      t.columns(), 1, [&](int64_t j) { return t.positive(i, j) && t.at(i, j) - margin < largest; },
      [&](int64_t j) { return -scale * (t.at(i, j) - base); },
      [&](int64_t j, double share) { t.add(i, j, -weight * share); });
  const double push = log_one_plus_sum(
      t.columns(), 1, [&](int64_t j) { return t.negative(i, j) && t.at(i, j) + margin > smallest; },
      [&](int64_t j) { return other * (t.at(i, j) - base); },
      [&](int64_t j, double share) { t.add(i, j, weight * share); });
  return weight * (pull / scale + push / other);
}

double proxy_anchor_row(const Task& t, int64_t i, double weight, double positive_weight) {
  const auto margin = static_cast<double>(t.options.margin), scale = static_cast<double>(t.options.scale);
  const double pull = log_one_plus_sum(
      t.columns(), 1, [&](int64_t j) { return t.positive(i, j); },
      [&](int64_t j) { return -scale * (t.at(i, j) - margin); },
      [&](int64_t j, double share) { t.add(i, j, -positive_weight * scale * share); });
  const double push = log_one_plus_sum(
      t.columns(), 1, [&](int64_t j) { return t.negative(i, j); },
      [&](int64_t j) { return scale * (t.at(i, j) + margin); },
      [&](int64_t j, double share) { t.add(i, j, weight * scale * share); });
  return positive_weight * pull + weight * push;
}

GLE_INLINE int64_t rows_with_positives(const Task& t) {
  int64_t count = 0;
  for (int64_t i = 0; i < t.rows(); ++i) {
    int64_t j = 0;
    while (j < t.columns() && !t.positive(i, j)) {
      ++j;
    }
    count += j < t.columns() ? 1 : 0;
  }
  return count;
}

}  // namespace

void CpuBackend::pair_loss(const Tensor& s, const Tensor& row_labels, const Tensor& column_labels, Pairs pairs,
                           const PairLossOptions& options, const Tensor& loss, const Tensor& ds) {
  const Task t{s, row_labels.ints(), column_labels.ints(), pairs, options, ds};
  for (int64_t i = 0; i < t.rows(); ++i) {
    std::memset(ds.data() + i * ds.pitch(), 0, static_cast<size_t>(t.columns()) * sizeof(float));
  }
  const auto rowwise = [&](const auto& row) {
    const Workspace::Lease lease = workspace().lease(static_cast<size_t>(t.rows()) * sizeof(double), "pair_loss");
    auto* losses = reinterpret_cast<double*>(lease.data());
    for_row_ranges(runtime_.pool, cut_rows(t.rows(), kExpCost * t.columns()), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        losses[i] = row(i);
      }
    });
    double sum = 0;
    for (int64_t i = 0; i < t.rows(); ++i) {
      sum += losses[i];
    }
    return sum;
  };
  const double weight = 1.0 / static_cast<double>(t.rows());
  double value = 0;
  switch (options.kind) {
    case PairLossKind::contrastive:
      value = contrastive(t);
      break;
    case PairLossKind::triplet_hard:
    case PairLossKind::triplet_semihard:
    case PairLossKind::triplet_all:
      value = triplet(t);
      break;
    case PairLossKind::proxy_nca:
      value = rowwise([&](int64_t i) { return proxy_nca_row(t, i, weight); });
      break;
    case PairLossKind::multi_similarity:
      value = rowwise([&](int64_t i) { return multi_similarity_row(t, i, weight); });
      break;
    case PairLossKind::proxy_anchor: {
      const int64_t count = rows_with_positives(t);
      const double positive_weight = count > 0 ? 1.0 / static_cast<double>(count) : 0;
      value = rowwise([&](int64_t i) { return proxy_anchor_row(t, i, weight, positive_weight); });
      break;
    }
  }
  loss.data()[0] = static_cast<float>(value);
}

}  // namespace gle::cpu::GLE_ISA
