// Each network against PyTorch's own, from fixtures of tests/oracle/network_fixtures.py.
#include <cmath>

#include "engine/cpu/cpu.h"
#include "layers/elementwise.h"
#include "models/files/npy.h"
#include "tests/models/files_testing.h"
#include "tests/models/formula.h"

namespace gle {
namespace {

using test::fixture;
using test::formula_images;
using test::uniform;
using test::values_of;

constexpr size_t kProjections = 8;
constexpr int64_t kBatch = 4;
constexpr int64_t kClasses = 10;

// |a - b| / |b|, over all values.
double relative(const std::vector<float>& a, const std::vector<float>& b) {
  EXPECT_EQ(a.size(), b.size());
  double difference = 0;
  double size = 1e-300;
  for (size_t i = 0; i < b.size(); ++i) {
    difference += std::pow(static_cast<double>(a[i]) - b[i], 2);
    size += std::pow(static_cast<double>(b[i]), 2);
  }
  return std::sqrt(difference / size);
}

// The root of the mean square of what eight random projections of the error say is the error's norm times sqrt(1/3).
double projected_error(const std::string& name, const std::vector<float>& values, const float* expected) {
  const std::vector<double> directions = uniform("projection " + name, values.size() * kProjections);
  double sum = 0;
  for (size_t p = 0; p < kProjections; ++p) {
    double projection = 0;
    for (size_t i = 0; i < values.size(); ++i) {
      projection += directions[p * values.size() + i] * values[i];
    }
    sum += std::pow(projection - static_cast<double>(expected[p]), 2);
  }
  return std::sqrt(3 * sum / kProjections);
}

// sum of x * weights, by a linear layer of one output over x laid out as a single row.
Var dot(Context& ctx, const Var& x, const Tensor& weights) {
  Var sum = ctx.new_var("dot", {1, 1});
  const Shape row{1, x.value().elements()};
  ctx.backend.gemm(x.value().reshaped(row), Transpose::no, weights.reshaped(row), Transpose::yes, Tensor(),
                   {sum.value()});
  ctx.record("dot", {x}, sum, [weights](Backend& b, const Tensor&, GradTargets to) { b.scale(1.0F, weights, to[0]); });
  return sum;
}

struct Case {
  const char* name;
  bool recompute;
};

class Parity : public testing::TestWithParam<Case> {
 protected:
  Parity()
      : expected(Npz::read(fixture(std::string("parity_") + GetParam().name + ".npz"))),
        backend(make_cpu_backend({.threads = 2})),
        network(*backend, options()),
        h(expected.at("size").integers()[0]),
        w(expected.at("size").integers()[1]) {
    load_weights(*backend, network, test::formula_weights(*backend, network));
  }

  NetworkOptions options() const {
    return {.name = GetParam().name,
            .head = {.classes = kClasses,
                     .embedding = static_cast<int64_t>(expected.at("embedding").scalar()),
                     .bnneck = expected.at("bnneck").scalar() != 0},
            .norms = {.momentum = static_cast<float>(expected.at("momentum").scalar())},
            .recompute = GetParam().recompute};
  }
  Tensor formula_rows(const std::string& name, const Shape& shape) {
    const std::vector<double> from = uniform(name, static_cast<size_t>(shape.elements()));
    const std::vector<float> values(from.begin(), from.end());
    Tensor rows = backend->new_tensor("rows", shape);
    backend->upload(values.data(), rows);
    return rows;
  }
  Tensor images(size_t step) {
    const std::string name = "images " + std::to_string(step) + " " + std::to_string(expected.at("salt").integers()[0]);
    return formula_images(*backend, name, kBatch, h, w);
  }
  std::vector<float> state_dict_values(const std::string& name, const Tensor& tensor);

