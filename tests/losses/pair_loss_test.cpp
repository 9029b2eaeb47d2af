// The losses of pairs against PyTorch, and through the registry, by name.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "losses/contrastive_loss.h"
#include "losses/registry.h"
#include "losses/triplet_loss.h"
#include "models/files/npy.h"
#include "tests/array.h"
#include "tests/expect_error.h"
#include "tests/machines.h"

namespace gle::test {

namespace {

struct Fixture {
  Npz file = Npz::read(GLE_FIXTURE);
  std::vector<int32_t> labels;

  Fixture() {
    for (const int64_t label : file.at("labels").integers()) {
      labels.push_back(static_cast<int32_t>(label));
    }
  }
  Tensor load(Backend& b, const char* name) const {
    const NpyArray& array = file.at(name);
    Tensor tensor = b.new_tensor("test", {array.shape[0], array.shape[1]});
    b.upload(array.floats().data(), tensor);
    return tensor;
  }
};

LossSettings settings() {
  LossSettings s;
  s.contrastive_margin = 1.2F;
  s.triplet_margin = 0.3F;
  s.multi_similarity.negative_scale = 20.0F;
  s.proxy_nca_length = 2.0F;
  s.proxy_anchor_scale = 16.0F;
  return s;
}

std::vector<double> read(Backend& b, const Tensor& tensor) {
  std::vector<float> values(static_cast<size_t>(tensor.elements()));
  b.download(tensor, values.data());
  return {values.begin(), values.end()};
}

TEST(PairLosses, EqualPyTorch) {
  const Fixture fixture;
  int compared = 0;
  for (const Machine& machine : machines()) {
    Backend& b = backend_of(machine, 2);
    for (const Loss& loss : all_losses()) {
      if (loss.needs_logits) {
        continue;
      }
      SCOPED_TRACE(std::string(loss.name) + ", " + name_of(machine));
      const std::string name(loss.name);
      Tape tape(b);
      Context ctx{.backend = b, .tape = &tape, .mode = Mode::training};
      const Var embeddings = tape.leaf(fixture.load(b, "embeddings"));
      const Var proxies = tape.leaf(fixture.load(b, "proxies"));
      GroupBatch batch;
      const LossInputs in{embeddings, Var(), proxies, fixture.labels, proxies.shape()[0]};
      const Var value = loss.run(ctx, settings(), in, batch);
      tape.backward(value);
      EXPECT_EQ(difference(read(b, value.value()), {fixture.file.at(name).scalar()}, 1e-5), "");
      EXPECT_EQ(difference(read(b, tape.gradient(embeddings)), fixture.file.at(name + "_d_embeddings").doubles(), 1e-4),
                "");
      if (loss.needs_proxies) {
        EXPECT_EQ(difference(read(b, tape.gradient(proxies)), fixture.file.at(name + "_d_proxies").doubles(), 1e-4),
                  "");
      }
      ++compared;
    }
  }
  EXPECT_GE(compared, 7);
}

TEST(PairLosses, ANumberThatIsNoneShowsInTheLoss) {
  Backend& b = any_backend();
  Context ctx{.backend = b, .mode = Mode::training};
  const Tensor embeddings = b.new_tensor("test", {4, 2});
  const std::vector<float> values = {std::numeric_limits<float>::quiet_NaN(), 1, 1, 1, 1, 1, 1, 1};
  b.upload(values.data(), embeddings);
  const Var x(embeddings);
  const Tensor labels = b.new_tensor("test", {4}, DType::i32);
  const std::vector<int32_t> numbers = {0, 0, 1, 1};
  b.upload(numbers.data(), labels);
  for (const Var& loss : {contrastive_loss(ctx, x, labels, 0.5F), triplet_loss(ctx, x, labels, Triplets::all, 0.2F)}) {
    EXPECT_TRUE(std::isnan(read(b, loss.value())[0]));
  }
}

TEST(LossRegistry, FindsEveryLossByItsNameAndNamesThemAllIfThereIsNone) {
  for (const Loss& loss : all_losses()) {
    EXPECT_EQ(loss_named(loss.name).name, loss.name);
  }
  EXPECT_ERROR(loss_named("triplet"), ErrorCode::usage,
               {"'triplet'", "group_loss", "triplet_semihard", "proxy_anchor"});
}

TEST(LossRegistry, RunsEveryLossFromTheSameInputs) {
  Backend& b = any_backend();
  Draw draw(3);
  const auto leaf = [&](Tape& tape, const Shape& shape) {
    const Array values = draw.array(shape);
    const std::vector<float> floats(values.values.begin(), values.values.end());
    Tensor tensor = b.new_tensor("test", shape);
    b.upload(floats.data(), tensor);
    return tape.leaf(tensor);
  };
  const std::vector<int32_t> labels = {0, 0, 1, 1, 2, 2};
  for (const Loss& loss : all_losses()) {
    SCOPED_TRACE(loss.name);
    Tape tape(b);
    Context ctx{.backend = b, .tape = &tape, .mode = Mode::training};
    const LossInputs in{leaf(tape, {6, 5}), leaf(tape, {6, 4}), leaf(tape, {4, 5}), labels, 4};
    GroupBatch batch;
    const Var value = loss.run(ctx, LossSettings(), in, batch);
    tape.backward(value);
    EXPECT_TRUE(b.all_finite(value.value()));
    EXPECT_EQ(static_cast<bool>(tape.gradient(in.logits)), loss.needs_logits);
    EXPECT_EQ(static_cast<bool>(tape.gradient(in.proxies)), loss.needs_proxies);
  }
}

}  // namespace

}  // namespace gle::test
