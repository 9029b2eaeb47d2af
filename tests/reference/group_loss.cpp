#include <algorithm>
#include <cmath>
#include <set>

#include "tests/reference/losses.h"
#include "tests/reference/reference.h"

namespace gle::reference {

namespace {

Array transposed(const Array& a) {
  Array t({a.channels(), a.rows()});
  for (int64_t i = 0; i < a.rows(); ++i) {
    for (int64_t j = 0; j < a.channels(); ++j) {
      t(j, i) = a(i, j);
    }
  }
  return t;
}

Array product(const Array& a, const Array& b) { return gemm(a, Transpose::no, b, Transpose::no, {}); }

struct Similarities {
  Array centred, unit, r, w;
  double smallest = 0;
};

bool known(const Array& given, int64_t i, int64_t j) { return given && given(i, j) >= 0; }

Similarities similarities(const Array& embeddings, const Array& given, const GroupRefinement& options, int64_t n) {
  Similarities s;
  s.w = Array({n, n});
  if (embeddings) {
    s.centred = options.similarity == Similarity::correlation ? centre_rows(embeddings) : embeddings;
    s.unit = normalise_rows(s.centred, 0);
    s.r = gemm(s.unit, Transpose::no, s.unit, Transpose::yes, {});
    if (options.negatives == Negatives::shift) {
      s.smallest = INFINITY;
      for (int64_t i = 0; i < n; ++i) {
        for (int64_t j = 0; j < n; ++j) {
          s.smallest = known(given, i, j) ? s.smallest : std::min(s.smallest, s.r(i, j));
        }
      }
      s.smallest = std::isinf(s.smallest) ? 0 : s.smallest;
    }
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        const bool clamp = options.negatives == Negatives::clamp;
        s.w(i, j) = clamp ? std::max(s.r(i, j), 0.0) : s.r(i, j) - s.smallest;
        if (i == j && options.diagonal == Diagonal::zero) {
          s.w(i, j) = 0;
        }
      }
    }
  }
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      s.w(i, j) = known(given, i, j) ? given(i, j) : s.w(i, j);
    }
  }
  return s;
}

Array similarities_backward(const Similarities& s, const Array& given, const GroupRefinement& options,
                            const Array& dw) {
  const int64_t n = s.w.rows();
  Array dr({n, n});
  double sum = 0;
  double ties = 0;
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      const bool fixed = known(given, i, j) || (i == j && options.diagonal == Diagonal::zero);
      const bool clamped = options.negatives == Negatives::clamp && s.r(i, j) <= 0;
      dr(i, j) = fixed || clamped ? 0 : dw(i, j);
      sum += dr(i, j);
      ties += !known(given, i, j) && s.r(i, j) == s.smallest ? 1 : 0;
    }
  }
  for (int64_t i = 0; i < n && options.negatives == Negatives::shift && ties > 0; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      dr(i, j) -= !known(given, i, j) && s.r(i, j) == s.smallest ? sum / ties : 0;
    }
  }
  Array both({n, n});
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      both(i, j) = dr(i, j) + dr(j, i);
    }
  }
  const Array dcentred = normalise_rows_backward(s.centred, 0, product(both, s.unit));
  return options.similarity == Similarity::correlation ? centre_rows(dcentred) : dcentred;
}

}  // namespace

double group_functional(const Array& similarities, const Array& x) {
  const Array g = product(similarities, x);
  double sum = 0;
  for (int64_t i = 0; i < x.size(); ++i) {
    sum += x[i] * g[i];
  }
  return sum;
}

