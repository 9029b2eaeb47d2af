#include "tools/doctor_checks.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>

#include "engine/math/philox.h"
#include "layers/batch_norm.h"
#include "layers/conv2d.h"
#include "layers/elementwise.h"
#include "layers/linear.h"
#include "layers/pool2d.h"
#include "layers/rows.h"
#include "losses/cross_entropy.h"
#include "losses/registry.h"

namespace gle::doctor {

namespace {

using Draw = std::function<Var(const Shape&)>;

Tensor random_tensor(Backend& backend, const Shape& shape, uint64_t stream) {
  std::vector<float> values(static_cast<size_t>(shape.elements()));
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = 2 * uniform(RandomKey{.seed = 7, .stream = stream}, i) - 1;
  }
  Tensor tensor = backend.new_tensor("gle-doctor", shape);
  backend.upload(values.data(), tensor);
  return tensor;
}

std::vector<float> fetch(Backend& backend, const Tensor& tensor) {
  std::vector<float> values(static_cast<size_t>(tensor.elements()));
  backend.download(tensor, values.data());
  return values;
}

Check conv(const char* name, int kernel_h, int kernel_w, Conv2dOptions options) {
  return {std::string("conv2d ") + name, [=](Context& ctx, const Draw& draw) {
            const Var x = draw({8, 28, 28, 96});
            const Var w = draw({128, kernel_h, kernel_w, 96});
            const Var bias = draw({128});
            return conv2d(ctx, x, w, bias, options);
          }};
}

Check norm(const char* name, bool frozen, Activation f) {
  return {std::string("batch_norm ") + name, [=](Context& ctx, const Draw& draw) {
            const Var x = draw({8, 28, 28, 96});
            const Var gamma = draw({96});
            const Var beta = draw({96});
            Parameter mean{.name = "mean", .shape = {96}, .value = random_tensor(ctx.backend, {96}, 90), .grad = {}};
            Parameter var{.name = "var", .shape = {96}, .value = ctx.backend.new_tensor("var", {96}), .grad = {}};
            ctx.backend.fill(0.5F, var.value);
            const BatchNorm layer{
                .gamma = nullptr, .beta = nullptr, .running_mean = &mean, .running_var = &var, .frozen = frozen};
            return batch_norm(ctx, x, gamma, beta, layer, f);
          }};
}

// A step of each optimiser on copies of the input, which is also the gradient; the norm scales it.
Var optimise(Context& ctx, const Draw& draw) {
  Backend& backend = ctx.backend;
  const Var x = draw({1000, 1000});
  const Var value = scale(ctx, x, 1.0F);
  const Tensor& gradient = x.value();
  const Tensor moment = scale(ctx, x, 0.1F).value();
  const Tensor square = scale(ctx, x, 1.0F).value();
  const auto norm = static_cast<float>(std::sqrt(backend.sum_of_squares(gradient)));
  backend.fill(0.5F, square);
  backend.adam_step({.gradient_scale = 100 / norm, .l2 = 0.01F, .step_size = 0.1F}, gradient, moment, square,
                    value.value());
  backend.momentum_step({.gradient_scale = 100 / norm, .decay = 0.99F, .step_size = 0.1F, .nesterov = true}, gradient,
                        moment, value.value());
  backend.moving_average(0.9F, moment, value.value());
  return value;
}

Var classify(Context& ctx, const Draw& draw) {
  const Var logits = draw({54, 100});
  std::vector<int32_t> numbers(54);
  std::iota(numbers.begin(), numbers.end(), 0);
  const Tensor labels = ctx.backend.new_tensor("labels", {54}, DType::i32);
  ctx.backend.upload(numbers.data(), labels);
  return cross_entropy(ctx, logits, labels, 0.1F);
}

Check loss_check(const Loss& loss) {
  const bool chooses =
      loss.name == "triplet_hard" || loss.name == "triplet_semihard" || loss.name == "multi_similarity";
  return {std::string(loss.name),
          [&loss](Context& ctx, const Draw& draw) {
            std::vector<int32_t> labels(54);
            for (size_t i = 0; i < labels.size(); ++i) {
              labels[i] = static_cast<int32_t>(i / 9 * 11);
            }
            LossInputs in{Var(), Var(), Var(), labels, 100};
            in.embeddings = draw({54, 1024});
            in.logits = loss.needs_logits ? draw({54, 100}) : Var();
            in.proxies = loss.needs_proxies ? draw({100, 1024}) : Var();
            GroupBatch batch;
            return loss.run(ctx, LossSettings(), in, batch);
          },
          chooses};
}

}  // namespace

