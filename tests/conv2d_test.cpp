// What the table of cases in kernels/conv2d.cpp does not show: caches of weights over time.
#include "layers/conv2d.h"

#include <gtest/gtest.h>

#include "tests/machines.h"
#include "tests/placed.h"
#include "tests/reference/reference.h"
#include "tests/values.h"

namespace gle {
namespace {

using test::Array;
using test::Draw;
using test::Layout;
using test::Placed;

class PackedWeightsTest : public testing::TestWithParam<test::Machine> {
 protected:
  void expect_right(const Shape& shape, Layout layout, PackedWeights& packed) {
    const Array x = Draw(static_cast<uint64_t>(shape.elements())).array(shape);
    expect_right(x, layout, packed);
  }

  std::vector<double> expect_right(const Array& x, Layout layout, PackedWeights& packed) {
    const Array expected = reference::conv2d(x, w_, bias_, options_, kRelu);
    const Placed y(backend_, expected.shape, layout);
    backend_.conv2d_forward(Placed(backend_, x, layout).tensor(), Placed(backend_, w_, Layout::dense).tensor(),
                            Placed(backend_, bias_, Layout::dense).tensor(), options_, kRelu, &packed, y.tensor());
    EXPECT_EQ(test::difference(y.read(), expected.values, 1e-5), "") << test::name_of(x.shape);
    EXPECT_TRUE(y.guards_intact());
    return y.read();
  }

  Backend& backend_ = test::backend_of(GetParam(), 2);
  Conv2dOptions options_{2, 1, 1, 1};
  Array w_ = Draw(1).array({20, 3, 3, 17});
  Array bias_ = Draw(2).array(Shape{20});
};

// The cache is filled by each shape in turn and used again by each: whatever a backend keeps in it, no shape may find
// what another left.
TEST_P(PackedWeightsTest, ServeChangingShapes) {
  PackedWeights packed;
  for (int round = 0; round < 2; ++round) {
    for (const Shape& shape : {Shape{1, 5, 5, 17}, Shape{2, 9, 4, 17}, Shape{1, 5, 5, 17}, Shape{1, 28, 28, 17}}) {
      for (const Layout layout : {Layout::dense, Layout::slice, Layout::dense}) {
        expect_right(shape, layout, packed);
      }
    }
  }
}

TEST_P(PackedWeightsTest, AreForgottenWhenCleared) {
  PackedWeights packed;
  expect_right({1, 5, 5, 17}, Layout::dense, packed);
  w_ = Draw(3).array(w_.shape);
  packed.clear();
  expect_right({1, 5, 5, 17}, Layout::dense, packed);
}

// By Winograd's way, whose squares must lie the same in any batch.
TEST_P(PackedWeightsTest, GiveAnImageTheSameBitsInAnyBatch) {
  options_ = {1, 1, 1, 1};
  w_ = Draw(4).array({36, 3, 3, 33});
  bias_ = Draw(5).array(Shape{36});
  for (const Shape& shape : {Shape{3, 1, 1, 33}, Shape{70, 7, 6, 33}, Shape{4, 29, 27, 33}}) {
    const Array images = Draw(6).array(shape);
    const int64_t size = images.size() / shape[0];
    const Array last({1, shape[1], shape[2], shape[3]}, {images.values.end() - size, images.values.end()});
    PackedWeights packed;
    const std::vector<double> all = expect_right(images, Layout::dense, packed);
    const std::vector<double> one = expect_right(last, Layout::dense, packed);
    if (GetParam().threaded()) {
      EXPECT_EQ(one, std::vector<double>(all.end() - static_cast<int64_t>(one.size()), all.end()))
          << test::name_of(shape);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, PackedWeightsTest, testing::ValuesIn(test::machines()), [](const auto& info) {
  return std::string(cpu::name_of(info.param.isa)) + (info.param.library() ? "_library" : "");
});

// The kernel flipped, as transposed convolution has it: an asymmetric kernel on one pixel shows each tap's place.
TEST(Conv2d, TapsHaveTheirPlaces) {
  Backend& backend = test::any_backend();
  Tape tape(backend);
  Context ctx{.backend = backend, .tape = &tape, .mode = Mode::training};
  const Var x = tape.leaf(test::tensor_of(backend, {1, 3, 3, 1}, {0, 0, 0, 0, 1, 0, 0, 0, 0}));
  const Var w = tape.leaf(test::tensor_of(backend, {1, 3, 3, 1}, {1, 2, 3, 4, 5, 6, 7, 8, 9}));
  const Var y = conv2d(ctx, x, w, {}, {1, 1, 1, 1});
  EXPECT_EQ(test::read(backend, y.value()), (std::vector<float>{9, 8, 7, 6, 5, 4, 3, 2, 1}));
  tape.backward(y, test::tensor_of(backend, {1, 3, 3, 1}, {0, 0, 0, 0, 1, 0, 0, 0, 0}));
  EXPECT_EQ(test::read(backend, tape.gradient(x)), (std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8, 9}));
  EXPECT_EQ(test::read(backend, tape.gradient(w)), (std::vector<float>{0, 0, 0, 0, 1, 0, 0, 0, 0}));
}

}  // namespace
}  // namespace gle
