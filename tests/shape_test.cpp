#include "engine/shape.h"

#include <gtest/gtest.h>

#include <sstream>

#include "tests/expect_error.h"

namespace gle {
namespace {

TEST(Shape, KnowsItsSizes) {
  const Shape shape{2, 3, 5, 7};
  EXPECT_EQ(shape.rank(), 4);
  EXPECT_EQ(shape[0], 2);
  EXPECT_EQ(shape[-1], 7);
  EXPECT_EQ(shape[-4], 2);
  EXPECT_EQ(shape.channels(), 7);
  EXPECT_EQ(shape.rows(), 30);
  EXPECT_EQ(shape.elements(), 210);
}

TEST(Shape, OfAVectorIsOneRow) {
  const Shape shape{9};
  EXPECT_EQ(shape.rows(), 1);
  EXPECT_EQ(shape.channels(), 9);
}

TEST(Shape, EmptyHasNoElements) {
  const Shape shape;
  EXPECT_EQ(shape.rank(), 0);
  EXPECT_EQ(shape.elements(), 0);
  EXPECT_EQ(shape.rows(), 0);
  EXPECT_EQ(shape.channels(), 0);
}

TEST(Shape, ComparesByRankAndSizes) {
  EXPECT_EQ((Shape{2, 3}), (Shape{2, 3}));
  EXPECT_NE((Shape{2, 3}), (Shape{3, 2}));
  EXPECT_NE((Shape{3}), (Shape{1, 3}));
}

TEST(Shape, ReplacesItsChannels) {
  EXPECT_EQ((Shape{2, 3, 4}).with_channels(9), (Shape{2, 3, 9}));
  EXPECT_ERROR((Shape{2, 3}).with_channels(0), ErrorCode::usage, {"shape", "positive", "0"});
}

TEST(Shape, Prints) {
  std::ostringstream text;
  text << Shape{1, 20, 3};
  EXPECT_EQ(text.str(), "[1,20,3]");
}

TEST(Shape, RefusesSizesThatAreNotPositive) {
  EXPECT_ERROR((Shape{2, 0, 3}), ErrorCode::usage, {"shape", "positive", "0", "dimension 1"});
  EXPECT_ERROR((Shape{-4}), ErrorCode::usage, {"shape", "positive", "-4", "dimension 0"});
}

TEST(Shape, RefusesTooManyDimensionsAndElements) {
  EXPECT_ERROR((Shape{1, 1, 1, 1, 1}), ErrorCode::usage, {"shape", "1 to 4", "5"});
  EXPECT_ERROR((Shape{int64_t{1} << 40, int64_t{1} << 40}), ErrorCode::usage, {"shape", "too many"});
}

}  // namespace
}  // namespace gle
