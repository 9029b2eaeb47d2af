#include "layers/linear.h"

#include "tests/op_test.h"
#include "tests/reference/reference.h"

namespace gle::test {

void add_linear_ops(std::vector<Op>& to) {
  Op op{"linear", {}};
  Draw draw(130);
  for (int i = 0; i < 50; ++i) {
    const int64_t n = draw.one_of<int64_t>({1, 2, 5, 17, 32}), in_size = draw.one_of<int64_t>({1, 3, 16, 33, 100}),
                  out_size = draw.one_of<int64_t>({1, 2, 7, 16, 40, 65});
    const bool with_bias = i % 2 == 0;
    const Array w = draw.array({out_size, in_size});
    op.cases.push_back(
        {.label = std::to_string(n) + "x" + std::to_string(in_size) + " to " + std::to_string(out_size),
         .inputs = {{draw.array({n, in_size})}, {w}, {with_bias ? draw.array(Shape{out_size}) : Array(), false}},
         .run = [](Context& ctx, std::span<const Var> in,
                   const Var& out) { return linear(ctx, in[0], in[1], in[2], out); },
         .forward =
             [](const Arrays& in) { return reference::gemm(in[0], Transpose::no, in[1], Transpose::yes, in[2]); },
         .backward =
             [](const Arrays& in, const Array& dy) {
               return Arrays{reference::gemm(dy, Transpose::no, in[1], Transpose::no, {}),
                             reference::gemm(dy, Transpose::yes, in[0], Transpose::no, {}),
                             in[2] ? reference::column_sums(dy) : Array()};
             },
         .by_library = true});
  }
  to.push_back(op);
}

}  // namespace gle::test