GroupAnswer group_loss(const Array& embeddings, const Array& logits, const Array& given, const GroupCase& c,
                       double dloss) {
  const int64_t n = logits.rows();
  const GroupLossOptions& o = c.options;
  const double temperature = static_cast<double>(o.refinement.temperature);
  const std::set<int> present(c.labels.begin(), c.labels.end());
  std::vector<int64_t> columns;
  for (int64_t k = 0; k < logits.channels(); ++k) {
    if (o.columns == Columns::all || present.count(static_cast<int>(k)) > 0) {
      columns.push_back(k);
    }
  }
  const auto count = static_cast<int64_t>(columns.size());
  const auto target = [&](int64_t i) {
    return std::lower_bound(columns.begin(), columns.end(), c.labels[static_cast<size_t>(i)]) - columns.begin();
  };
  const auto is_anchor = [&](int64_t i) { return c.anchors[static_cast<size_t>(i)] != 0; };

  GroupAnswer answer;
  const Similarities s = similarities(embeddings, given, o.refinement, n);
  answer.similarities = s.w;
  Array z({n, count});
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t k = 0; k < count; ++k) {
      z(i, k) = logits(i, columns[static_cast<size_t>(k)]) / temperature;
    }
  }
  const Array prior = softmax(z);
  Array x = prior;
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t k = 0; k < count && is_anchor(i); ++k) {
      x(i, k) = k == target(i) ? 1 : 0;
    }
  }
  answer.iterates.push_back(x);
  Arrays supports;
  std::vector<std::vector<double>> sums;
  for (int t = 0; t < o.refinement.steps; ++t) {
    supports.push_back(product(s.w, x));
    sums.emplace_back(static_cast<size_t>(n));
    const Array before = x;
    for (int64_t i = 0; i < n; ++i) {
      double& q = sums.back()[static_cast<size_t>(i)];
      for (int64_t k = 0; k < count; ++k) {
        q += before(i, k) * supports.back()(i, k);
      }
      for (int64_t k = 0; k < count && q > 0; ++k) {
        x(i, k) = before(i, k) * supports.back()(i, k) / q;
      }
    }
    answer.iterates.push_back(x);
  }

  const int64_t others = n - std::count(c.anchors.begin(), c.anchors.end(), uint8_t{1});
  const int64_t counted = o.mean_over == MeanOver::all ? n : std::max<int64_t>(1, others);
  const double weight = static_cast<double>(o.weight) / static_cast<double>(counted);
  Array dx({n, count});
  for (int64_t i = 0; i < n; ++i) {
    answer.loss -= weight * std::log(x(i, target(i)) + 1e-12);
    dx(i, target(i)) = -dloss * weight / (x(i, target(i)) + 1e-12);
  }

  Array dw({n, n});
  for (int t = o.refinement.steps - 1; t >= 0; --t) {
    const Array& before = answer.iterates[static_cast<size_t>(t)];
    const Array& after = answer.iterates[static_cast<size_t>(t) + 1];
    Array direct({n, count}), dsupport({n, count});
    for (int64_t i = 0; i < n; ++i) {
      const double q = sums[static_cast<size_t>(t)][static_cast<size_t>(i)];
      double along = 0;
      for (int64_t k = 0; k < count; ++k) {
        along += dx(i, k) * after(i, k);
      }
      for (int64_t k = 0; k < count; ++k) {
        const double ds = q > 0 ? (dx(i, k) - along) / q : 0;
        direct(i, k) = q > 0 ? ds * supports[static_cast<size_t>(t)](i, k) : dx(i, k);
        dsupport(i, k) = ds * before(i, k);
      }
    }
    dw = add(dw, gemm(dsupport, Transpose::no, before, Transpose::yes, {}));
    dx = add(direct, product(transposed(s.w), dsupport));
  }
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t k = 0; k < count && is_anchor(i); ++k) {
      dx(i, k) = 0;
    }
  }
  const Array dz = softmax_backward(prior, dx);
  answer.dlogits = Array(logits.shape);
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t k = 0; k < count; ++k) {
      answer.dlogits(i, columns[static_cast<size_t>(k)]) = dz(i, k) / temperature;
    }
  }
  if (embeddings) {
    answer.dembeddings = similarities_backward(s, given, o.refinement, dw);
  }
  if (given) {
    answer.dgiven = Array({n, n});
    for (int64_t i = 0; i < given.size(); ++i) {
      answer.dgiven[i] = given[i] > 0 ? dw[i] : 0;
    }
  }
  const auto plain = static_cast<double>(o.cross_entropy_weight);
  if (plain != 0) {
    const auto smoothing = static_cast<double>(o.smoothing);
    answer.loss += plain * cross_entropy(logits, c.labels, smoothing)[0];
    answer.dlogits = add(answer.dlogits, cross_entropy_backward(logits, c.labels, smoothing, plain * dloss));
  }
  return answer;
}

}  // namespace gle::reference
