#include "retrieval/input.h"

#include <gtest/gtest.h>

namespace gle::test {
namespace {

TEST(Input, TransformHasTheSizeOfTheDescription) {
  const InputDescription stretched{.height = 128, .width = 64};
  EXPECT_EQ(inference_transform(stretched).output(), (data::Size{64, 128}));
  const InputDescription cut{.height = 100, .width = 90, .short_side = 120};
  EXPECT_EQ(inference_transform(cut).output(), (data::Size{90, 100}));
  const InputDescription square{.height = 100, .width = 90, .square = 120};
  EXPECT_EQ(inference_transform(square).output(), (data::Size{90, 100}));
  EXPECT_EQ(inference_transform(square).size, (data::Size{120, 120}));
}

}  // namespace
}  // namespace gle::test
