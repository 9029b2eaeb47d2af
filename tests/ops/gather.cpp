#include "layers/gather.h"

#include "layers/elementwise.h"
#include "tests/op_test.h"
#include "tests/reference/reference.h"
#include "tests/shapes.h"

namespace gle::test {

namespace {

// Of a single rank, where each is the identity; tests/distributed has several.
Op op_of_ranks(const char* name, Var (*run)(Context&, const Var&)) {
  Op op{name, {}};
  Draw draw(124);
  for (const Shape& shape : matrix_shapes()) {
    op.cases.push_back({.label = name_of(shape),
                        .inputs = {{draw.array(shape)}},
                        .run =
                            [run](Context& ctx, std::span<const Var> in, const Var&) {
                              const std::unique_ptr<Comm> comm = one_process();
                              ctx.comm = ctx.backend.device() == Device{} ? comm.get() : nullptr;
                              const Var y = scale(ctx, run(ctx, in[0]), 1);
                              ctx.comm = nullptr;
                              return y;
                            },
                        .forward = [](const Arrays& in) { return in[0]; },
                        .backward = [](const Arrays&, const Array& dy) { return Arrays{dy}; },
                        .takes_out = false});
  }
  return op;
}

}  // namespace

void add_gather_ops(std::vector<Op>& to) {
  to.insert(to.end(), {op_of_ranks("all_gather", all_gather), op_of_ranks("count_once", count_once),
                       op_of_ranks("sum_over_ranks", sum_over_ranks)});
}

}  // namespace gle::test
