#include <algorithm>
#include <cmath>

#include "tests/kernel_test.h"
#include "tests/losses_testing.h"
#include "tests/reference/reference.h"
#include "tests/shapes.h"

namespace gle::test {

namespace {

template <class T>
Tensor on_device(Backend& b, const std::vector<T>& values, DType type) {
  Tensor tensor = b.new_tensor("test", {static_cast<int64_t>(values.size())}, type);
  b.upload(values.data(), tensor);
  return tensor;
}

// What the kernels take beside the inputs, made anew for each call; what is saved starts as NaN.
struct Call {
  GroupColumns columns;
  GroupSaved saved;
  float weight;

  Call(Backend& b, const GroupProblem& p) {
    const int64_t n = p.logits.rows(), classes = p.logits.channels();
    std::vector<int32_t> present(p.c.labels.begin(), p.c.labels.end()), targets = present;
    const bool some = p.c.options.columns == Columns::of_batch;
    if (some) {
      std::sort(present.begin(), present.end());
      present.erase(std::unique(present.begin(), present.end()), present.end());
      for (int32_t& target : targets) {
        target = static_cast<int32_t>(std::lower_bound(present.begin(), present.end(), target) - present.begin());
      }
      columns.columns = on_device(b, present, DType::i32);
    }
    columns.targets = on_device(b, targets, DType::i32);
    columns.anchors = on_device(b, p.c.anchors, DType::u8);
    const int64_t steps = p.c.options.refinement.steps;
    const int64_t count = some ? static_cast<int64_t>(present.size()) : classes;
    saved = {.similarities = b.new_tensor("test", {n, n}),
             .rows = b.new_tensor("test", {3 * n + 1}),
             .iterates = b.new_tensor("test", {steps + 1, n, count}),
             .scales = b.new_tensor("test", {steps + 1, n}),
             .inverse_sums = b.new_tensor("test", {steps + 1, n}),
             .misses = b.new_tensor("test", {n})};
    for (const Tensor& t :
         {saved.similarities, saved.rows, saved.iterates, saved.scales, saved.inverse_sums, saved.misses}) {
      b.fill(NAN, t);
    }
    weight = 1.0F / static_cast<float>(n);
  }
};

std::vector<GroupProblem> problems() {
  std::vector<GroupProblem> all;
  Draw draw(320);
  for (const Shape& size : {Shape{5, 7, 6}, Shape{20, 70, 33}, Shape{54, 100, 600}, Shape{30, 900, 20}}) {
    for (const Columns columns : {Columns::all, Columns::of_batch}) {
      for (const int steps : {0, 1, 3}) {
        GroupLossOptions o;
        o.refinement = {Similarity::correlation, steps == 3 ? Negatives::shift : Negatives::clamp, Diagonal::zero, 2.0F,
                        steps};
        o.mean_over = MeanOver::all;
        o.columns = columns;
        all.push_back(draw_group_problem(draw, size[0], size[1], size[2], o, Given::none));
        all.back().label =
            name_of(size) + (columns == Columns::all ? " all, T " : " of the batch, T ") + std::to_string(steps);
      }
    }
  }
  GroupLossOptions o;
  o.refinement.steps = 2;
  o.mean_over = MeanOver::all;
  all.push_back(draw_group_problem(draw, 129, 36, 5, o, Given::none));
  all.back().label = "more samples than one block of a GPU refines";
  return all;
}

void forward(Backend& b, KernelCase::Inputs in, const GroupProblem& p, const Call& call, const Tensor& loss) {
  b.group_loss_forward(in[0], Tensor(), in[1], call.columns, p.c.options.refinement, call.weight, call.saved, loss);
}

Kernel group_loss_forward() {
  Kernel kernel{"group_loss_forward", {}};
  for (const GroupProblem& p : problems()) {
    const double loss = reference::group_loss(p.embeddings, p.logits, {}, p.c, 1).loss;
    kernel.cases.push_back({p.label,
                            {{p.embeddings}, {p.logits}},
                            {{.expected = Array({1}, loss), .sliceable = false, .adds = false}},
                            [=](Backend& b, KernelCase::Inputs in, KernelCase::Outputs out) {
                              forward(b, in, p, Call(b, p), out[0].grad);
                            }});
  }
  return kernel;
}

Kernel group_loss_iterate() {
  Kernel kernel{"group_loss_iterate", {}};
  for (const GroupProblem& p : problems()) {
    const Arrays x = reference::group_loss(p.embeddings, p.logits, {}, p.c, 1).iterates;
    KernelCase c{p.label, {{p.embeddings}, {p.logits}}, {}, nullptr};
    for (const Array& one : x) {
      c.outputs.push_back({.expected = one, .adds = false});
    }
    c.run = [=](Backend& b, KernelCase::Inputs in, KernelCase::Outputs out) {
      const Call call(b, p);
      forward(b, in, p, call, b.new_tensor("test", {1}));
      for (size_t t = 0; t < out.size(); ++t) {
        b.group_loss_iterate(call.columns, call.saved, static_cast<int>(t), out[t].grad);
      }
    };
    kernel.cases.push_back(c);
  }
  return kernel;
}

Kernel group_loss_backward() {
  Kernel kernel{"group_loss_backward", {}};
  for (const GroupProblem& p : problems()) {
    if (p.c.options.refinement.steps == 0) {
      continue;  // the op asks for no gradient of the similarities then
    }
    const reference::GroupAnswer answer = reference::group_loss(p.embeddings, p.logits, {}, p.c, 1.5);
    const bool small =
        p.c.labels.size() <= 128 && p.logits.size() < 20000;  // for an emulated GPU to do it in every way
    const auto output = [&](const Array& expected) {
      return KernelOutput{
          .expected = expected, .sliceable = small, .adds = small, .omissible = small, .tolerance = 2e-5};
    };
    kernel.cases.push_back(
        {p.label,
         {{p.embeddings, DType::f32, small}, {p.logits, DType::f32, small}, {Array({1}, 1.5), DType::f32, false}},
         {output(answer.dembeddings), output(answer.dlogits)},
         [=](Backend& b, KernelCase::Inputs in, KernelCase::Outputs out) {
           const Call call(b, p);
           forward(b, in, p, call, b.new_tensor("test", {1}));
           b.group_loss_backward(in[0], Tensor(), call.columns, p.c.options.refinement, call.weight, call.saved, in[2],
                                 out[0], GradTarget(), out[1]);
         }});
  }
  return kernel;
}

Kernel pair_loss() {
  Kernel kernel{"pair_loss", {}};
  Draw draw(321);
  for (const PairLossKind kind : {PairLossKind::contrastive, PairLossKind::triplet_hard, PairLossKind::triplet_semihard,
                                  PairLossKind::triplet_all, PairLossKind::proxy_nca, PairLossKind::multi_similarity,
                                  PairLossKind::proxy_anchor}) {
    const bool proxies = kind == PairLossKind::proxy_nca || kind == PairLossKind::proxy_anchor;
    const Pairs pairs = proxies ? Pairs::with_proxies : Pairs::of_batch;
    const PairLossOptions options{.kind = kind, .margin = 0.3F, .scale = 4.0F, .negative_scale = 9.0F, .base = 0.4F};
    for (const int64_t n : {1, 2, 9, 40}) {
      const int64_t columns = proxies ? 2 * n + 1 : n;
      const Array x = reference::normalise_rows(draw.array({n, 8}), 0);
      const Array y = proxies ? reference::normalise_rows(draw.array({columns, 8}), 0) : x;
      Array s = reference::gemm(x, Transpose::no, y, Transpose::yes, {});
      for (double& one : s.values) {
        one = static_cast<double>(static_cast<float>(one));
      }
      const std::vector<int> rows = draw.labels(n, 3), other = proxies ? draw.labels(columns, 3) : rows;
      const auto labels = [](const std::vector<int>& l) {
        return Array({static_cast<int64_t>(l.size())}, std::vector<double>(l.begin(), l.end()));
      };
      const reference::PairAnswer answer = reference::pair_loss(s, rows, other, pairs, options);
      kernel.cases.push_back(
          {"kind " + std::to_string(static_cast<int>(kind)) + " " + name_of(s.shape),
           {{s}, {labels(rows), DType::i32, false}, {labels(other), DType::i32, false}},
           {{.expected = Array({1}, answer.loss), .sliceable = false, .adds = false, .at_least = 0.1},
            {.expected = answer.ds, .adds = false, .at_least = 0.01}},
           [=](Backend& b, KernelCase::Inputs in, KernelCase::Outputs out) {
             b.pair_loss(in[0], in[1], in[2], pairs, options, out[0].grad, out[1].grad);
           }});
    }
  }
  return kernel;
}

Kernel scale_by() {
  Kernel kernel{"scale_by", {}};
  Draw draw(322);
  for (const Shape& shape : matrix_shapes()) {
    const Array x = draw.array(shape), factor = draw.array({1});
    kernel.cases.push_back(
        {name_of(shape),
         {{factor, DType::f32, false}, {x}},
         {{.expected = reference::scale(x, factor[0])}},
         [](Backend& b, KernelCase::Inputs in, KernelCase::Outputs out) { b.scale_by(in[0], in[1], out[0]); }});
  }
  return kernel;
}

}  // namespace

void add_loss_kernels(std::vector<Kernel>& to) {
  to.insert(to.end(), {group_loss_forward(), group_loss_backward(), group_loss_iterate(), pair_loss(), scale_by()});
}

}  // namespace gle::test
