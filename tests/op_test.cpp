#include "tests/op_test.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "layers/elementwise.h"
#include "tests/machines.h"
#include "tests/placed.h"

namespace gle::test {

namespace {

constexpr double kForwardTolerance = 1e-5;
constexpr double kBackwardTolerance = 2e-5;

// Beyond this a case is there for the threads, and one variant of it must do.
constexpr int64_t kLarge = 50000;

struct Variant {
  Layout layout;
  Accumulate mode;
};

std::string name_of(const Variant& v) {
  return std::string(v.layout == Layout::slice ? "slices" : "dense") +
         (v.mode == Accumulate::add ? ", gradients add" : ", gradients overwrite");
}

std::vector<Variant> variants_of(const OpCase& c, const Machine& machine) {
  if (c.inputs[0].value.size() > kLarge) {
    return {{Layout::slice, Accumulate::add}};
  }
  if (machine.emulated()) {
    return {{Layout::dense, Accumulate::overwrite}, {Layout::slice, Accumulate::add}};
  }
  return {{Layout::dense, Accumulate::overwrite},
          {Layout::dense, Accumulate::add},
          {Layout::slice, Accumulate::overwrite},
          {Layout::slice, Accumulate::add}};
}

Arrays values_of(const OpCase& c) {
  Arrays values;
  for (const OpInput& input : c.inputs) {
    values.push_back(input.value);
  }
  return values;
}

// What a case must give, for a cotangent drawn once.
struct Expected {
  Array y, cotangent;
  Arrays gradients;

  explicit Expected(const OpCase& c) : y(c.forward(values_of(c))), cotangent(Draw(7).array(y.shape)) {
    gradients = c.backward(values_of(c), cotangent);
  }
};

std::vector<double> read(Backend& backend, const Tensor& tensor) {
  std::vector<float> values(static_cast<size_t>(tensor.elements()));
  backend.download(tensor, values.data());
  return {values.begin(), values.end()};
}

// The output and the gradients of the inputs; floats, so that comparing them for equality compares bits.
struct Result {
  std::vector<double> y;
  std::vector<std::vector<double>> gradients;
  bool operator==(const Result&) const = default;
};

Array junk_for(const Array& gradient) { return Draw(98).array(gradient.shape); }

// A parameter is the one kind of leaf whose gradient's memory the caller chooses.
struct PlacedParameter {
  Placed value, grad;
  Parameter parameter;

