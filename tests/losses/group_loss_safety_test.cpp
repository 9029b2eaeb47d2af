// Whatever finite numbers go in, the loss and its gradients are finite. GLE_SAFETY_ROUNDS=1000000 for the long run.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include "losses/group_loss.h"
#include "tests/array.h"
#include "tests/machines.h"

namespace gle::test {

namespace {

float wild(Draw& draw) {
  const double sign = draw.integer(0, 1) == 0 ? 1 : -1;
  switch (draw.small(0, 7)) {
    case 0:
      return 0.0F;
    case 1:
      return static_cast<float>(sign * 1e4);
    case 2:
      return static_cast<float>(sign * 1e-30);
    case 3:
      return static_cast<float>(sign * 3e38);
    case 4:
      return static_cast<float>(sign * std::pow(10.0, draw.uniform(-38, 38)));
    default:
      return static_cast<float>(draw.uniform(-3, 3));
  }
}

enum class Embeddings { plain, constant_rows, zero, identical, two_directions, wild, tiny, huge, large_offset, count };
enum class Logits { plain, huge, equal, wild, count };

void fill_embeddings(Draw& draw, Embeddings kind, size_t features, std::vector<float>& e) {
  const auto small = [&] { return static_cast<float>(draw.uniform(-1, 1)); };
  for (size_t i = 0; i < e.size(); ++i) {
    const size_t row = i / features, column = i % features;
    switch (kind) {
      case Embeddings::constant_rows:
        e[i] = row % 2 == 0 ? (column == 0 ? small() * 1e3F : e[i - 1]) : small();
        break;
      case Embeddings::zero:
        e[i] = row % 3 == 0 ? small() : 0.0F;
        break;
      case Embeddings::identical:
        e[i] = row == 0 ? small() : e[column];
        break;
      case Embeddings::two_directions:
        e[i] = column % 2 == row % 2 ? 1.0F : 0.0F;
        break;
      case Embeddings::wild:
        e[i] = wild(draw);
        break;
      case Embeddings::tiny:
        e[i] = small() * 1e-11F;
        break;
      case Embeddings::huge:
        e[i] = small() * 1e38F;
        break;
      case Embeddings::large_offset:
        e[i] = 1e6F + small();
        break;
      default:
        e[i] = small();
    }
  }
}

struct Problem {
  int64_t n, classes, features;
  GroupLossOptions options;
  std::vector<float> embeddings, logits;
  std::vector<int32_t> labels, anchors;
  std::string label;
};

Problem draw_problem(Draw& draw) {
  Problem p;
  p.n = draw.integer(1, 12);
  p.classes = draw.one_of<int64_t>({1, 2, 5, 20, 70});
  p.features = draw.one_of<int64_t>({1, 2, 7, 33});
  p.options.refinement = {draw.one_of<Similarity>({Similarity::correlation, Similarity::cosine}),
                          draw.one_of<Negatives>({Negatives::clamp, Negatives::shift}),
                          draw.one_of<Diagonal>({Diagonal::zero, Diagonal::one}),
                          static_cast<float>(draw.one_of<double>({0.01, 1, 24, 1e4})), draw.small(0, 6)};
  p.options.anchors = AnchorChoice::given;
  p.options.mean_over = draw.one_of<MeanOver>({MeanOver::all, MeanOver::non_anchors});
  p.options.columns = draw.one_of<Columns>({Columns::all, Columns::of_batch});
  p.embeddings.resize(static_cast<size_t>(p.n * p.features));
  p.logits.resize(static_cast<size_t>(p.n * p.classes));
  const auto embeddings = static_cast<Embeddings>(draw.small(0, static_cast<int>(Embeddings::count) - 1));
  const auto logits = static_cast<Logits>(draw.small(0, static_cast<int>(Logits::count) - 1));
  fill_embeddings(draw, embeddings, static_cast<size_t>(p.features), p.embeddings);
  for (float& z : p.logits) {
    z = logits == Logits::wild    ? wild(draw)
        : logits == Logits::equal ? 2.0F
                                  : static_cast<float>(draw.uniform(-1, 1)) * (logits == Logits::huge ? 1e4F : 3.0F);
  }
  const int64_t used = draw.one_of<int64_t>({1, p.classes});
  const int anchors = draw.small(0, 2);  // none, all, some
  for (int64_t i = 0; i < p.n; ++i) {
    p.labels.push_back(static_cast<int32_t>(draw.integer(0, used - 1)));
    if (anchors == 1 || (anchors == 2 && draw.integer(0, 2) == 0)) {
      p.anchors.push_back(static_cast<int32_t>(i));
    }
  }
  p.label = std::to_string(p.n) + " samples, " + std::to_string(p.classes) + " classes, " + std::to_string(p.features) +
            " features, T " + std::to_string(p.options.refinement.steps) + ", embeddings " +
            std::to_string(static_cast<int>(embeddings)) + ", logits " + std::to_string(static_cast<int>(logits));
  return p;
}

Tensor place(Backend& b, const Shape& shape, const std::vector<float>& values) {
  Tensor tensor = b.new_tensor("test", shape);
  b.upload(values.data(), tensor);
  return tensor;
}

TEST(GroupLossSafety, LossAndGradientsAreFiniteForAnyFiniteInput) {
  const char* wanted = std::getenv("GLE_SAFETY_ROUNDS");
  const int64_t rounds = wanted ? std::atoll(wanted) : 20000;
  std::vector<Backend*> backends;
  for (const Machine& machine : machines()) {
    backends.push_back(&backend_of(machine, 1));
  }
  Draw draw(500);
  GroupBatch batch;
  for (int64_t round = 0; round < rounds; ++round) {
    Backend& b = *backends[static_cast<size_t>(round) % backends.size()];
    const Problem p = draw_problem(draw);
    Tape tape(b);
    Context ctx{.backend = b, .tape = &tape, .mode = Mode::training};
    const Var embeddings = tape.leaf(place(b, {p.n, p.features}, p.embeddings));
    const Var logits = tape.leaf(place(b, {p.n, p.classes}, p.logits));
    batch.set(ctx, p.labels, p.classes, p.options, p.anchors);
    const Var loss = group_loss(ctx, embeddings, logits, batch, p.options);
    tape.backward(loss);
    float value = NAN;
    b.download(loss.value(), &value);
    ASSERT_TRUE(value >= -1e-6F && value < 30.0F) << "round " << round << ": " << p.label << ": loss " << value;
    ASSERT_TRUE(b.all_finite(tape.gradient(embeddings))) << "round " << round << ": " << p.label;
    ASSERT_TRUE(b.all_finite(tape.gradient(logits))) << "round " << round << ": " << p.label;
  }
}

TEST(GroupLossSafety, ANumberThatIsNotFiniteIsNotHidden) {
  Backend& b = any_backend();
  GroupLossOptions o;
  o.anchors = AnchorChoice::given;
  for (const bool in_logits : {false, true}) {
    std::vector<float> e = {1, 2, 3, 2, 1, 0}, z = {1, 2, 0, 1};
    (in_logits ? z : e)[1] = NAN;
    Context ctx{.backend = b};
    GroupBatch batch;
    batch.set(ctx, std::vector<int32_t>{0, 1}, 2, o);
    const Var loss = group_loss(ctx, Var(place(b, {2, 3}, e)), Var(place(b, {2, 2}, z)), batch, o);
    EXPECT_FALSE(b.all_finite(loss.value()));
  }
}

}  // namespace

}  // namespace gle::test
