#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <string>

#include "engine/error.h"
#include "tests/kernel_test.h"
#include "tests/placed.h"
#include "tests/shapes.h"

namespace gle::test {

namespace {

// A tensor written by upload() and read by download() holds what was written, and only its own channels change.
void check_transfer(Backend& backend) {
  for (const Shape& shape : row_shapes()) {
    for (const DType type : {DType::f32, DType::i32, DType::u8}) {
      for (const Layout layout : {Layout::dense, Layout::slice}) {
        SCOPED_TRACE(name_of(shape));
        const Placed placed(backend, shape, layout, type);
        std::vector<uint8_t> bytes(static_cast<size_t>(shape.elements()) * bytes_of(type));
        for (size_t i = 0; i < bytes.size(); ++i) {
          bytes[i] = static_cast<uint8_t>(i * 37 + 11);
        }
        backend.upload(bytes.data(), placed.tensor());
        ASSERT_TRUE(placed.guards_intact());
        std::vector<uint8_t> back(bytes.size());
        backend.download(placed.tensor(), back.data());
        ASSERT_EQ(bytes, back);
      }
    }
  }
}

void check_description(Backend& backend) {
  const std::string text = backend.description();
  EXPECT_NE(text.find("2 threads"), std::string::npos) << text;
  EXPECT_EQ(text.rfind("cpu, ", 0), 0U) << text;
}

void check_synchronise(Backend& backend) {
  const Tensor x = backend.new_tensor("test", {1});
  backend.fill(3, x);
  backend.synchronise();
  float value = 0;
  backend.download(x, &value);
  EXPECT_EQ(value, 3);
}

void check_label_check(Backend& backend) {
  Array labels(Shape{5}, {0, 3, 6, 2, 1});
  const Placed placed(backend, labels, Layout::dense, DType::i32);
  EXPECT_NO_THROW(backend.check_labels(placed.tensor(), 7));
  EXPECT_THROW(backend.check_labels(placed.tensor(), 6), Error);
  labels[4] = -1;
  const Placed negative(backend, labels, Layout::dense, DType::i32);
  try {
    backend.check_labels(negative.tensor(), 7);
    FAIL() << "a negative label passed";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::data);
    EXPECT_NE(std::string(error.what()).find("-1"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("sample 4"), std::string::npos) << error.what();
  }
}

// Each element in turn, among them the last of each vector and of the tail; beside a slice is a NaN that must not
// count.
void check_all_finite(Backend& backend) {
  const double bad[] = {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity(),
                        -std::numeric_limits<double>::infinity()};
  for (const Shape& shape : {Shape{1}, Shape{5, 17}, Shape{2, 3, 2, 33}}) {
    for (const Layout layout : {Layout::dense, Layout::slice}) {
      if (layout == Layout::slice && shape.rank() == 1) {
        continue;
      }
      Array values = Draw(5).array(shape);
      values[0] = std::numeric_limits<float>::max();
      Placed placed(backend, values, layout);
      EXPECT_TRUE(backend.all_finite(placed.tensor()));
      for (int64_t i = 0; i < values.size(); ++i) {
        Array spoilt = values;
        spoilt[i] = bad[i % 3];
        placed.write(spoilt.values);
        ASSERT_FALSE(backend.all_finite(placed.tensor())) << name_of(shape) << " element " << i;
      }
    }
  }
  Array large = Draw(6).array({400, 700});
  EXPECT_TRUE(backend.all_finite(Placed(backend, large, Layout::dense).tensor()));
  large[large.size() - 1] = bad[0];
  EXPECT_FALSE(backend.all_finite(Placed(backend, large, Layout::dense).tensor()));
}

}  // namespace

void add_transfer_kernels(std::vector<Kernel>& to) {
  to.push_back({"upload", {}, check_transfer});
  to.push_back({"download", {}, check_transfer});
  to.push_back({"synchronise", {}, check_synchronise});
  to.push_back({"description", {}, check_description});
  to.push_back({"check_labels", {}, check_label_check});
  to.push_back({"all_finite", {}, check_all_finite});
}

}  // namespace gle::test