  PlacedParameter(Backend& backend, const OpInput& input, const Variant& v)
      : value(backend, input.value, input.sliceable ? v.layout : Layout::dense),
        grad(backend, input.value.shape, input.sliceable ? v.layout : Layout::dense) {
    if (v.mode == Accumulate::add) {
      grad.write(junk_for(input.value).values);
    } else {
      grad.fill_with_nan();
    }
    parameter.shape = input.value.shape;
    parameter.value = value.tensor();
    parameter.grad = grad.tensor();
    parameter.has_gradient = v.mode == Accumulate::add;
  }
};

Context context(Backend& backend, Tape* tape, Mode mode) {
  return {.backend = backend, .tape = tape, .mode = mode, .seed = kSeed, .step = kStep};
}

Result pass(const OpCase& c, const Expected& expected, Backend& backend, const Variant& v) {
  Tape tape(backend);
  Context ctx = context(backend, &tape, c.mode);
  std::vector<std::unique_ptr<PlacedParameter>> parameters;
  std::vector<Var> inputs;
  for (const OpInput& input : c.inputs) {
    parameters.push_back(input.value ? std::make_unique<PlacedParameter>(backend, input, v) : nullptr);
    inputs.push_back(input.value ? ctx.parameter(parameters.back()->parameter) : Var());
  }
  Placed place(backend, expected.y.shape, c.out_sliceable ? v.layout : Layout::dense);
  place.fill_with_nan();
  const int64_t first = place.first_channel();
  const Var out = tape.new_var(place.wide()).slice(first, first + expected.y.channels());

  const Var y = c.run(ctx, inputs, c.takes_out ? out : Var());
  Result result{read(backend, y.value()), {}};
  tape.backward(y, Placed(backend, expected.cotangent, Layout::dense).tensor());

  EXPECT_TRUE(place.guards_intact()) << "wrote beside the output";
  EXPECT_EQ(tape.size(), 0U);
  for (const auto& p : parameters) {
    if (!p) {
      result.gradients.emplace_back();
      continue;
    }
    EXPECT_TRUE(p->value.guards_intact()) << "wrote beside an input";
    EXPECT_TRUE(p->grad.guards_intact()) << "wrote beside a gradient";
    EXPECT_TRUE(p->parameter.has_gradient);
    result.gradients.push_back(p->grad.read());
  }
  return result;
}

void compare(const OpCase& c, const Expected& expected, const Result& result, const Variant& v) {
  EXPECT_EQ(difference(result.y, expected.y.values, kForwardTolerance, c.at_least), "") << "output";
  for (size_t i = 0; i < c.inputs.size(); ++i) {
    std::vector<double> gradient = expected.gradients[i].values;
    if (v.mode == Accumulate::add && !gradient.empty()) {
      const Array junk = junk_for(c.inputs[i].value);
      std::transform(gradient.begin(), gradient.end(), junk.values.begin(), gradient.begin(), std::plus<>());
    }
    EXPECT_EQ(difference(result.gradients[i], gradient, kBackwardTolerance, c.at_least), "") << "gradient " << i;
  }
}

// The op twice on the same inputs, the outputs added: every gradient doubles.
void check_used_twice(const OpCase& c, const Expected& expected, Backend& backend) {
  Tape tape(backend);
  Context ctx = context(backend, &tape, c.mode);
  std::vector<Var> inputs;
  for (const OpInput& input : c.inputs) {
    inputs.push_back(input.value ? tape.leaf(Placed(backend, input.value, Layout::dense).tensor()) : Var());
  }
  const Var first = c.run(ctx, inputs, {});
  const Var y = add(ctx, first, c.run(ctx, inputs, {}));
  tape.backward(y, Placed(backend, expected.cotangent, Layout::dense).tensor());
  for (size_t i = 0; i < c.inputs.size(); ++i) {
    if (c.inputs[i].value) {
      std::vector<double> gradient = expected.gradients[i].values;
      std::transform(gradient.begin(), gradient.end(), gradient.begin(), [](double g) { return 2 * g; });
      EXPECT_EQ(difference(read(backend, tape.gradient(inputs[i])), gradient, kBackwardTolerance, 2 * c.at_least), "")
          << "gradient " << i << " of an input used twice";
    }
  }
}

void check_without_tape(const OpCase& c, const Expected& expected, Backend& backend) {
  Context ctx = context(backend, nullptr, c.mode);
  std::vector<Var> inputs;
  for (const OpInput& input : c.inputs) {
    inputs.push_back(input.value ? Var(Placed(backend, input.value, Layout::dense).tensor()) : Var());
  }
  const Var y = c.run(ctx, inputs, {});
  EXPECT_EQ(difference(read(backend, y.value()), expected.y.values, kForwardTolerance, c.at_least), "")
      << "output without a tape";
}

double dot(const Array& a, const Array& b) {
  double sum = 0;
  for (int64_t i = 0; i < a.size(); ++i) {
    sum += a[i] * b[i];
  }
  return sum;
}

}  // namespace

void check_reference(const OpCase& c) {
  constexpr double kStepSize = 1e-6;
  constexpr int kDirections = 3;
  SCOPED_TRACE(c.label);
  const Expected expected(c);
  Draw draw(8);
  for (int i = 0; i < kDirections; ++i) {
    Arrays above = values_of(c), below = above;
    double claimed = 0, size = c.at_least;
    for (size_t k = 0; k < above.size(); ++k) {
      ASSERT_EQ(expected.gradients[k].size(), above[k].size());
      for (int64_t j = 0; j < above[k].size(); ++j) {
        const double direction = draw.uniform(-1, 1);
        above[k][j] += kStepSize * direction;
        below[k][j] -= kStepSize * direction;
        claimed += expected.gradients[k][j] * direction;
        size += std::abs(expected.gradients[k][j] * direction);
      }
    }
    const double measured =
        (dot(c.forward(above), expected.cotangent) - dot(c.forward(below), expected.cotangent)) / (2 * kStepSize);
    ASSERT_NEAR(measured, claimed, 1e-6 * size) << "direction " << i;
  }
}

int check_op(const OpCase& c) {
  SCOPED_TRACE(c.label);
  const Expected expected(c);
  int passes = 0;
  for (const Machine& machine : machines()) {
    if ((machine.library() && !c.by_library) || !machine.takes(c.inputs[0].value.size())) {
      continue;
    }
    SCOPED_TRACE(name_of(machine));
    Backend& backend = backend_of(machine, 2);
    for (const Variant& v : variants_of(c, machine)) {
      SCOPED_TRACE(name_of(v));
      const Result result = pass(c, expected, backend, v);
      compare(c, expected, result, v);
      EXPECT_TRUE(pass(c, expected, backend, v) == result) << "another pass gives other bits";
      passes += 2;
      if (machine.threaded()) {
        EXPECT_TRUE(pass(c, expected, backend_of(machine, 1), v) == result) << "one thread gives other bits";
        EXPECT_TRUE(pass(c, expected, backend_of(machine, 3), v) == result) << "three threads give other bits";
        passes += 2;
      }
    }
    if (c.repeatable) {
      check_used_twice(c, expected, backend);
      ++passes;
    }
    check_without_tape(c, expected, backend);
    ++passes;
    if (testing::Test::HasFailure()) {
      break;
    }
  }
  return passes;
}

const std::vector<Op>& all_ops() {
  static const std::vector<Op> all = [] {
    std::vector<Op> ops;
    for (const auto add : {add_elementwise_ops, add_rows_ops, add_gather_ops, add_linear_ops, add_conv2d_ops,
                           add_batch_norm_ops, add_pool2d_ops, add_loss_ops, add_group_loss_ops, add_pair_loss_ops}) {
      add(ops);
    }
    return ops;
  }();
  return all;
}

}  // namespace gle::test
