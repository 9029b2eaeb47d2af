#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/backend.h"
#include "tests/array.h"

namespace gle::test {

struct KernelInput {
  Array value;  // empty: an empty tensor
  DType type = DType::f32;
  bool sliceable = true;  // the contract allows a channel pitch
};

struct KernelOutput {
  Array expected;
  bool sliceable = true;
  bool adds = true;        // has a mode: overwrites or adds
  bool omissible = false;  // may be left out
  DType type = DType::f32;
  Array initial = {};       // what the kernel updates; empty: it overwrites
  double tolerance = 1e-5;  // relative to the largest entry,
  double at_least = 0;      // or to this if that is larger: for results that cancel to nothing
};

// One call of a kernel with what it must give. Outputs of no mode come as targets too, to be used by their tensors.
struct KernelCase {
  using Inputs = std::span<const Tensor>;
  using Outputs = std::span<const GradTarget>;

  std::string label;
  std::vector<KernelInput> inputs;
  std::vector<KernelOutput> outputs;
  std::function<void(Backend&, Inputs, Outputs)> run;
  bool by_library = false;  // oneDNN may do it
};

// A kernel of engine/backend.h: its cases, or a check of its own where cases do not fit.
struct Kernel {
  std::string name;
  std::vector<KernelCase> cases;
  std::function<void(Backend&)> check = nullptr;
};

// Runs the case with dense and sliced inputs and outputs, overwriting NaN and adding to junk, leaving out what may be
// left out, on every machine, on one, two and three threads. Returns the number of calls.
int check_case(const KernelCase& c);

// Every kernel, by subject (tests/kernels/).
const std::vector<Kernel>& all_kernels();
void add_transfer_kernels(std::vector<Kernel>& to);
void add_elementwise_kernels(std::vector<Kernel>& to);
void add_image_kernels(std::vector<Kernel>& to);
void add_rows_kernels(std::vector<Kernel>& to);
void add_softmax_kernels(std::vector<Kernel>& to);
void add_gemm_kernels(std::vector<Kernel>& to);
void add_conv2d_kernels(std::vector<Kernel>& to);
void add_batch_norm_kernels(std::vector<Kernel>& to);
void add_pool2d_kernels(std::vector<Kernel>& to);
void add_loss_kernels(std::vector<Kernel>& to);
void add_optimiser_kernels(std::vector<Kernel>& to);

}  // namespace gle::test
