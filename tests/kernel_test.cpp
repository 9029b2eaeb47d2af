#include "tests/kernel_test.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <bitset>
#include <functional>

#include "tests/machines.h"
#include "tests/placed.h"

namespace gle::test {

namespace {

// Beyond this a case is there for the threads, and two variants of it must do.
constexpr int64_t kLarge = 50000;

struct Variant {
  Layout inputs = Layout::dense;
  Layout outputs = Layout::dense;
  Accumulate mode = Accumulate::overwrite;
  unsigned left_out = 0;  // outputs, bit i for the i-th

  bool without(size_t output) const { return (left_out >> output & 1U) != 0; }
};

std::string name_of(const Variant& v) {
  return std::string(v.inputs == Layout::slice ? "sliced" : "dense") + " inputs, " +
         (v.outputs == Layout::slice ? "sliced" : "dense") + " outputs, " +
         (v.mode == Accumulate::add ? "add" : "overwrite") +
         (v.left_out == 0 ? "" : ", without outputs " + std::bitset<8>(v.left_out).to_string());
}

int64_t elements_of(const KernelCase& c) {
  return c.outputs[0].expected.size() + (c.inputs.empty() ? 0 : c.inputs[0].value.size());
}

std::vector<Variant> variants_of(const KernelCase& c) {
  if (elements_of(c) > kLarge) {
    return {{}, {Layout::slice, Layout::slice, Accumulate::add}};
  }
  const auto any = [](const auto& list, auto member) {
    return std::any_of(list.begin(), list.end(), [&](const auto& one) { return one.*member; });
  };
  std::vector<Variant> result;
  for (const Layout inputs : {Layout::dense, Layout::slice}) {
    for (const Layout outputs : {Layout::dense, Layout::slice}) {
      for (const Accumulate mode : {Accumulate::overwrite, Accumulate::add}) {
        if ((inputs == Layout::slice && !any(c.inputs, &KernelInput::sliceable)) ||
            (outputs == Layout::slice && !any(c.outputs, &KernelOutput::sliceable)) ||
            (mode == Accumulate::add && !any(c.outputs, &KernelOutput::adds))) {
          continue;
        }
        result.push_back({inputs, outputs, mode});
      }
    }
  }
  unsigned omissible = 0;
  for (size_t i = 0; i < c.outputs.size(); ++i) {
    omissible |= static_cast<unsigned>(c.outputs[i].omissible) << i;
  }
  for (size_t i = 0; i < c.outputs.size(); ++i) {
    if (c.outputs[i].omissible) {
      result.push_back({.left_out = 1U << i});
      if (std::popcount(omissible) > 2) {
        result.push_back({.left_out = omissible & ~(1U << i)});
      }
    }
  }
  return result;
}

// One call's outputs, as numbers and as bits; an output left out is empty.
struct Result {
  std::vector<std::vector<double>> values;
  std::vector<std::vector<uint32_t>> bits;
};

Array junk_for(const KernelOutput& output) { return Draw(99).array(output.expected.shape); }

bool added(const KernelOutput& output, const Variant& v) { return output.adds && v.mode == Accumulate::add; }

Result run(const KernelCase& c, Backend& backend, const Variant& v) {
  std::vector<Placed> inputs, outputs;
  std::vector<Tensor> in;
  std::vector<GradTarget> out;
  for (const KernelInput& input : c.inputs) {
    if (!input.value) {
      in.emplace_back();
      continue;
    }
    inputs.emplace_back(backend, input.value, input.sliceable ? v.inputs : Layout::dense, input.type);
    in.push_back(inputs.back().tensor());
  }
  for (size_t i = 0; i < c.outputs.size(); ++i) {
    const KernelOutput& output = c.outputs[i];
    Placed placed(backend, output.expected.shape, output.sliceable ? v.outputs : Layout::dense, output.type);
    if (output.initial) {
      placed.write(output.initial.values);
    } else if (added(output, v)) {
      placed.write(junk_for(output).values);
    } else {
      placed.fill_with_nan();
    }
    const Accumulate mode = added(output, v) ? Accumulate::add : Accumulate::overwrite;
    out.push_back(v.without(i) ? GradTarget{} : GradTarget{placed.tensor(), mode});
    outputs.push_back(std::move(placed));
  }
  std::vector<std::vector<uint32_t>> inputs_before;
  for (const Placed& input : inputs) {
    inputs_before.push_back(input.bits());
  }

  c.run(backend, in, out);
  backend.synchronise();

  for (size_t i = 0; i < inputs.size(); ++i) {
    EXPECT_TRUE(inputs[i].guards_intact() && inputs[i].bits() == inputs_before[i]) << "wrote to input " << i;
  }
  Result result;
  for (size_t i = 0; i < outputs.size(); ++i) {
    EXPECT_TRUE(outputs[i].guards_intact()) << "wrote beside output " << i;
    result.values.push_back(v.without(i) ? std::vector<double>() : outputs[i].read());
    result.bits.push_back(v.without(i) ? std::vector<uint32_t>() : outputs[i].bits());
  }
  return result;
}

void compare(const KernelCase& c, const Result& result, const Variant& v) {
  for (size_t i = 0; i < c.outputs.size(); ++i) {
    if (v.without(i)) {
      continue;
    }
    const KernelOutput& output = c.outputs[i];
    std::vector<double> expected = output.expected.values;
    if (added(output, v)) {
      const Array junk = junk_for(output);
      std::transform(expected.begin(), expected.end(), junk.values.begin(), expected.begin(), std::plus<>());
    }
    EXPECT_EQ(difference(result.values[i], expected, output.tolerance, output.at_least), "") << "output " << i;
  }
}

}  // namespace

int check_case(const KernelCase& c) {
  SCOPED_TRACE(c.label);
  int runs = 0;
  for (const Machine& machine : machines()) {
    if ((machine.library() && !c.by_library) || !machine.takes(elements_of(c))) {
      continue;
    }
    for (const Variant& variant : variants_of(c)) {
      SCOPED_TRACE(name_of(machine) + ", " + name_of(variant));
      const Result result = run(c, backend_of(machine, 2), variant);
      compare(c, result, variant);
      EXPECT_TRUE(run(c, backend_of(machine, 2), variant).bits == result.bits) << "another run gives other bits";
      runs += 2;
      if (machine.threaded()) {
        for (const int threads : {1, 3}) {
          EXPECT_TRUE(run(c, backend_of(machine, threads), variant).bits == result.bits)
              << threads << " threads give other bits than two";
          ++runs;
        }
      }
      if (testing::Test::HasFailure()) {
        return runs;
      }
    }
  }
  return runs;
}

const std::vector<Kernel>& all_kernels() {
  static const std::vector<Kernel> all = [] {
    std::vector<Kernel> kernels;
    for (const auto add : {add_transfer_kernels, add_elementwise_kernels, add_image_kernels, add_rows_kernels,
                           add_softmax_kernels, add_gemm_kernels, add_conv2d_kernels, add_batch_norm_kernels,
                           add_pool2d_kernels, add_loss_kernels, add_optimiser_kernels}) {
      add(kernels);
    }
    return kernels;
  }();
  return all;
}

}  // namespace gle::test
