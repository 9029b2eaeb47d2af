#include "layers/pool2d.h"

#include "tests/op_test.h"
#include "tests/reference/reference.h"
#include "tests/shapes.h"

namespace gle::test {

namespace {

Op max_pool_op() {
  Op op{"max_pool", {}};
  Draw draw(150);
  for (const PoolGeometry& g : pool_geometries()) {
    op.cases.push_back({.label = name_of(g),
                        .inputs = {{draw.array_of_distinct(g.x)}},
                        .run = [o = g.options](Context& ctx, std::span<const Var> in,
                                               const Var& out) { return max_pool(ctx, in[0], o, out); },
                        .forward = [o = g.options](const Arrays& in) { return reference::max_pool(in[0], o).y; },
                        .backward =
                            [o = g.options](const Arrays& in, const Array& dy) {
                              return Arrays{
                                  reference::max_pool_backward(reference::max_pool(in[0], o).taps, o, dy, in[0].shape)};
                            }});
  }
  return op;
}

Op average_pool_op() {
  Op op{"average_pool", {}};
  Draw draw(151);
  for (const PoolGeometry& g : pool_geometries()) {
    op.cases.push_back({.label = name_of(g),
                        .inputs = {{draw.array(g.x)}},
                        .run = [o = g.options](Context& ctx, std::span<const Var> in,
                                               const Var& out) { return average_pool(ctx, in[0], o, out); },
                        .forward = [o = g.options](const Arrays& in) { return reference::average_pool(in[0], o); },
                        .backward =
                            [o = g.options](const Arrays& in, const Array& dy) {
                              return Arrays{reference::average_pool_backward(o, dy, in[0].shape)};
                            }});
  }
  return op;
}

Op global_pool_op() {
  Op op{"global_pool", {}};
  Draw draw(152);
  for (const Shape& shape : row_shapes()) {
    if (shape.rank() != 4) {
      continue;
    }
    for (const float share : {0.0F, 1.0F, 0.6F}) {
      op.cases.push_back({.label = name_of(shape) + " max share " + std::to_string(share),
                          .inputs = {{draw.array_of_distinct(shape)}},
                          .run = [share](Context& ctx, std::span<const Var> in,
                                         const Var& out) { return global_pool(ctx, in[0], share, out); },
                          .forward = [share](const Arrays& in) { return reference::global_pool(in[0], share).y; },
                          .backward =
                              [share](const Arrays& in, const Array& dy) {
                                const Array where = reference::global_pool(in[0], share).where;
                                return Arrays{reference::global_pool_backward(where, share, dy, in[0].shape)};
                              },
                          // The distinct values are centred: their mean may be nothing beside them.
                          .at_least = static_cast<double>(shape.elements()) / 512});
    }
  }
  return op;
}

}  // namespace

void add_pool2d_ops(std::vector<Op>& to) { to.insert(to.end(), {max_pool_op(), average_pool_op(), global_pool_op()}); }

}  // namespace gle::test
