// The ops against PyTorch: fixtures/ops_torch.txt holds what it gave for inputs that both sides compute by a formula.
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "layers/batch_norm.h"
#include "layers/conv2d.h"
#include "layers/linear.h"
#include "layers/pool2d.h"
#include "layers/rows.h"
#include "losses/cross_entropy.h"
#include "tests/array.h"
#include "tests/machines.h"
#include "tests/values.h"

namespace gle {
namespace {

using test::Array;

constexpr double kTolerance = 1e-5;
// Gradients of a saturated softmax are rounding: the largest entry is taken to be at least this.
constexpr double kAtLeast = 0.1;

// One "case" of the file: options by name, and the tensors that torch gave.
struct Fixture {
  std::string op, line;
  std::map<std::string, std::vector<double>> options;
  std::map<std::string, Array> tensors;

  float number(const char* name) const { return static_cast<float>(options.at(name).at(0)); }
  bool flag(const char* name) const { return options.at(name).at(0) != 0; }
  int whole(const char* name, size_t i) const { return static_cast<int>(options.at(name).at(i)); }
  Shape shape(const char* name) const { return shape_of(options.at(name)); }

  static Shape shape_of(const std::vector<double>& sizes) {
    const auto at = [&](size_t i) { return static_cast<int64_t>(sizes[i]); };
    switch (sizes.size()) {
      case 1:
        return {at(0)};
      case 2:
        return {at(0), at(1)};
      case 4:
        return {at(0), at(1), at(2), at(3)};
      default:
        throw std::runtime_error("fixture: a shape of " + std::to_string(sizes.size()) + " sizes");
    }
  }

  // formula() of make_op_fixtures.py
  static std::vector<float> formula(uint64_t seed, const Shape& shape, float factor = 1, float offset = 0) {
    std::vector<float> values;
    for (uint64_t i = 0; i < static_cast<uint64_t>(shape.elements()); ++i) {
      auto h = static_cast<uint32_t>((i + 1) * 2654435761U + seed * 40503U);
      h = (h ^ (h >> 16U)) * 2246822519U;
      h = (h ^ (h >> 13U)) * 3266489917U;
      h ^= h >> 16U;
      values.push_back((static_cast<float>(h >> 8U) * 0x1p-23F - 1) * factor + offset);
    }
    return values;
  }
};

std::vector<Fixture> read_fixtures() {
  std::ifstream file(GLE_OP_FIXTURES);
  std::vector<Fixture> fixtures;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string kind, name;
    words >> kind >> name;
    if (kind == "case") {
      fixtures.push_back({.op = name, .line = line, .options = {}, .tensors = {}});
      for (std::string option; words >> option;) {
        const size_t equals = option.find('=');
        std::istringstream numbers(option.substr(equals + 1));
        for (std::string number; std::getline(numbers, number, ',');) {
          fixtures.back().options[option.substr(0, equals)].push_back(std::stod(number));
        }
      }
    } else if (kind == "tensor") {
      std::vector<double> sizes;
      for (double size = 0; words >> size;) {
        sizes.push_back(size);
      }
      Array array(Fixture::shape_of(sizes));
      for (double& value : array.values) {
        file >> value;
      }
      file.ignore();
      fixtures.back().tensors[name] = array;
    }
  }
  return fixtures;
}

class Pass {
 public:
  Pass(Backend& backend, const Fixture& fixture) : backend_(backend), fixture_(fixture), tape_(backend) {}

  Var leaf(uint64_t seed, const Shape& shape, float factor = 1) {
    return tape_.leaf(test::tensor_of(backend_, shape, Fixture::formula(seed, shape, factor)));
  }

  void run() {
    if (fixture_.op == "batch_norm") {
      run_batch_norm();
      return;
    }
    x_ = leaf(1, fixture_.shape("x"), fixture_.options.contains("scale") ? fixture_.number("scale") : 1);
    if (fixture_.options.contains("w")) {
      w_ = leaf(2, fixture_.shape("w"));
      bias_ = fixture_.flag("bias") ? leaf(3, {w_.shape()[0]}) : Var();
    }
    expect_backward(forward(), {{"dx", x_}, {"dw", w_}, {"dbias", bias_}});
  }

 private:
  Pool2dOptions pool_options() const {
    return {fixture_.whole("kernel", 0),
            fixture_.whole("kernel", 1),
            fixture_.whole("stride", 0),
            fixture_.whole("stride", 1),
            fixture_.whole("pad", 0),
            fixture_.whole("pad", 1),
            fixture_.flag("ceil") ? Rounding::ceil : Rounding::floor,
            fixture_.flag("counted") ? Padding::counted : Padding::ignored};
  }