  Npz expected;
  std::unique_ptr<Backend> backend;
  Network network;
  int64_t h, w;
};

// A gradient in the layout of the state_dict.
std::vector<float> Parity::state_dict_values(const std::string& name, const Tensor& tensor) {
  const Shape& s = network.parameters().find(name)->shape;
  const std::vector<float> from = values_of(*backend, tensor);
  if (s.rank() != 4) {
    return from;
  }
  std::vector<float> to(from.size());
  size_t i = 0;
  for (int64_t k = 0; k < s[0]; ++k) {
    for (int64_t rs = 0; rs < s[1] * s[2]; ++rs) {
      for (int64_t c = 0; c < s[3]; ++c) {
        to[static_cast<size_t>((k * s[3] + c) * s[1] * s[2] + rs)] = from[i++];
      }
    }
  }
  return to;
}

TEST_P(Parity, InferenceGivesPyTorchsEmbeddingsAndLogits) {
  Context ctx{.backend = *backend};
  const Tensor x = images(0);
  const NetworkOutput plain = network.forward(ctx, Var(x));
  EXPECT_LT(relative(values_of(*backend, plain.embedding.value()), expected.at("eval_embedding").floats()), 1e-4);
  EXPECT_LT(relative(values_of(*backend, plain.logits.value()), expected.at("eval_logits").floats()), 1e-4);

  const NetworkOutput switched = network.forward(ctx, Var(x),
                                                 {.last_slope = static_cast<float>(expected.at("leaky").scalar()),
                                                  .max_share = static_cast<float>(expected.at("mixed").scalar()),
                                                  .beta = static_cast<float>(expected.at("beta").scalar()),
                                                  .flip = true,
                                                  .with_logits = false});
  EXPECT_FALSE(switched.logits);
  EXPECT_LT(relative(values_of(*backend, switched.embedding.value()), expected.at("switched_embedding").floats()),
            1e-4);
}

TEST_P(Parity, SeveralWaysAtOnceGiveWhatEachGivesAlone) {
  Context ctx{.backend = *backend};
  const Tensor x = images(0);
  const std::vector<ForwardOptions> ways{{.with_logits = false},
                                         {.max_share = 0.5F, .with_logits = false},
                                         {.last_slope = 0.75F, .beta = 0.004F, .with_logits = false},
                                         {.last_slope = 0.75F, .beta = 0.004F, .flip = true, .with_logits = false}};
  for (const auto& some : {std::span(ways), std::span(ways).first(2)}) {
    const std::vector<Var> found = network.embeddings(ctx, Var(x), some);
    ASSERT_EQ(found.size(), some.size());
    for (size_t i = 0; i < some.size(); ++i) {
      EXPECT_EQ(values_of(*backend, found[i].value()),
                values_of(*backend, network.forward(ctx, Var(x), some[i]).embedding.value()))
          << "way " << i << " of " << some.size();
    }
  }
}

TEST_P(Parity, ThreeTrainingStepsGivePyTorchsGradientsAndStatistics) {
  const std::vector<float> logits = expected.at("train_logits").floats();
  const std::vector<std::string> names = expected.at("names").strings();
  const std::vector<double> norms = expected.at("gradient_norms").doubles();
  const std::vector<float> projections = expected.at("gradient_projections").floats();
  ASSERT_EQ(network.parameters().parameter_count(), static_cast<int64_t>(expected.at("parameters").scalar()));
  double global = 0;
  for (const double norm : norms) {
    global = std::hypot(global, norm);
  }
  Tape tape(*backend);
  for (size_t step = 0; step < 3; ++step) {
    tape.clear();
    network.parameters().clear_gradients();
    Context ctx{.backend = *backend, .tape = &tape, .mode = Mode::training, .step = step};
    const NetworkOutput output = network.forward(ctx, Var(images(step + 1)));
    const size_t count = static_cast<size_t>(kBatch * kClasses);
    EXPECT_LT(relative(values_of(*backend, output.logits.value()),
                       {logits.begin() + static_cast<std::ptrdiff_t>(step * count),
                        logits.begin() + static_cast<std::ptrdiff_t>((step + 1) * count)}),
              2e-4)
        << "step " << step;
    // Both cotangents at once: their sum is the gradient of one number made of logits and embedding.
    const Var e = dot(ctx, output.embedding, formula_rows("cotangent embedding", output.embedding.shape()));
    const Var z = dot(ctx, output.logits, formula_rows("cotangent logits", output.logits.shape()));
    tape.backward(add(ctx, e, z));
    network.parameters().complete_gradients(*backend);
    for (size_t i = 0; step == 0 && i < names.size(); ++i) {
      const Parameter* parameter = network.parameters().find(names[i]);
      ASSERT_NE(parameter, nullptr) << names[i];
      const double error =
          projected_error(names[i], state_dict_values(names[i], parameter->grad), &projections[i * kProjections]);
      // A convolution's bias in front of a batch-norm has no gradient but rounding.
      const double size = std::max(norms[i], 1e-4 * global);
      EXPECT_LT(error, 1e-3 * size) << names[i] << ", of norm " << norms[i];
    }
    for (Parameter& parameter : network.parameters().parameters()) {
      if (parameter.trainable) {
        backend->scale(-static_cast<float>(expected.at("rate").scalar()), parameter.grad,
                       {parameter.value, Accumulate::add});
      }
    }
    network.parameters().values_changed();
  }
  const std::vector<std::string> states = expected.at("state_names").strings();
  const std::vector<double> state_norms = expected.at("state_norms").doubles();
  const std::vector<float> state_projections = expected.at("state_projections").floats();
  ASSERT_EQ(states.size(), network.parameters().state().size());
  for (size_t i = 0; i < states.size(); ++i) {
    const Parameter* state = network.parameters().find(states[i]);
    ASSERT_NE(state, nullptr) << states[i];
    EXPECT_LT(projected_error(states[i], values_of(*backend, state->value), &state_projections[i * kProjections]),
              1e-3 * state_norms[i])
        << states[i];
  }
}

INSTANTIATE_TEST_SUITE_P(Networks, Parity,
                         testing::Values(Case{"bn_inception", false}, Case{"densenet121", false},
                                         Case{"densenet121", true}, Case{"densenet161", true},
                                         Case{"densenet169", true}, Case{"densenet201", false},
                                         Case{"inception_v3", false}),
                         [](const testing::TestParamInfo<Case>& info) {
                           return std::string(info.param.name) + (info.param.recompute ? "_recomputing" : "");
                         });

}  // namespace
}  // namespace gle
