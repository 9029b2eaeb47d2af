// libFuzzer: any bytes are a geometry of a convolution or a pooling, with its values; the kernels of our own must equal
// the reference, in guarded memory, or the op must refuse the geometry with an Error.
#include <cstdio>
#include <cstdlib>
#include <string>

#include "engine/cpu/cpu.h"
#include "engine/error.h"
#include "layers/conv2d.h"
#include "layers/pool2d.h"
#include "tests/placed.h"
#include "tests/reference/reference.h"

namespace gle {
namespace {

using test::Array;
using test::Draw;
using test::Layout;
using test::Placed;

// The bytes of the input, then zeros.
class Bytes {
 public:
  Bytes(const uint8_t* data, size_t size) : data_(data), size_(size) {}
  int small(int low, int high) {
    const int byte = at_ < size_ ? data_[at_++] : 0;
    return low + byte % (high - low + 1);
  }
  Layout layout() { return small(0, 1) == 0 ? Layout::dense : Layout::slice; }

 private:
  const uint8_t* data_;
  size_t size_;
  size_t at_ = 0;
};

Backend& backend(cpu::Isa isa) {
  static std::unique_ptr<Backend> all[3];
  std::unique_ptr<Backend>& one = all[static_cast<size_t>(isa)];
  if (!one) {
    one = make_cpu_backend({.isa = cpu::supported(isa) ? isa : cpu::Isa::baseline, .threads = 2, .library = false});
    one->workspace().set_poison(true);
  }
  return *one;
}

void demand(const Placed& actual, const Array& expected, const char* what) {
  std::string problem = test::difference(actual.read(), expected.values, 1e-4, 1);
  if (!actual.guards_intact()) {
    problem += " and wrote beside it";
  }
  if (!problem.empty()) {
    std::fprintf(stderr, "%s: %s\n", what, problem.c_str());
    std::abort();
  }
}

void check_conv2d(Bytes& bytes, Backend& b) {
  const Shape xs{bytes.small(1, 3), bytes.small(1, 20), bytes.small(1, 20), bytes.small(1, 40)};
  const Shape ws{bytes.small(1, 70), bytes.small(1, 7), bytes.small(1, 7), xs[3]};
  const Conv2dOptions options{bytes.small(0, 4), bytes.small(1, 4), bytes.small(0, 7), bytes.small(0, 7)};
  const Shape ys = conv2d_shape(xs, ws, options);
  Draw draw(static_cast<uint64_t>(bytes.small(0, 255)));
  const Array x = draw.array(xs), w = draw.array(ws), bias = draw.array(Shape{ws[0]}), dy = draw.array(ys);
  const Placed px(b, x, bytes.layout()), pw(b, w, Layout::dense), pb(b, bias, Layout::dense),
      pdy(b, dy, bytes.layout());
  Placed y(b, ys, bytes.layout()), dx(b, xs, bytes.layout()), dw(b, ws, Layout::dense);
  for (Placed* output : {&y, &dx, &dw}) {
    output->fill_with_nan();
  }
  b.conv2d_forward(px.tensor(), pw.tensor(), pb.tensor(), options, kRelu, nullptr, y.tensor());
  b.conv2d_backward_data(pw.tensor(), pdy.tensor(), options, {dx.tensor()});
  b.conv2d_backward_weights(px.tensor(), pdy.tensor(), options, {dw.tensor()});
  demand(y, reference::conv2d(x, w, bias, options, kRelu), "conv2d_forward");
  demand(dx, reference::conv2d_backward_data(w, dy, options, xs), "conv2d_backward_data");
  demand(dw, reference::conv2d_backward_weights(x, dy, options, ws), "conv2d_backward_weights");
}

void check_pool2d(Bytes& bytes, Backend& b) {
  const Shape xs{bytes.small(1, 3), bytes.small(1, 20), bytes.small(1, 20), bytes.small(1, 40)};
  const Pool2dOptions options{bytes.small(0, 16),
                              bytes.small(1, 16),
                              bytes.small(1, 6),
                              bytes.small(1, 6),
                              bytes.small(0, 8),
                              bytes.small(0, 8),
                              bytes.small(0, 1) == 0 ? Rounding::floor : Rounding::ceil,
                              bytes.small(0, 1) == 0 ? Padding::counted : Padding::ignored};
  const Shape ys = pool2d_shape(xs, options);
  Draw draw(static_cast<uint64_t>(bytes.small(0, 255)));
  const Array x = draw.array(xs), dy = draw.array(ys);
  const Placed px(b, x, bytes.layout()), pdy(b, dy, bytes.layout());
  Placed largest(b, ys, bytes.layout()), taps(b, ys, Layout::dense, DType::u8), mean(b, ys, bytes.layout());
  Placed dx_of_largest(b, xs, bytes.layout()), dx_of_mean(b, xs, bytes.layout());
  for (Placed* output : {&largest, &taps, &mean, &dx_of_largest, &dx_of_mean}) {
    output->fill_with_nan();
  }
  b.max_pool_forward(px.tensor(), options, largest.tensor(), taps.tensor());
  b.max_pool_backward(taps.tensor(), options, pdy.tensor(), {dx_of_largest.tensor()});
  b.average_pool_forward(px.tensor(), options, mean.tensor());
  b.average_pool_backward(options, pdy.tensor(), {dx_of_mean.tensor()});
  const reference::MaxPooled expected = reference::max_pool(x, options);
  demand(largest, expected.y, "max_pool_forward");
  demand(taps, expected.taps, "taps of max_pool_forward");
  demand(dx_of_largest, reference::max_pool_backward(expected.taps, options, dy, xs), "max_pool_backward");
  demand(mean, reference::average_pool(x, options), "average_pool_forward");
  demand(dx_of_mean, reference::average_pool_backward(options, dy, xs), "average_pool_backward");
}

}  // namespace
}  // namespace gle

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  gle::Bytes bytes(data, size);
  gle::Backend& backend = gle::backend(static_cast<gle::cpu::Isa>(bytes.small(0, 2)));
  try {
    if (bytes.small(0, 1) == 0) {
      check_conv2d(bytes, backend);
    } else {
      check_pool2d(bytes, backend);
    }
  } catch (const gle::Error& error) {
    if (error.code() != gle::ErrorCode::usage) {
      throw;
    }
  }
  return 0;
}