  Var forward() {
    const std::string& op = fixture_.op;
    if (op == "conv2d") {
      return conv2d(ctx_, x_, w_, bias_,
                    {fixture_.whole("stride", 0), fixture_.whole("stride", 1), fixture_.whole("pad", 0),
                     fixture_.whole("pad", 1)});
    }
    if (op == "max_pool") {
      return max_pool(ctx_, x_, pool_options());
    }
    if (op == "average_pool") {
      return average_pool(ctx_, x_, pool_options());
    }
    if (op == "global_pool") {
      return global_pool(ctx_, x_, fixture_.number("share"));
    }
    if (op == "linear") {
      return linear(ctx_, x_, w_, bias_);
    }
    if (op == "softmax") {
      return softmax(ctx_, x_);
    }
    if (op == "log_softmax") {
      return log_softmax(ctx_, x_);
    }
    if (op == "centre_rows") {
      return centre_rows(ctx_, x_);
    }
    if (op == "normalise_rows") {
      return normalise_rows(ctx_, x_, fixture_.number("beta"));
    }
    if (op == "cross_entropy") {
      std::vector<int32_t> labels;
      for (int i = 0; i < fixture_.whole("x", 0); ++i) {
        labels.push_back(i * 7 % fixture_.whole("x", 1));
      }
      return cross_entropy(ctx_, x_, test::labels_of(backend_, labels), fixture_.number("smoothing"));
    }
    throw std::runtime_error("fixture: unknown op " + op);
  }

  void run_batch_norm() {
    const Shape shape = fixture_.shape("x");
    const Shape channels{shape.channels()};
    ParameterSet set;
    BatchNorm layer = make_batch_norm(set, "norm", shape.channels());
    set.allocate(backend_);
    layer.eps = fixture_.number("eps");
    layer.momentum = fixture_.number("momentum");
    backend_.upload(Fixture::formula(4, channels).data(), layer.running_mean->value);
    backend_.upload(Fixture::formula(5, channels, 1, 1.5F).data(), layer.running_var->value);
    ctx_.mode = fixture_.flag("training") ? Mode::training : Mode::inference;
    const Var x = leaf(1, shape), gamma = leaf(2, channels), beta = leaf(3, channels);
    const Var y = batch_norm(ctx_, x, gamma, beta, layer, {fixture_.number("slope")});
    expect_equal("running_mean", layer.running_mean->value);
    expect_equal("running_var", layer.running_var->value);
    expect_backward(y, {{"dx", x}, {"dgamma", gamma}, {"dbeta", beta}});
  }

  void expect_equal(const std::string& name, const Tensor& actual) {
    const Array& expected = fixture_.tensors.at(name);
    EXPECT_EQ(actual.shape(), expected.shape) << name;
    const std::vector<float> values = test::read(backend_, actual);
    EXPECT_EQ(test::difference({values.begin(), values.end()}, expected.values, kTolerance, kAtLeast), "") << name;
  }

  void expect_backward(const Var& y, const std::map<std::string, Var>& leaves) {
    expect_equal("y", y.value());
    tape_.backward(y, test::tensor_of(backend_, y.shape(), Fixture::formula(9, y.shape())));
    for (const auto& [name, leaf] : leaves) {
      EXPECT_EQ(static_cast<bool>(leaf), fixture_.tensors.contains(name)) << name;
      if (leaf) {
        expect_equal(name, tape_.gradient(leaf));
      }
    }
  }

  Backend& backend_;
  const Fixture& fixture_;
  Tape tape_;
  Context ctx_{.backend = backend_, .tape = &tape_, .mode = Mode::training};
  Var x_, w_, bias_;
};

TEST(TorchParity, EveryFixture) {
  const std::vector<Fixture> fixtures = read_fixtures();
  std::set<std::string> ops;
  for (const Fixture& fixture : fixtures) {
    ops.insert(fixture.op);
    for (const test::Machine& machine : test::machines()) {
      SCOPED_TRACE(fixture.line + " on " + test::name_of(machine));
      Pass(test::backend_of(machine, 2), fixture).run();
    }
  }
  EXPECT_GE(fixtures.size(), 40U) << GLE_OP_FIXTURES;
  EXPECT_EQ(
      ops, (std::set<std::string>{"average_pool", "batch_norm", "centre_rows", "conv2d", "cross_entropy", "global_pool",
                                  "linear", "log_softmax", "max_pool", "normalise_rows", "softmax"}));
}

}  // namespace
}  // namespace gle