std::vector<Check> all_checks() {
  const Pool2dOptions window{.kernel_h = 3,
                             .kernel_w = 3,
                             .stride_h = 2,
                             .stride_w = 2,
                             .pad_h = 1,
                             .pad_w = 1,
                             .rounding = Rounding::ceil,
                             .padding = Padding::ignored};
  const Shape picture{8, 28, 28, 96};
  const Shape rows{54, 1024};
  std::vector<Check> checks = {
      conv("1x1", 1, 1, {}),
      conv("3x3", 3, 3, {.pad_h = 1, .pad_w = 1}),
      conv("3x3 stride 2", 3, 3, {.stride_h = 2, .stride_w = 2, .pad_h = 1, .pad_w = 1}),
      conv("1x7", 1, 7, {.pad_w = 3}),
      norm("of the batch + ReLU", false, kRelu),
      norm("frozen + leaky ReLU", true, {0.75F}),
      {"max_pool", [=](Context& ctx, const Draw& draw) { return max_pool(ctx, draw(picture), window); }},
      {"average_pool", [=](Context& ctx, const Draw& draw) { return average_pool(ctx, draw(picture), window); }},
      {"global_pool", [=](Context& ctx, const Draw& draw) { return global_pool(ctx, draw(picture), 0.5F); }},
      {"linear",
       [=](Context& ctx, const Draw& draw) {
         return linear(ctx, draw(rows), draw({100, 1024}), draw({100}));
       }},
      {"activation", [=](Context& ctx, const Draw& draw) { return activation(ctx, draw(picture), kRelu); }},
      {"add", [=](Context& ctx, const Draw& draw) { return add(ctx, draw(picture), draw(picture)); }},
      {"scale", [=](Context& ctx, const Draw& draw) { return scale(ctx, draw(picture), 0.3F); }},
      {"dropout", [=](Context& ctx, const Draw& draw) { return dropout(ctx, draw(picture), 0.4F); }},
      {"softmax", [=](Context& ctx, const Draw& draw) { return softmax(ctx, draw(rows)); }},
      {"log_softmax", [=](Context& ctx, const Draw& draw) { return log_softmax(ctx, draw(rows)); }},
      {"centre_rows", [=](Context& ctx, const Draw& draw) { return centre_rows(ctx, draw(rows)); }},
      {"normalise_rows", [=](Context& ctx, const Draw& draw) { return normalise_rows(ctx, draw(rows), 0.004F); }},
      {"take_columns",
       [=](Context& ctx, const Draw& draw) {
         const std::vector<int32_t> numbers = {0, 3, 4, 511, 512, 1023};
         const Tensor columns = ctx.backend.new_tensor("doctor", {6}, DType::i32);
         ctx.backend.upload(numbers.data(), columns);
         return take_columns(ctx, draw(rows), columns);
       }},
      {"cross_entropy", classify},
      {"optimisers", optimise},
  };
  for (const Loss& loss : all_losses()) {
    if (loss.name != "cross_entropy") {
      checks.push_back(loss_check(loss));
    }
  }
  return checks;
}

Outcome run(const Check& check, Backend& backend, int rounds) {
  Tape tape(backend);
  std::vector<Tensor> inputs;
  std::vector<Var> leaves;
  const Draw draw = [&](const Shape& shape) {
    if (inputs.size() == leaves.size()) {
      inputs.push_back(random_tensor(backend, shape, inputs.size()));
    }
    leaves.push_back(tape.leaf(inputs[leaves.size()]));
    return leaves.back();
  };
  Tensor cotangent;
  Outcome outcome;
  for (int round = 0; round < rounds; ++round) {
    leaves.clear();
    tape.clear();
    Context ctx{.backend = backend, .tape = &tape, .mode = Mode::training, .seed = 3};
    const auto start = std::chrono::steady_clock::now();
    const Var y = check.forward(ctx, draw);
    if (!cotangent) {
      cotangent = random_tensor(backend, y.shape(), 99);
    }
    tape.backward(y, cotangent);
    backend.synchronise();
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    outcome.seconds = round <= 1 ? seconds : std::min(outcome.seconds, seconds);
    if (round == 0) {
      outcome.values.push_back(fetch(backend, y.value()));
      for (const Var& leaf : leaves) {
        outcome.values.push_back(fetch(backend, tape.gradient(leaf)));
      }
    }
  }
  return outcome;
}

}  // namespace gle::doctor
