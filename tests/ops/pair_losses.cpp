#include "losses/contrastive_loss.h"
#include "losses/multi_similarity_loss.h"
#include "losses/proxy_anchor_loss.h"
#include "losses/proxy_nca_loss.h"
#include "losses/triplet_loss.h"
#include "tests/op_test.h"
#include "tests/placed.h"
#include "tests/reference/losses.h"
#include "tests/reference/reference.h"

namespace gle::test {

namespace {

using Labels = std::vector<int>;
using Run = std::function<Var(Context&, std::span<const Var>, const Tensor& labels)>;

Labels numbers(int64_t count) {
  Labels result;
  for (int64_t i = 0; i < count; ++i) {
    result.push_back(static_cast<int>(i));
  }
  return result;
}

// The embeddings are the first input, the proxies, if any, the second. Rows of the similarities are the embeddings, or
// the proxies if those come first.
OpCase case_of(const std::string& label, const Arrays& inputs, const Labels& labels, const PairLossOptions& options,
               bool proxies_first, const Run& run) {
  const bool proxies = inputs.size() > 1;
  const auto answer = [=](const Arrays& in) {
    const Array x = reference::normalise_rows(in[0], 0), y = proxies ? reference::normalise_rows(in[1], 0) : x;
    const Labels y_labels = proxies ? numbers(in[1].rows()) : labels;
    const Array& first = proxies_first ? y : x;
    const Array& second = proxies_first ? x : y;
    return reference::pair_loss(reference::gemm(first, Transpose::no, second, Transpose::yes, {}),
                                proxies_first ? y_labels : labels, proxies_first ? labels : y_labels,
                                proxies ? Pairs::with_proxies : Pairs::of_batch, options);
  };
  OpCase c{.label = label,
           .inputs = {},
           .run =
               [=](Context& ctx, std::span<const Var> in, const Var&) {
                 const Placed on_device(ctx.backend,
                                        Array({static_cast<int64_t>(labels.size())}, {labels.begin(), labels.end()}),
                                        Layout::dense, DType::i32);
                 return run(ctx, in, on_device.tensor());
               },
           .forward = [=](const Arrays& in) { return Array({1}, answer(in).loss); },
           .backward =
               [=](const Arrays& in, const Array& dy) {
                 const Array ds = reference::scale(answer(in).ds, dy[0]);
                 const Array x = reference::normalise_rows(in[0], 0);
                 if (!proxies) {
                   const Array dx = reference::add(reference::gemm(ds, Transpose::no, x, Transpose::no, {}),
                                                   reference::gemm(ds, Transpose::yes, x, Transpose::no, {}));
                   return Arrays{reference::normalise_rows_backward(in[0], 0, dx)};
                 }
                 const Array y = reference::normalise_rows(in[1], 0);
                 const Transpose to_x = proxies_first ? Transpose::yes : Transpose::no;
                 const Transpose to_y = proxies_first ? Transpose::no : Transpose::yes;
                 return Arrays{
                     reference::normalise_rows_backward(in[0], 0, reference::gemm(ds, to_x, y, Transpose::no, {})),
                     reference::normalise_rows_backward(in[1], 0, reference::gemm(ds, to_y, x, Transpose::no, {}))};
               },
           .takes_out = false,
           .out_sliceable = false,
           .by_library = true,
           .at_least = 1e-2};
  for (const Array& input : inputs) {
    c.inputs.push_back({input});
  }
  return c;
}

// Calls add(label, embeddings, proxies, labels) for 54 batches of several sizes.
template <class Add>
void for_batches(uint64_t seed, const Add& add) {
  Draw draw(seed);
  for (const int64_t n : {1, 2, 5, 12, 20, 33}) {
    for (const int64_t classes : {2, 3, 4, 6, 9, 13, 20, 40, 70}) {
      const std::string label = std::to_string(n) + " samples, " + std::to_string(classes) + " classes";
      const Array embeddings = draw.array({n, 10}), proxies = draw.array({classes, 10});
      add(label, embeddings, proxies, draw.labels(n, classes));
    }
  }
}

}  // namespace

void add_pair_loss_ops(std::vector<Op>& to) {
  Op contrastive{"contrastive_loss", {}};
  Op triplet{"triplet_loss", {}};
  Op multi_similarity{"multi_similarity_loss", {}};
  Op proxy_nca{"proxy_nca_loss", {}};
  Op proxy_anchor{"proxy_anchor_loss", {}};
  for_batches(310, [&](const std::string& label, const Array& x, const Array& proxies, const Labels& labels) {
    contrastive.cases.push_back(case_of(
        label, {x}, labels, {.kind = PairLossKind::contrastive, .margin = 1.2F}, false,
        [](Context& ctx, std::span<const Var> in, const Tensor& l) { return contrastive_loss(ctx, in[0], l, 1.2F); }));
    for (const auto& [triplets, kind] : {std::pair{Triplets::hard, PairLossKind::triplet_hard},
                                         std::pair{Triplets::semihard, PairLossKind::triplet_semihard},
                                         std::pair{Triplets::all, PairLossKind::triplet_all}}) {
      triplet.cases.push_back(case_of(label, {x}, labels, {.kind = kind, .margin = 0.3F}, false,
                                      [triplets = triplets](Context& ctx, std::span<const Var> in, const Tensor& l) {
                                        return triplet_loss(ctx, in[0], l, triplets, 0.3F);
                                      }));
    }
    multi_similarity.cases.push_back(case_of(
        label, {x}, labels,
        {.kind = PairLossKind::multi_similarity, .margin = 0.1F, .scale = 2.0F, .negative_scale = 20.0F, .base = 0.5F},
        false, [](Context& ctx, std::span<const Var> in, const Tensor& l) {
          return multi_similarity_loss(ctx, in[0], l, {.negative_scale = 20.0F});
        }));
    proxy_nca.cases.push_back(case_of(label, {x, proxies}, labels, {.kind = PairLossKind::proxy_nca, .scale = 8.0F},
                                      false, [](Context& ctx, std::span<const Var> in, const Tensor& l) {
                                        return proxy_nca_loss(ctx, in[0], l, in[1], 2.0F);
                                      }));
    proxy_anchor.cases.push_back(case_of(label, {x, proxies}, labels,
                                         {.kind = PairLossKind::proxy_anchor, .margin = 0.1F, .scale = 16.0F}, true,
                                         [](Context& ctx, std::span<const Var> in, const Tensor& l) {
                                           return proxy_anchor_loss(ctx, in[0], l, in[1], 0.1F, 16.0F);
                                         }));
  });
  to.insert(to.end(), {contrastive, triplet, multi_similarity, proxy_nca, proxy_anchor});
}

}  // namespace gle::test
