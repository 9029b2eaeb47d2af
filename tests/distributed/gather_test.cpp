// The Group Loss of embeddings and logits that are spread over the ranks, and the other ops of several ranks.
#include <gtest/gtest.h>

#include <cmath>

#include "layers/batch_norm.h"
#include "layers/elementwise.h"
#include "layers/gather.h"
#include "layers/rows.h"
#include "losses/group_loss.h"
#include "tests/distributed/ranks.h"
#include "tests/distributed/training.h"
#include "tests/values.h"

namespace gle::test {
namespace {

constexpr int64_t kRows = 24, kFeatures = 17, kLogits = 11;

std::vector<float> numbers(int64_t count, float phase) {
  std::vector<float> list(static_cast<size_t>(count));
  for (size_t i = 0; i < list.size(); ++i) {
    list[i] = std::sin(phase + static_cast<float>(i) * 1.7F);
  }
  return list;
}

class Gather : public testing::Test {
 protected:
  Comm& comm_ = all_ranks();
  Backend& backend_ = rank_backend();
  const int64_t own_ = kRows / comm_.size();

  // A rank's rows of a matrix that all could have.
  std::vector<float> rows_of(const std::vector<float>& all, int64_t channels) const {
    const auto begin = all.begin() + comm_.rank() * own_ * channels;
    return {begin, begin + own_ * channels};
  }

  // Loss, gradients of embeddings and logits.
  struct Result {
    float loss;
    std::vector<float> dembeddings, dlogits;
  };
  Result group(const GroupLossOptions& options, Comm* comm) {
    Tape tape(backend_);
    Context ctx{.backend = backend_, .tape = &tape, .mode = Mode::training, .seed = 3, .comm = comm};
    const std::vector<float> all_embeddings = numbers(kRows * kFeatures, 0.1F);
    const std::vector<float> all_logits = numbers(kRows * kLogits, 0.7F);
    const int64_t rows = comm ? own_ : kRows;
    const auto leaf = [&](const std::vector<float>& all, int64_t channels) {
      return tape.leaf(tensor_of(backend_, {rows, channels}, comm ? rows_of(all, channels) : all));
    };
    const Var embeddings = leaf(all_embeddings, kFeatures);
    const Var logits = leaf(all_logits, kLogits);
    std::vector<int32_t> labels;
    for (int64_t i = 0; i < kRows; ++i) {
      labels.push_back(static_cast<int32_t>(2 * (i % 4)));
    }
    GroupBatch batch;
    batch.set(ctx, labels, kLogits, options);
    GroupLossOptions of_all = options;
    Var columns = logits;
    if (comm && options.columns == Columns::of_batch) {
      columns = take_columns(ctx, logits, batch.columns().columns);
      batch.narrow();
      of_all.columns = Columns::all;
    }
    const Var loss = group_loss(ctx, all_gather(ctx, embeddings), all_gather(ctx, columns), batch, of_all);
    tape.backward(loss);
    return {read(backend_, loss.value())[0], read(backend_, tape.gradient(embeddings)),
            read(backend_, tape.gradient(logits))};
  }
};

TEST_F(Gather, GroupLossIsExactlyThatOfOneProcess) {
  for (const Columns columns : {Columns::all, Columns::of_batch}) {
    for (const int steps : {0, 1, 3}) {
      GroupLossOptions options;
      options.columns = columns;
      options.refinement.steps = steps;
      const Result one = group(options, nullptr);
      const Result many = group(options, &comm_);
      EXPECT_NEAR(many.loss, one.loss, 1e-6);
      EXPECT_LT(largest_difference(many.dembeddings, rows_of(one.dembeddings, kFeatures)), 1e-6);
      EXPECT_LT(largest_difference(many.dlogits, rows_of(one.dlogits, kLogits)), 1e-6);
    }
  }
}

TEST_F(Gather, BatchNormOfPartsIsThatOfTheWhole) {
  const auto run = [&](Comm* comm) {
    ParameterSet set;
    const BatchNorm layer = make_batch_norm(set, "norm", kFeatures);
    set.allocate(backend_);
    backend_.fill(0.5F, set.values());
    Tape tape(backend_);
    Context ctx{.backend = backend_, .tape = &tape, .mode = Mode::training, .comm = comm};
    const std::vector<float> all = numbers(kRows * kFeatures, 3.0F), cotangent = numbers(kRows * kFeatures, 5.0F);
    const Shape shape{comm ? own_ : kRows, kFeatures};
    const Var x = tape.leaf(tensor_of(backend_, shape, comm ? rows_of(all, kFeatures) : all));
    const Var y = batch_norm(ctx, x, layer, kRelu);
    tape.backward(y, tensor_of(backend_, shape, comm ? rows_of(cotangent, kFeatures) : cotangent));
    if (comm) {
      comm->all_reduce(set.gradients());
    }
    struct {
      std::vector<float> y, dx, gradients, state;
    } const result{read(backend_, y.value()), read(backend_, tape.gradient(x)), read(backend_, set.gradients()),
                   read(backend_, set.state_values())};
    return result;
  };
  const auto one = run(nullptr);
  const auto many = run(&comm_);
  EXPECT_LT(largest_difference(many.y, rows_of(one.y, kFeatures)), 2e-6);
  EXPECT_LT(largest_difference(many.dx, rows_of(one.dx, kFeatures)), 2e-6);
  EXPECT_LT(largest_difference(many.gradients, one.gradients), 1e-5);
  EXPECT_LT(largest_difference(many.state, one.state), 1e-6);
}

TEST_F(Gather, SumsOverRanksPassTheGradientOn) {
  Tape tape(backend_);
  Context ctx{.backend = backend_, .tape = &tape, .mode = Mode::training, .comm = &comm_};
  const Var x = tape.leaf(filled(backend_, {1}, static_cast<float>(comm_.rank() + 1)));
  const Var once = tape.leaf(filled(backend_, {1}, 7));
  const Var sum = add(ctx, sum_over_ranks(ctx, x), count_once(ctx, once));
  tape.backward(sum);
  const auto ranks = static_cast<float>(comm_.size());
  EXPECT_EQ(read(backend_, sum.value())[0], ranks * (ranks + 1) / 2 + 7);
  EXPECT_EQ(read(backend_, tape.gradient(x))[0], 1);
  EXPECT_FLOAT_EQ(read(backend_, tape.gradient(once))[0], 1 / ranks);
}

TEST_F(Gather, DropoutIsThatOfTheWholeBatch) {
  const auto run = [&](Comm* comm) {
    Context ctx{.backend = backend_, .mode = Mode::training, .seed = 11, .comm = comm};
    return read(backend_, dropout(ctx, Var(filled(backend_, {comm ? own_ : kRows, kFeatures}, 1)), 0.5F).value());
  };
  EXPECT_EQ(run(&comm_), rows_of(run(nullptr), kFeatures));
}

}  // namespace
}  // namespace gle::test
