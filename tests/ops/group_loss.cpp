#include "losses/group_loss.h"

#include "losses/group_loss_composed.h"
#include "tests/losses_testing.h"
#include "tests/op_test.h"

namespace gle::test {

namespace {

using Run = Var (*)(Context&, const Var&, const Var&, const GroupBatch&, const GroupLossOptions&, const Var&);

OpCase case_of(const GroupProblem& p, Run run) {
  OpCase c{
      .label = p.label,
      .inputs = {{p.logits}, {p.embeddings}, {p.given}},
      .run =
          [=](Context& ctx, std::span<const Var> in, const Var&) {
            GroupBatch batch;
            p.set(ctx, batch);
            return run(ctx, in[1], in[0], batch, p.c.options, in[2]);
          },
      .forward = [=](const Arrays& in) { return Array({1}, reference::group_loss(in[1], in[0], in[2], p.c, 1).loss); },
      .backward =
          [=](const Arrays& in, const Array& dy) {
            const reference::GroupAnswer answer = reference::group_loss(in[1], in[0], in[2], p.c, dy[0]);
            return Arrays{answer.dlogits, answer.dembeddings, answer.dgiven};
          },
      .takes_out = false,
      .out_sliceable = false,
      .at_least = 1e-3};
  return c;
}

// Every combination of options, on a small batch.
std::vector<GroupProblem> combinations() {
  std::vector<GroupProblem> all;
  Draw draw(300);
  for (const Similarity similarity : {Similarity::correlation, Similarity::cosine}) {
    for (const Negatives negatives : {Negatives::clamp, Negatives::shift}) {
      for (const Diagonal diagonal : {Diagonal::zero, Diagonal::one}) {
        for (const int steps : {0, 1, 3}) {
          for (const MeanOver mean_over : {MeanOver::all, MeanOver::non_anchors}) {
            for (const Columns columns : {Columns::all, Columns::of_batch}) {
              for (const bool plain : {false, true}) {
                for (const Given given : {Given::none, Given::some, Given::all}) {
                  GroupLossOptions o;
                  o.refinement = {similarity, negatives, diagonal, plain ? 3.0F : 1.0F, steps};
                  o.mean_over = mean_over;
                  o.columns = columns;
                  o.weight = plain ? 0.8F : 1.0F;
                  o.cross_entropy_weight = plain ? 0.7F : 0.0F;
                  o.smoothing = plain ? 0.1F : 0.0F;
                  all.push_back(draw_group_problem(draw, 7, 9, 6, o, given));
                  all.back().label = "combination " + std::to_string(all.size());
                }
              }
            }
          }
        }
      }
    }
  }
  return all;
}

// Sizes at and beside the edges of tiles, slices and vectors, and pieces for several threads.
std::vector<GroupProblem> sizes() {
  std::vector<GroupProblem> all;
  Draw draw(301);
  const auto add = [&](int64_t n, int64_t classes, int64_t features) {
    GroupLossOptions o;
    o.refinement = {Similarity::correlation, Negatives::clamp, Diagonal::one, 2.0F, 2};
    o.columns = classes > 1000 && n < 10 ? Columns::of_batch : Columns::all;
    all.push_back(draw_group_problem(draw, n, classes, features, o, Given::none));
    all.back().label = name_of(Shape{n, classes}) + " " + std::to_string(features) + " features";
  };
  for (const int64_t n : {1, 2, 3, 16, 17, 33, 54, 100}) {
    add(n, 10, 20);
  }
  for (const int64_t classes : {1, 2, 15, 16, 17, 63, 64, 65, 129}) {
    add(12, classes, 20);
  }
  for (const int64_t features : {3, 15, 17, 63, 64, 65, 511, 512, 513, 600}) {
    add(12, 10, features);
  }
  add(40, 1500, 300);
  add(9, 1500, 30);
  add(130, 20, 40);
  return all;
}

}  // namespace

void add_group_loss_ops(std::vector<Op>& to) {
  const Run fused = [](Context& ctx, const Var& e, const Var& z, const GroupBatch& batch, const GroupLossOptions& o,
                       const Var& given) { return group_loss(ctx, e, z, batch, o, given); };
  Op op{"group_loss", {}};
  Op composed{"group_loss_composed", {}};
  int number = 0;
  for (const GroupProblem& p : combinations()) {
    op.cases.push_back(case_of(p, fused));
    // Without a step the composed form never looks at the embeddings, so that they get no gradient.
    if (p.c.options.refinement.steps > 0 && ++number % 5 == 0) {
      composed.cases.push_back(case_of(p, group_loss_composed));
      composed.cases.back().by_library = true;
    }
  }
  for (const GroupProblem& p : sizes()) {
    op.cases.push_back(case_of(p, fused));
  }
  to.push_back(op);
  to.push_back(composed);
}

}  // namespace gle::test
