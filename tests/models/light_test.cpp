// Our graphs against those of light_densenet121 and light_inception_v2 of the onnx package, from fixtures of
// tests/oracle/light_fixtures.py.
#include <algorithm>
#include <cmath>

#include "engine/cpu/cpu.h"
#include "models/files/npy.h"
#include "tests/models/files_testing.h"
#include "tests/models/formula.h"

namespace gle {
namespace {

using test::fixture;
using test::values_of;

constexpr int64_t kSide = 224;

class Light : public testing::TestWithParam<const char*> {
 protected:
  Light()
      : expected(Npz::read(fixture(std::string("light_") + GetParam() + ".npz"))),
        backend(make_cpu_backend({.threads = 2})),
        network(*backend, {.name = GetParam(), .head = {.classes = 1000}}) {}

  // As the package's files have them.
  WeightFile shipped_weights() {
    WeightFile file = test::formula_weights(*backend, network);
    const std::vector<std::string> names = expected.at("names").strings();
    EXPECT_EQ(names.size(), file.tensors.size());
    const std::vector<double> constants = expected.at("constants").doubles();
    for (WeightTensor& tensor : file.tensors) {
      const auto found = std::ranges::find(names, tensor.name);
      const double constant = found == names.end() ? 0 : constants[static_cast<size_t>(found - names.begin())];
      EXPECT_NE(found, names.end()) << tensor.name;
      if (std::isnan(constant)) {
        const std::vector<float> values = expected.at("weight " + tensor.name).floats();
        EXPECT_EQ(values.size(), tensor.values.size()) << tensor.name;
        tensor.values = values;
      } else {
        std::ranges::fill(tensor.values, static_cast<float>(constant));
      }
    }
    return file;
  }

  NetworkOutput run(const WeightFile& weights, const Tensor& images) {
    load_weights(*backend, network, weights);
    Context ctx{.backend = *backend};
    return network.forward(ctx, Var(images));
  }

  Npz expected;
  std::unique_ptr<Backend> backend;
  Network network;
};

double largest_relative_error(const std::vector<float>& found, const std::vector<float>& expected) {
  EXPECT_EQ(found.size(), expected.size());
  double error = 0;
  double size = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    error = std::max(error, std::abs(static_cast<double>(found[i]) - static_cast<double>(expected[i])));
    size = std::max(size, std::abs(static_cast<double>(expected[i])));
  }
  return error / size;
}

TEST_P(Light, TheFilesOwnWeightsGiveTheOutputThatThePackageExpects) {
  std::vector<float> ramp(static_cast<size_t>(3 * kSide * kSide));
  for (size_t i = 0; i < ramp.size(); ++i) {
    // A picture in planes whose numbers grow from 0 to 1.
    const size_t in_planes = i % 3 * static_cast<size_t>(kSide * kSide) + i / 3;
    ramp[i] = static_cast<float>(static_cast<double>(in_planes) / static_cast<double>(ramp.size()));
  }
  Tensor images = backend->new_tensor("images", {1, kSide, kSide, 3});
  backend->upload(ramp.data(), images);
  std::vector<float> output = values_of(*backend, run(shipped_weights(), images).logits.value());
  if (GetParam() == std::string("inception_v2")) {  // that file ends in a softmax
    const float largest = *std::ranges::max_element(output);
    float sum = 0;
    for (float& value : output) {
      value = std::exp(value - largest);
      sum += value;
    }
    for (float& value : output) {
      value /= sum;
    }
  }
  EXPECT_LT(largest_relative_error(output, expected.at("expected").floats()), 1e-4);
}

TEST_P(Light, OtherWeightsGiveWhatOnnxruntimeMakesOfTheGraph) {
  const NetworkOutput output =
      run(test::formula_weights(*backend, network), test::formula_images(*backend, "light images", 1, kSide, kSide));
  EXPECT_LT(
      largest_relative_error(values_of(*backend, output.embedding.value()), expected.at("formula_embedding").floats()),
      1e-4);
  EXPECT_LT(largest_relative_error(values_of(*backend, output.logits.value()), expected.at("formula_logits").floats()),
            1e-4);
}

INSTANTIATE_TEST_SUITE_P(Networks, Light, testing::Values("densenet121", "inception_v2"));

}  // namespace
}  // namespace gle
