#include "data/transform.h"

#include <cmath>

#include "data/decode.h"
#include "engine/cpu/cpu.h"
#include "tests/data/support.h"

namespace gle::data::test {

namespace {

Image picture(int width, int height) {
  Image image;
  decode_image(bmp_picture(width, height, 9), "x", {}, image);
  return image;
}

std::vector<float> run(const TransformOptions& options, const Image& image, const TransformPlan& plan) {
  const Size size = options.output();
  std::vector<float> out(static_cast<size_t>(size.width * size.height * 3), -99.0F);
  Transformer(options, pixel_kernels(cpu::chosen_isa())).run(image, plan, out.data());
  return out;
}

// The definition, pixel by pixel, for pictures that keep their size.
std::vector<float> plainly(const TransformOptions& options, const Image& image, const TransformPlan& plan) {
  const Size size = options.output();
  std::vector<float> out;
  for (int y = 0; y < size.height; ++y) {
    for (int x = 0; x < size.width; ++x) {
      for (int c = 0; c < 3; ++c) {
        const auto C = static_cast<size_t>(c);
        const int wx = x - plan.left;
        const int wy = y - plan.top;
        float v = 0;
        if (wx >= 0 && wy >= 0 && wx < plan.window.width && wy < plan.window.height) {
          const int sx = plan.window.x + (plan.mirror ? plan.window.width - 1 - wx : wx);
          const int channel = options.colours.order == ColourOrder::bgr ? 2 - c : c;
          v = image.at(plan.box.x + sx, plan.box.y + plan.window.y + wy)[channel];
        }
        v = (v * options.colours.scale - options.colours.mean[C]) / options.colours.deviation[C];
        const Region& e = plan.erase;
        const bool erased = x >= e.x && x < e.x + e.width && y >= e.y && y < e.y + e.height;
        out.push_back(erased ? options.erase_value : v);
      }
    }
  }
  return out;
}

TEST(Transform, EqualsItsDefinition) {
  const Image image = picture(37, 29);
  for (const Colours& colours : {kImageNetColours, kBnInceptionColours}) {
    TransformOptions options;
    options.geometry = Geometry::as_is;
    options.mirror = 0.5;
    options.pad = 4;
    options.crop = Crop::random;
    options.crop_size = {31, 33};
    options.erase = 0.7;
    options.colours = colours;
    bool mirrored = false;
    bool erased = false;
    for (uint64_t i = 0; i < 40; ++i) {
      Random random(1, 2, Purpose::transform, i, i);
      const TransformPlan plan = plan_transform(options, 37, 29, {}, random);
      mirrored = mirrored || plan.mirror;
      erased = erased || plan.erase.width > 0;
      const auto found = run(options, image, plan);
      const auto expected = plainly(options, image, plan);
      ASSERT_EQ(found.size(), expected.size());
      for (size_t k = 0; k < found.size(); ++k) {
        ASSERT_NEAR(found[k], expected[k], 1e-4) << "value " << k << " of image " << i;
      }
    }
    EXPECT_TRUE(mirrored && erased);
  }
}

TEST(Transform, SameBitsOnEveryInstructionSet) {
  const Image image = picture(61, 47);
  TransformOptions options;
  options.geometry = Geometry::random_resized_crop;
  options.size = {35, 27};
  options.mirror = 0.5;
  options.colours = kImageNetColours;
  for (uint64_t i = 0; i < 20; ++i) {
    std::vector<float> first;
    for (const cpu::Isa isa : {cpu::Isa::baseline, cpu::Isa::avx2, cpu::Isa::avx512}) {
      if (!cpu::supported(isa)) {
        continue;
      }
      Random random(1, 0, Purpose::transform, i, 0);
      std::vector<float> out(35 * 27 * 3);
      Transformer(options, pixel_kernels(isa)).run(image, plan_transform(options, 61, 47, {}, random), out.data());
      if (first.empty()) {
        first = out;
      }
      ASSERT_EQ(out, first);
    }
  }
}

TEST(Transform, RandomResizedCropHasItsDistribution) {
  TransformOptions options;
  options.geometry = Geometry::random_resized_crop;
  double area = 0;
  double log_aspect = 0;
  constexpr int kDraws = 4000;
  for (uint64_t i = 0; i < kDraws; ++i) {
    Random random(3, 0, Purpose::transform, i, 0);
    const TransformPlan plan = plan_transform(options, 1000, 1000, {}, random);
    EXPECT_GE(plan.box.x, 0);
    EXPECT_LE(plan.box.x + plan.box.width, 1000);
    EXPECT_LE(plan.box.y + plan.box.height, 1000);
    const double share = plan.box.width * static_cast<double>(plan.box.height) / 1e6;
    EXPECT_GT(share, 0.079);
    area += share;
    log_aspect += std::log(static_cast<double>(plan.box.width) / plan.box.height);
  }
  // Large areas fit seldom and are drawn again: torchvision's own mean on such a picture is 0.477.
  EXPECT_NEAR(area / kDraws, 0.477, 0.012);
  EXPECT_NEAR(log_aspect / kDraws, 0.0, 0.015);
  // A strip admits no draw: the centre at the widest aspect.
  Random random(3, 0, Purpose::transform);
  EXPECT_EQ(plan_transform(options, 1000, 10, {}, random).box, (Region{493, 0, 13, 10}));
}

TEST(Transform, SizesAsTorchvisionHasThem) {
  TransformOptions options;
  options.geometry = Geometry::resize_short_side;
  options.short_side = 256;
  options.crop = Crop::centre;
  options.crop_size = {227, 227};
  Random random(0, 0, Purpose::transform);
  TransformPlan plan = plan_transform(options, 213, 160, {}, random);
  EXPECT_EQ(plan.size, (Size{340, 256}));
  EXPECT_EQ(plan.window, (Region{56, 14, 227, 227}));  // 56.5 and 14.5 to even
  plan = plan_transform(options, 160, 213, {5, 6, 100, 50}, random);
  EXPECT_EQ(plan.size, (Size{512, 256}));
  EXPECT_EQ(plan.box, (Region{5, 6, 100, 50}));
  // Smaller than the crop: black around.
  options.geometry = Geometry::as_is;
  plan = plan_transform(options, 100, 300, {}, random);
  EXPECT_EQ(plan.left, 63);
  EXPECT_EQ(plan.window, (Region{0, 36, 100, 227}));
}

// The definition of a turn in doubles, for a picture that keeps its size.
double turned(const Image& image, double degrees, double right, double down, double fill, int x, int y, int channel) {
  const double angle = degrees * std::acos(-1.0) / 180;
  const double dx = x - (image.width - 1) / 2.0 - right;
  const double dy = y - (image.height - 1) / 2.0 - down;
  const double from_x = std::cos(angle) * dx - std::sin(angle) * dy + (image.width - 1) / 2.0;
  const double from_y = std::sin(angle) * dx + std::cos(angle) * dy + (image.height - 1) / 2.0;
  const double left = std::floor(from_x);
  const double top = std::floor(from_y);
  double sum = 0;
  for (int k = 0; k < 4; ++k) {
    const int px = static_cast<int>(left) + k % 2;
    const int py = static_cast<int>(top) + k / 2;
    const bool inside = px >= 0 && py >= 0 && px < image.width && py < image.height;
    const double weight = (k % 2 ? from_x - left : 1 - from_x + left) * (k / 2 ? from_y - top : 1 - from_y + top);
    sum += weight * (inside ? image.at(px, py)[channel] : fill);
  }
  return sum;
}

TEST(Transform, TurnsAndShifts) {
  const Image image = picture(37, 29);
  TransformOptions options;
  options.geometry = Geometry::as_is;
  options.crop = Crop::centre;
  options.crop_size = {37, 29};
  options.colours = {ColourOrder::rgb, 1.0F};
  options.turn_fill = {200, 100, 50};
  const double exact[][3] = {{0, 3, -2}, {90, 0, 0}, {17, 0, 0}, {-8.5, 2.25, 1.75}};
  for (const auto& [degrees, right, down] : exact) {
    Random random(0, 0, Purpose::transform);
    TransformPlan plan = plan_transform(options, 37, 29, {}, random);
    plan.turn = turn_of(degrees, right, down);
    const std::vector<float> found = run(options, image, plan);
    for (size_t i = 0; i < found.size(); ++i) {
      const int x = static_cast<int>(i / 3 % 37);
      const int y = static_cast<int>(i / 3 / 37);
      const auto channel = i % 3;
      // Weights have eight bits: a level of rounding, and what 1/256 of the largest step makes.
      ASSERT_NEAR(found[i],
                  turned(image, degrees, right, down, options.turn_fill[channel], x, y, static_cast<int>(channel)), 2.6)
          << degrees << " degrees, pixel " << x << "," << y;
    }
  }
}

TEST(Transform, TurnsWithinItsLimitsAndOnlyWhenAsked) {
  TransformOptions options;
  options.turn = 15;
  options.shift = 0.1;
  options.size = {64, 32};
  double most_sine = 0;
  double most_right = 0;
  for (uint64_t i = 0; i < 500; ++i) {
    Random random(4, 0, Purpose::transform, i, 0);
    const Turn turn = plan_transform(options, 100, 100, {}, random).turn;
    most_sine = std::max(most_sine, std::abs(turn.sine / 65536.0));
    most_right = std::max(most_right, std::abs(turn.right / 65536.0));
    ASSERT_LE(std::abs(turn.down / 65536.0), 3.2001);
  }
  EXPECT_NEAR(most_sine, std::sin(15 * std::acos(-1.0) / 180), 0.003);
  EXPECT_NEAR(most_right, 6.4, 0.1);
  Random random(4, 0, Purpose::transform);
  EXPECT_EQ(plan_transform({}, 100, 100, {}, random).turn, Turn{});
}

TEST(Transform, RefusesWhatMakesNoSense) {
  const auto error = [](TransformOptions options) {
    return error_of(ErrorCode::usage, [&] { static_cast<void>(options.output()); });
  };
  EXPECT_NE(error({.geometry = Geometry::resize_short_side}).find("differ in size"), std::string::npos);
  EXPECT_NE(error({.size = {0, 5}}).find("size is 0 x 5"), std::string::npos);
  EXPECT_NE(error({.turn = 181}).find("turn is 181"), std::string::npos);
  EXPECT_NE(error({.shift = -0.1}).find("shift is -0.1"), std::string::npos);
  EXPECT_NE(error({.mirror = 1.5}).find("mirror is 1.5"), std::string::npos);
  EXPECT_NE(error({.geometry = Geometry::random_resized_crop, .area = {0, 1}}).find("area"), std::string::npos);
}

}  // namespace

}  // namespace gle::data::test
