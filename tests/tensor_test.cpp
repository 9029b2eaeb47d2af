#include "engine/tensor.h"

#include <gtest/gtest.h>

#include <numeric>
#include <sstream>
#include <vector>

#include "engine/memory/caching_allocator.h"
#include "tests/expect_error.h"

namespace gle {
namespace {

class TensorTest : public testing::Test {
 protected:
  // Holds 0, 1, 2, ... in row order.
  Tensor counting(const Shape& shape) {
    Tensor tensor(allocator_.allocate(static_cast<size_t>(shape.elements()) * 4, "test"), shape);
    std::iota(tensor.data(), tensor.data() + shape.elements(), 0.0F);
    return tensor;
  }

  static std::vector<float> values(const Tensor& t) {
    std::vector<float> result;
    for (int64_t row = 0; row < t.rows(); ++row) {
      for (int64_t c = 0; c < t.channels(); ++c) {
        result.push_back(t.data()[row * t.pitch() + c]);
      }
    }
    return result;
  }

  CachingAllocator allocator_{host_memory()};
};

TEST_F(TensorTest, EmptyIsFalse) {
  EXPECT_FALSE(Tensor());
  EXPECT_EQ(Tensor().elements(), 0);
  EXPECT_TRUE(counting({1}));
}

TEST_F(TensorTest, IsDenseUntilSliced) {
  const Tensor t = counting({2, 3, 4});
  EXPECT_TRUE(t.dense());
  EXPECT_EQ(t.rows(), 6);
  EXPECT_EQ(t.pitch(), 4);
  EXPECT_FALSE(t.slice(1, 3).dense());
  EXPECT_TRUE(t.slice(0, 4).dense());
}

TEST_F(TensorTest, SliceSharesMemoryAndPitch) {
  const Tensor t = counting({2, 1, 2, 5});
  const Tensor slice = t.slice(1, 4);
  EXPECT_EQ(slice.shape(), (Shape{2, 1, 2, 3}));
  EXPECT_EQ(slice.pitch(), 5);
  EXPECT_EQ(slice.rows(), 4);
  EXPECT_EQ(slice.elements(), 12);
  EXPECT_EQ(values(slice), (std::vector<float>{1, 2, 3, 6, 7, 8, 11, 12, 13, 16, 17, 18}));
  slice.data()[0] = 100;
  EXPECT_EQ(t.data()[1], 100);
}

TEST_F(TensorTest, SliceOfASliceCountsFromTheSlice) {
  const Tensor t = counting({3, 10});
  const Tensor inner = t.slice(2, 9).slice(1, 4).slice(1, 2);
  EXPECT_EQ(inner.pitch(), 10);
  EXPECT_EQ(values(inner), (std::vector<float>{4, 14, 24}));
}

TEST_F(TensorTest, SliceKeepsMemoryAlive) {
  Tensor slice = counting({2, 8}).slice(2, 3);
  EXPECT_EQ(allocator_.statistics().live, 64U);
  EXPECT_EQ(slice.data()[0], 2);
  slice = Tensor();
  EXPECT_EQ(allocator_.statistics().live, 0U);
}

TEST_F(TensorTest, SliceOutsideIsRefused) {
  const Tensor t = counting({2, 5});
  for (const auto& [begin, end] : {std::pair<int64_t, int64_t>{-1, 2}, {0, 6}, {3, 3}, {4, 2}}) {
    EXPECT_ERROR(t.slice(begin, end), ErrorCode::usage, {"slice", std::to_string(begin), std::to_string(end), "[2,5]"});
  }
  EXPECT_ERROR(t.slice(2, 4).slice(0, 3), ErrorCode::usage, {"slice", "[2,2]"});
}

TEST_F(TensorTest, ReshapeKeepsElements) {
  const Tensor t = counting({2, 3, 4});
  const Tensor flat = t.reshaped({4, 6});
  EXPECT_EQ(flat.rows(), 4);
  EXPECT_EQ(flat.pitch(), 6);
  EXPECT_EQ(values(flat), values(t));
  EXPECT_ERROR(t.reshaped({5, 5}), ErrorCode::usage, {"reshape", "[2,3,4]", "[5,5]"});
}

TEST_F(TensorTest, ReshapeOfASliceIsRefusedUnlessItIsOneRow) {
  EXPECT_ERROR(counting({2, 6}).slice(0, 3).reshaped({6}), ErrorCode::usage, {"reshape", "slice", "[2,3]", "pitch 6"});
  const Tensor row = counting({1, 10}).slice(4, 10).reshaped({3, 2});
  EXPECT_TRUE(row.dense());
  EXPECT_EQ(values(row), (std::vector<float>{4, 5, 6, 7, 8, 9}));
}

TEST_F(TensorTest, SlicesCountInElementsOfTheirType) {
  Tensor bytes(allocator_.allocate(12, "test"), {2, 6}, DType::u8);
  for (uint8_t i = 0; i < 12; ++i) {
    bytes.bytes()[i] = i;
  }
  EXPECT_EQ(bytes.slice(2, 4).bytes()[0], 2);
  EXPECT_EQ(bytes.slice(2, 4).bytes()[6], 8);
  Tensor ints(allocator_.allocate(48, "test"), {2, 6}, DType::i32);
  ints.ints()[3] = 33;
  EXPECT_EQ(ints.slice(3, 5).ints()[0], 33);
  EXPECT_EQ(bytes_of(DType::u8), 1U);
  EXPECT_EQ(bytes_of(DType::i32), 4U);
  EXPECT_EQ(bytes_of(DType::f32), 4U);
}

TEST_F(TensorTest, BeyondItsBufferIsOurBug) {
  const Buffer buffer = allocator_.allocate(64, "test");
  EXPECT_DEATH(Tensor(buffer, {17}), "tensor beyond its buffer");
}

TEST(Device, Prints) {
  std::ostringstream text;
  text << Device{} << " " << Device{Device::Kind::cuda, 3};
  EXPECT_EQ(text.str(), "cpu cuda:3");
}

}  // namespace
}  // namespace gle
