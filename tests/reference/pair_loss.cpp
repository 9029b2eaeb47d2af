// Each loss as a list of terms, each a value with its derivatives by entries of s: written from the formulas in
// engine/options.h, one term at a time.
#include <algorithm>
#include <cmath>

#include "tests/reference/losses.h"

namespace gle::reference {

namespace {

struct Pair {
  int64_t i, j;
};

class Terms {
 public:
  Terms(const Array& s, const std::vector<int>& rows, const std::vector<int>& columns, Pairs pairs)
      : s_(s), rows_(rows), columns_(columns), pairs_(pairs), answer_{0, Array(s.shape)} {}

  int64_t rows() const { return s_.rows(); }
  int64_t columns() const { return s_.channels(); }
  double s(Pair p) const { return s_(p.i, p.j); }
  bool same(Pair p) const { return rows_[static_cast<size_t>(p.i)] == columns_[static_cast<size_t>(p.j)]; }
  std::vector<Pair> positives(int64_t i) const { return partners(i, true); }
  std::vector<Pair> negatives(int64_t i) const { return partners(i, false); }
  double d(Pair p) const { return std::sqrt(std::max(0.0, s_(p.i, p.i) + s_(p.j, p.j) - 2 * s_(p.i, p.j))); }

  void add(double value) { answer_.loss += value; }
  void by_s(Pair p, double slope) { answer_.ds(p.i, p.j) += slope; }
  void by_d(Pair p, double slope) {
    const double distance = d(p);
    if (distance >= 1e-6) {
      answer_.ds(p.i, p.j) -= slope / distance;
      answer_.ds(p.i, p.i) += slope / (2 * distance);
      answer_.ds(p.j, p.j) += slope / (2 * distance);
    }
  }
  PairAnswer answer() const { return answer_; }

 private:
  std::vector<Pair> partners(int64_t i, bool positive) const {
    std::vector<Pair> result;
    for (int64_t j = 0; j < columns(); ++j) {
      if (same({i, j}) == positive && (pairs_ == Pairs::with_proxies || i != j)) {
        result.push_back({i, j});
      }
    }
    return result;
  }

  const Array& s_;
  const std::vector<int>&rows_, &columns_;
  Pairs pairs_;
  PairAnswer answer_;
};

struct Triplet {
  Pair positive, negative;
};

void triplets(Terms& t, const PairLossOptions& o) {
  const auto margin = static_cast<double>(o.margin);
  const auto closer = [&](Pair a, Pair b) { return t.d(a) < t.d(b); };
  const auto value = [&](const Triplet& x) { return margin + t.d(x.positive) - t.d(x.negative); };
  std::vector<Triplet> all;
  for (int64_t i = 0; i < t.rows(); ++i) {
    const std::vector<Pair> positives = t.positives(i), negatives = t.negatives(i);
    if (positives.empty() || negatives.empty()) {
      continue;
    }
    const Pair farthest = *std::max_element(negatives.begin(), negatives.end(), closer);
    if (o.kind == PairLossKind::triplet_hard) {
      all.push_back({*std::max_element(positives.begin(), positives.end(), closer),
                     *std::min_element(negatives.begin(), negatives.end(), closer)});
      continue;
    }
    for (const Pair p : positives) {
      if (o.kind == PairLossKind::triplet_all) {
        for (const Pair q : negatives) {
          if (value({p, q}) > 0) {
            all.push_back({p, q});
          }
        }
      } else {
        std::vector<Pair> beyond;
        std::copy_if(negatives.begin(), negatives.end(), std::back_inserter(beyond),
                     [&](Pair q) { return t.d(q) > t.d(p); });
        all.push_back({p, beyond.empty() ? farthest : *std::min_element(beyond.begin(), beyond.end(), closer)});
      }
    }
  }
  const double weight = all.empty() ? 0 : 1.0 / static_cast<double>(all.size());
  for (const Triplet& x : all) {
    if (value(x) > 0) {
      t.add(weight * value(x));
      t.by_d(x.positive, weight);
      t.by_d(x.negative, -weight);
    }
  }
}

// weight * log(one + sum of e^(scale (s - base))), one 0 or 1.
void log_sum(Terms& t, const std::vector<Pair>& pairs, double one, double scale, double base, double weight) {
  double sum = one;
  for (const Pair p : pairs) {
    sum += std::exp(scale * (t.s(p) - base));
  }
  if (sum > 0) {
    t.add(weight * std::log(sum));
  }
  for (const Pair p : pairs) {
    t.by_s(p, weight * scale * std::exp(scale * (t.s(p) - base)) / sum);
  }
}

}  // namespace

PairAnswer pair_loss(const Array& s, const std::vector<int>& row_labels, const std::vector<int>& column_labels,
                     Pairs pairs, const PairLossOptions& o) {
  Terms t(s, row_labels, column_labels, pairs);
  const auto margin = static_cast<double>(o.margin), scale = static_cast<double>(o.scale);
  const auto negative_scale = static_cast<double>(o.negative_scale), base = static_cast<double>(o.base);
  const auto n = static_cast<double>(t.rows());
  const auto smaller = [&](Pair a, Pair b) { return t.s(a) < t.s(b); };
  double with_positives = 0;
  for (int64_t i = 0; i < t.rows(); ++i) {
    with_positives += t.positives(i).empty() ? 0 : 1;
  }
  switch (o.kind) {
    case PairLossKind::triplet_hard:
    case PairLossKind::triplet_semihard:
    case PairLossKind::triplet_all:
      triplets(t, o);
      return t.answer();
    default:
      break;
  }
  for (int64_t i = 0; i < t.rows(); ++i) {
    const std::vector<Pair> positives = t.positives(i), negatives = t.negatives(i);
    if (o.kind == PairLossKind::contrastive) {
      const double weight = 1 / (n * (n - 1));  // each pair is met twice
      for (const Pair p : positives) {
        t.add(weight * t.d(p) * t.d(p) / 2);
        t.by_d(p, weight * t.d(p));
      }
      for (const Pair p : negatives) {
        const double gap = std::max(0.0, margin - t.d(p));
        t.add(weight * gap * gap / 2);
        t.by_d(p, -weight * gap);
      }
    } else if (o.kind == PairLossKind::proxy_nca) {
      log_sum(t, negatives, 0, scale, 0, 1 / n);
      for (const Pair p : positives) {
        t.add(-scale * t.s(p) / n);
        t.by_s(p, -scale / n);
      }
    } else if (o.kind == PairLossKind::multi_similarity) {
      std::vector<Pair> hard_positives, hard_negatives;
      if (!positives.empty() && !negatives.empty()) {
        const double lowest = t.s(*std::min_element(positives.begin(), positives.end(), smaller));
        const double highest = t.s(*std::max_element(negatives.begin(), negatives.end(), smaller));
        std::copy_if(positives.begin(), positives.end(), std::back_inserter(hard_positives),
                     [&](Pair p) { return t.s(p) - margin < highest; });
        std::copy_if(negatives.begin(), negatives.end(), std::back_inserter(hard_negatives),
                     [&](Pair p) { return t.s(p) + margin > lowest; });
      }
      log_sum(t, hard_positives, 1, -scale, base, 1 / (n * scale));
      log_sum(t, hard_negatives, 1, negative_scale, base, 1 / (n * negative_scale));
    } else {
      log_sum(t, positives, 1, -scale, margin, positives.empty() ? 0 : 1 / with_positives);
      log_sum(t, negatives, 1, scale, -margin, 1 / n);
    }
  }
  return t.answer();
}

}  // namespace gle::reference
