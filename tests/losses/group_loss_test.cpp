// Properties of the refinement on random batches, the presets, the choice of anchors, and what is refused.
#include "losses/group_loss.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "losses/cross_entropy.h"
#include "tests/expect_error.h"
#include "tests/losses_testing.h"
#include "tests/machines.h"

namespace gle::test {

namespace {

Tensor on_device(Backend& b, const Array& values) {
  const std::vector<float> floats(values.values.begin(), values.values.end());
  Tensor tensor = b.new_tensor("test", values.shape);
  b.upload(floats.data(), tensor);
  return tensor;
}

std::vector<float> read(Backend& b, const Tensor& tensor) {
  std::vector<float> values(static_cast<size_t>(tensor.elements()));
  b.download(tensor, values.data());
  return values;
}

struct Outcome {
  GroupLossDetails details;
  std::vector<float> loss, dembeddings, dlogits;
};

Outcome run(Backend& b, const GroupProblem& p) {
  Outcome outcome;
  Tape tape(b);
  Context ctx{.backend = b, .tape = &tape, .mode = Mode::training};
  const Var embeddings = tape.leaf(on_device(b, p.embeddings));
  const Var logits = tape.leaf(on_device(b, p.logits));
  GroupBatch batch;
  p.set(ctx, batch);
  const Var loss = group_loss(ctx, embeddings, logits, batch, p.c.options, Var(), &outcome.details);
  tape.backward(loss);
  outcome.loss = read(b, loss.value());
  outcome.dembeddings = read(b, tape.gradient(embeddings));
  outcome.dlogits = read(b, tape.gradient(logits));
  return outcome;
}

GroupProblem random_problem(Draw& draw) {
  GroupLossOptions o;
  o.refinement = {draw.one_of<Similarity>({Similarity::correlation, Similarity::cosine}),
                  draw.one_of<Negatives>({Negatives::clamp, Negatives::shift}),
                  draw.one_of<Diagonal>({Diagonal::zero, Diagonal::one}),
                  static_cast<float>(draw.one_of<double>({0.5, 1, 10})), draw.small(1, 12)};
  o.mean_over = draw.one_of<MeanOver>({MeanOver::all, MeanOver::non_anchors});
  o.columns = draw.one_of<Columns>({Columns::all, Columns::of_batch});
  return draw_group_problem(draw, draw.integer(2, 20), draw.integer(4, 40), draw.integer(2, 30), o, Given::none);
}

double functional(const GroupLossDetails& d, const std::vector<double>& x, size_t n) {
  Array w({static_cast<int64_t>(n), static_cast<int64_t>(n)},
          std::vector<double>(d.similarities.begin(), d.similarities.end()));
  return reference::group_functional(
      w, Array({static_cast<int64_t>(n), static_cast<int64_t>(x.size() / n)}, std::vector<double>(x)));
}

TEST(GroupLoss, FunctionalNeverDecreasesAndRowsStayProbabilitiesAndAnchorsStayLabels) {
  Draw draw(401);
  for (int round = 0; round < 300; ++round) {
    SCOPED_TRACE(round);
    const GroupProblem p = random_problem(draw);
    const Outcome o = run(any_backend(), p);
    const auto n = p.c.labels.size();
    const size_t columns = o.details.iterates[0].size() / n;
    const double slack = 1e-6 * static_cast<double>(n * n);
    for (size_t t = 0; t < o.details.iterates.size(); ++t) {
      const std::vector<float>& x = o.details.iterates[t];
      for (size_t i = 0; i < n; ++i) {
        double sum = 0;
        for (size_t c = 0; c < columns; ++c) {
          ASSERT_GE(x[i * columns + c], 0.0F);
          sum += static_cast<double>(x[i * columns + c]);
        }
        ASSERT_NEAR(sum, 1, 1e-5);
        if (p.c.anchors[i] != 0) {
          ASSERT_EQ(std::count(x.begin() + static_cast<int64_t>(i * columns),
                               x.begin() + static_cast<int64_t>((i + 1) * columns), 0.0F),
                    static_cast<int64_t>(columns) - 1);
        }
      }
      if (t == 0) {
        continue;
      }
      const std::vector<float>& before = o.details.iterates[t - 1];
      double last = o.details.functional[t - 1];
      for (const double share : {0.25, 0.5, 0.75, 1.0}) {
        std::vector<double> between(x.size());
        for (size_t i = 0; i < x.size(); ++i) {
          between[i] = (1 - share) * static_cast<double>(before[i]) + share * static_cast<double>(x[i]);
        }
        const double here = functional(o.details, between, n);
        ASSERT_GE(here, last - slack) << "step " << t << ", " << share << " of the way";
        last = here;
      }
    }
  }
}

double shortest_centred_row(const Array& rows) {
  const int64_t features = rows.channels();
  double shortest = 1;
  for (int64_t i = 0; i < rows.rows(); ++i) {
    double mean = 0, squares = 0;
    for (int64_t f = 0; f < features; ++f) {
      mean += rows(i, f) / static_cast<double>(features);
    }
    for (int64_t f = 0; f < features; ++f) {
      squares += (rows(i, f) - mean) * (rows(i, f) - mean);
    }
    shortest = std::min(shortest, std::sqrt(squares));
  }
  return std::max(shortest, 1e-3);
}

TEST(GroupLoss, PermutedSamplesAndClassesPermuteTheResult) {
  Draw draw(402);
  for (int round = 0; round < 100; ++round) {
    SCOPED_TRACE(round);
    GroupProblem p = random_problem(draw);
    p.c.options.refinement.steps = draw.small(0, 4);
    const int64_t n = p.logits.rows(), classes = p.logits.channels(), features = p.embeddings.channels();
    std::vector<int64_t> sample(static_cast<size_t>(n)), label(static_cast<size_t>(classes));
    std::iota(sample.begin(), sample.end(), 0);
    std::iota(label.begin(), label.end(), 0);
    for (size_t i = sample.size(); i > 1; --i) {
      std::swap(sample[i - 1], sample[static_cast<size_t>(draw.integer(0, static_cast<int64_t>(i) - 1))]);
    }
    for (size_t i = label.size(); i > 1; --i) {
      std::swap(label[i - 1], label[static_cast<size_t>(draw.integer(0, static_cast<int64_t>(i) - 1))]);
    }
    // Sample i goes to sample[i], class k to label[k].
    GroupProblem q = p;
    for (int64_t i = 0; i < n; ++i) {
      const auto from = static_cast<size_t>(i), to = static_cast<size_t>(sample[from]);
      q.c.labels[to] = static_cast<int>(label[static_cast<size_t>(p.c.labels[from])]);
      q.c.anchors[to] = p.c.anchors[from];
      for (int64_t f = 0; f < features; ++f) {
        q.embeddings(sample[from], f) = p.embeddings(i, f);
      }
      for (int64_t k = 0; k < classes; ++k) {
        q.logits(sample[from], label[static_cast<size_t>(k)]) = p.logits(i, k);
      }
    }
    const Outcome a = run(any_backend(), p), b = run(any_backend(), q);
    ASSERT_NEAR(a.loss[0], b.loss[0], 1e-5 * (1 + std::abs(a.loss[0])));
    // Two centred features leave no direction to move in: the terms cancel, and rounding, the more of it the shorter
    // the row, is all that is left.
    double largest_e = 1e-3 / shortest_centred_row(p.embeddings), largest_z = 1e-3;
    for (const float d : a.dembeddings) {
      largest_e = std::max(largest_e, std::abs(static_cast<double>(d)));
    }
    for (const float d : a.dlogits) {
      largest_z = std::max(largest_z, std::abs(static_cast<double>(d)));
    }
    for (int64_t i = 0; i < n; ++i) {
      const int64_t to = sample[static_cast<size_t>(i)];
      for (int64_t f = 0; f < features; ++f) {
        ASSERT_NEAR(a.dembeddings[static_cast<size_t>(i * features + f)],
                    b.dembeddings[static_cast<size_t>(to * features + f)], 1e-4 * largest_e);
      }
      for (int64_t k = 0; k < classes; ++k) {
        ASSERT_NEAR(a.dlogits[static_cast<size_t>(i * classes + k)],
                    b.dlogits[static_cast<size_t>(to * classes + label[static_cast<size_t>(k)])], 1e-4 * largest_z);
      }
    }
  }
}

TEST(GroupLoss, WithoutAStepIsCrossEntropy) {
  Backend& b = any_backend();
  Draw draw(403);
  GroupLossOptions o;
  o.refinement.steps = 0;
  GroupProblem p = draw_group_problem(draw, 20, 30, 8, o, Given::none);
  p.c.anchors.assign(20, 0);
  const Outcome outcome = run(b, p);
  Tape tape(b);
  Context ctx{.backend = b, .tape = &tape, .mode = Mode::training};
  const Var logits = tape.leaf(on_device(b, p.logits));
  GroupBatch batch;
  p.set(ctx, batch);
  const Var loss = cross_entropy(ctx, logits, batch.labels());
  tape.backward(loss);
  EXPECT_NEAR(outcome.loss[0], read(b, loss.value())[0], 2e-7 * outcome.loss[0]);
  const std::vector<float> dlogits = read(b, tape.gradient(logits));
  for (size_t i = 0; i < dlogits.size(); ++i) {
    EXPECT_NEAR(outcome.dlogits[i], dlogits[i], 2e-8);
  }
  EXPECT_EQ(std::count(outcome.dembeddings.begin(), outcome.dembeddings.end(), 0.0F), 160);
}

TEST(GroupLoss, PresetsDifferWhereThePaperAndItsCodeDo) {
  const GroupLossOptions paper = paper_group_loss(), official = official_group_loss();
  EXPECT_EQ(paper.refinement.diagonal, Diagonal::zero);
  EXPECT_EQ(official.refinement.diagonal, Diagonal::one);
  EXPECT_EQ(paper.anchors, AnchorChoice::random);
  EXPECT_EQ(official.anchors, AnchorChoice::first);
  EXPECT_EQ(paper.mean_over, MeanOver::non_anchors);
  EXPECT_EQ(official.mean_over, MeanOver::all);
  EXPECT_EQ(paper.cross_entropy_weight, 0.0F);
  EXPECT_EQ(official.cross_entropy_weight, 1.0F);
}

TEST(GroupBatch, ChoosesTheFirstOrRandomAnchorsOfEachClass) {
  Context ctx{.backend = any_backend(), .seed = 9};
  const std::vector<int32_t> labels = {4, 1, 4, 1, 4, 7};
  GroupLossOptions o;
  o.anchors_per_class = 2;
  o.anchors = AnchorChoice::first;
  GroupBatch batch;
  batch.set(ctx, labels, 8, o);
  EXPECT_EQ(std::vector<uint8_t>(batch.anchors().begin(), batch.anchors().end()),
            (std::vector<uint8_t>{1, 1, 1, 1, 0, 1}));
  EXPECT_EQ(batch.anchor_count(), 5);

  o.anchors = AnchorChoice::random;
  o.anchors_per_class = 1;
  std::set<std::vector<uint8_t>> seen;
  for (int i = 0; i < 200; ++i) {
    batch.set(ctx, labels, 8, o);
    const std::vector<uint8_t> a(batch.anchors().begin(), batch.anchors().end());
    EXPECT_EQ(a[0] + a[2] + a[4], 1);
    EXPECT_EQ(a[1] + a[3], 1);
    EXPECT_EQ(a[5], 1);
    seen.insert(a);
  }
  EXPECT_EQ(seen.size(), 6U);
}

TEST(GroupLoss, RefusesWhatDoesNotFit) {
  Backend& b = any_backend();
  Context ctx{.backend = b};
  const std::vector<int32_t> labels = {0, 1, 2};
  GroupLossOptions o;
  GroupBatch batch;
  EXPECT_ERROR(batch.set(ctx, std::vector<int32_t>{0, 5}, 5, o), ErrorCode::data, {"label 5", "sample 1", "5 classes"});
  EXPECT_ERROR(batch.set(ctx, labels, 5, o, std::vector<int32_t>{1}), ErrorCode::usage, {"anchors were given"});
  o.anchors = AnchorChoice::given;
  EXPECT_ERROR(batch.set(ctx, labels, 5, o, std::vector<int32_t>{3}), ErrorCode::usage, {"anchor 3", "3 samples"});
  batch.set(ctx, labels, 5, o);
  const Var e(on_device(b, Array({3, 4}, 1.0))), z(on_device(b, Array({3, 5}, 1.0)));
  EXPECT_ERROR(group_loss(ctx, e, Var(on_device(b, Array({3, 4}, 1.0))), batch, o), ErrorCode::usage,
               {"[3,5]", "[3,4]"});
  EXPECT_ERROR(group_loss(ctx, Var(on_device(b, Array({2, 4}, 1.0))), z, batch, o), ErrorCode::usage,
               {"[3,D]", "[2,4]"});
  EXPECT_ERROR(group_loss(ctx, Var(), z, batch, o), ErrorCode::usage, {"embeddings or given"});
  EXPECT_ERROR(group_loss(ctx, e, z, batch, o, Var(on_device(b, Array({3, 2}, 1.0)))), ErrorCode::usage, {"[3,3]"});
  GroupLossOptions cold = o;
  cold.refinement.temperature = 0;
  EXPECT_ERROR(group_loss(ctx, e, z, batch, cold), ErrorCode::usage, {"temperature", "0"});
  GroupLossOptions other = o;
  other.columns = Columns::of_batch;
  EXPECT_ERROR(group_loss(ctx, e, z, batch, other), ErrorCode::usage, {"other columns"});
  GroupBatch narrow;
  narrow.set(ctx, labels, 5, other);
  narrow.narrow();
  o.cross_entropy_weight = 1;
  EXPECT_ERROR(group_loss(ctx, e, Var(on_device(b, Array({3, 3}, 1.0))), narrow, o), ErrorCode::usage,
               {"all classes", "narrowed"});
}

TEST(GroupLoss, EmbeddingsMayBeTheLogitsThemselves) {
  Backend& b = any_backend();
  Draw draw(404);
  GroupLossOptions o;
  o.cross_entropy_weight = 1;
  const GroupProblem p = draw_group_problem(draw, 20, 30, 30, o, Given::none);
  Tape tape(b);
  Context ctx{.backend = b, .tape = &tape, .mode = Mode::training};
  GroupBatch batch;
  p.set(ctx, batch);
  const Tensor value = on_device(b, p.logits);
  const Var both = tape.leaf(value), embeddings = tape.leaf(value), logits = tape.leaf(on_device(b, p.logits));
  tape.backward(group_loss(ctx, both, both, batch, p.c.options));
  const std::vector<float> together = read(b, tape.gradient(both));
  tape.backward(group_loss(ctx, embeddings, logits, batch, p.c.options));
  const std::vector<float> first = read(b, tape.gradient(embeddings)), second = read(b, tape.gradient(logits));
  for (size_t i = 0; i < together.size(); ++i) {
    EXPECT_NEAR(together[i], first[i] + second[i], 1e-7);
  }
}

}  // namespace

}  // namespace gle::test
