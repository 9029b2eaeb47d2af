#include "layers/conv2d.h"

#include "tests/op_test.h"
#include "tests/reference/reference.h"
#include "tests/shapes.h"

namespace gle::test {

void add_conv2d_ops(std::vector<Op>& to) {
  Op op{"conv2d", {}};
  Draw draw(140);
  for (const ConvGeometry& g : conv_geometries()) {
    op.cases.push_back(
        {.label = name_of(g),
         .inputs = {{draw.array(g.x)},
                    {draw.array(g.w), false},
                    {g.with_bias ? draw.array(Shape{g.w[0]}) : Array(), false}},
         .run = [options = g.options](Context& ctx, std::span<const Var> in,
                                      const Var& out) { return conv2d(ctx, in[0], in[1], in[2], options, out); },
         .forward = [options = g.options](
                        const Arrays& in) { return reference::conv2d(in[0], in[1], in[2], options, kIdentity); },
         .backward =
             [options = g.options](const Arrays& in, const Array& dy) {
               return Arrays{reference::conv2d_backward_data(in[1], dy, options, in[0].shape),
                             reference::conv2d_backward_weights(in[0], dy, options, in[1].shape),
                             in[2] ? reference::column_sums(dy) : Array()};
             },
         .by_library = true});
  }
  to.push_back(op);
}

}  // namespace gle::test
