#include "data/transform.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "engine/error.h"

namespace gle::data {

namespace {

constexpr int kTries = 10;

struct Extent {
  int width;
  int height;
};

// A rectangle of the given share of the picture and the given aspect, or none that fits.
bool draw_extent(const Range& area, const Range& aspect, double pixels, Random& random, Extent& extent) {
  const double target = pixels * random.uniform(area.low, area.high);
  const double ratio = std::exp(random.uniform(std::log(aspect.low), std::log(aspect.high)));
  extent.width = static_cast<int>(std::nearbyint(std::sqrt(target * ratio)));
  extent.height = static_cast<int>(std::nearbyint(std::sqrt(target / ratio)));
  return extent.width > 0 && extent.height > 0;
}

Region random_resized_box(const TransformOptions& options, const Region& all, Random& random) {
  for (int i = 0; i < kTries; ++i) {
    Extent e{};
    const double pixels = static_cast<double>(all.width) * all.height;
    if (draw_extent(options.area, options.aspect, pixels, random, e) && e.width <= all.width &&
        e.height <= all.height) {
      const auto y = static_cast<int>(random.below(static_cast<uint32_t>(all.height - e.height + 1)));
      const auto x = static_cast<int>(random.below(static_cast<uint32_t>(all.width - e.width + 1)));
      return {all.x + x, all.y + y, e.width, e.height};
    }
  }
  // The centre, cut to the nearest aspect that is allowed.
  const double ratio = static_cast<double>(all.width) / all.height;
  int width = all.width;
  int height = all.height;
  if (ratio < options.aspect.low) {
    height = std::clamp(static_cast<int>(std::nearbyint(width / options.aspect.low)), 1, all.height);
  } else if (ratio > options.aspect.high) {
    width = std::clamp(static_cast<int>(std::nearbyint(height * options.aspect.high)), 1, all.width);
  }
  return {all.x + (all.width - width) / 2, all.y + (all.height - height) / 2, width, height};
}

Size short_side_size(int side, const Region& box) {
  const bool upright = box.width <= box.height;
  const int64_t shorter = upright ? box.width : box.height;
  const int64_t longer = upright ? box.height : box.width;
  const auto length = static_cast<int>(side * longer / shorter);
  return upright ? Size{side, length} : Size{length, side};
}

// Half of the difference, as torchvision rounds it; negative if the picture is smaller than the crop.
int centred(int have, int want) {
  return have >= want ? static_cast<int>(std::nearbyint((have - want) / 2.0)) : -((want - have) / 2);
}

Region random_erase(const TransformOptions& options, const Size& output, Random& random) {
  for (int i = 0; i < kTries; ++i) {
    Extent e{};
    const double pixels = static_cast<double>(output.width) * output.height;
    if (draw_extent(options.erase_area, options.erase_aspect, pixels, random, e) && e.width < output.width &&
        e.height < output.height) {
      const auto y = static_cast<int>(random.below(static_cast<uint32_t>(output.height - e.height + 1)));
      const auto x = static_cast<int>(random.below(static_cast<uint32_t>(output.width - e.width + 1)));
      return {x, y, e.width, e.height};
    }
  }
  return {};
}

void require_range(const char* what, const Range& range, double least, double most) {
  require(range.low > least && range.high >= range.low && range.high <= most, "transform", what, " from ", range.low,
          " to ", range.high, "; expected a range above ", least, " and up to ", most);
}

void require_share(const char* what, double value) {
  require(value >= 0 && value <= 1, "transform", what, " is ", value, "; expected a number from 0 to 1");
}

void require_size(const char* what, int width, int height) {
  constexpr int kMost = 8192;
  require(width > 0 && height > 0 && width <= kMost && height <= kMost, "transform", what, " is ", width, " x ", height,
          "; expected 1 to ", kMost, " pixels a side");
}

}  // namespace

Size TransformOptions::output() const {
  require_share("mirror", mirror);
  require_share("erase", erase);
  require(turn >= 0 && turn <= 180, "transform", "turn is ", turn, "; expected 0 to 180 degrees");
  require_share("shift", shift);
  require(pad >= 0 && pad <= 4096, "transform", "pad is ", pad, "; expected 0 to 4096 pixels");
  require(colours.scale > 0 && colours.deviation[0] > 0 && colours.deviation[1] > 0 && colours.deviation[2] > 0,
          "transform", "scale and deviations of the colours must be positive");
  if (erase > 0) {
    require_range("erase_area", erase_area, 0, 1);
    require_range("erase_aspect", erase_aspect, 0, 1e3);
  }
  if (geometry == Geometry::random_resized_crop) {
    require_range("area", area, 0, 1);
    require_range("aspect", aspect, 0, 1e3);
  }
  if (geometry == Geometry::resize_short_side) {
    require_size("short_side", short_side, short_side);
  }
  const bool fixed = geometry == Geometry::resize || geometry == Geometry::random_resized_crop;
  if (fixed) {
    require_size("size", size.width, size.height);
  }
  if (crop != Crop::none) {
    require_size("crop_size", crop_size.width, crop_size.height);
    return crop_size;
  }
  require(fixed, "transform", "without a crop the images of a batch would differ in size; resize them or crop them");
  return {size.width + 2 * pad, size.height + 2 * pad};
}

PixelScale TransformOptions::scale() const {
  PixelScale result{.erased = erase_value};
  for (size_t i = 0; i < 3; ++i) {
    result.shift[i] = colours.mean[i] / colours.scale;
    result.factor[i] = colours.scale / colours.deviation[i];
  }
  return result;
}

TransformPlan plan_transform(const TransformOptions& options, int width, int height, const Region& box,
                             Random& random) {
  TransformPlan plan;
  plan.box = box.width > 0 ? box : Region{0, 0, width, height};
  switch (options.geometry) {
    case Geometry::as_is:
      plan.size = {plan.box.width, plan.box.height};
      break;
    case Geometry::resize:
      plan.size = options.size;
      break;
    case Geometry::resize_short_side:
      plan.size = short_side_size(options.short_side, plan.box);
      break;
    case Geometry::random_resized_crop:
      plan.box = random_resized_box(options, plan.box, random);
      plan.size = options.size;
      break;
  }
  if (options.turn > 0 || options.shift > 0) {
    const double degrees = random.uniform(-options.turn, options.turn);
    const double right = random.uniform(-options.shift, options.shift) * plan.size.width;
    const double down = random.uniform(-options.shift, options.shift) * plan.size.height;
    plan.turn = turn_of(degrees, right, down);
  }
  plan.mirror = options.mirror > 0 && random.uniform() < options.mirror;
  const Size padded{plan.size.width + 2 * options.pad, plan.size.height + 2 * options.pad};
  Size output = padded;
  int x = 0;
  int y = 0;
  if (options.crop != Crop::none) {
    output = options.crop_size;
    x = centred(padded.width, output.width);
    y = centred(padded.height, output.height);
    if (options.crop == Crop::random) {
      y = padded.height > output.height
              ? static_cast<int>(random.below(static_cast<uint32_t>(padded.height - output.height + 1)))
              : y;
      x = padded.width > output.width
              ? static_cast<int>(random.below(static_cast<uint32_t>(padded.width - output.width + 1)))
              : x;
    }
  }
  // What is seen of the resized (and mirrored) picture, and where.
  const int begin_x = std::clamp(x - options.pad, 0, plan.size.width);
  const int begin_y = std::clamp(y - options.pad, 0, plan.size.height);
  const int end_x = std::clamp(x - options.pad + output.width, begin_x, plan.size.width);
  const int end_y = std::clamp(y - options.pad + output.height, begin_y, plan.size.height);
  plan.left = begin_x + options.pad - x;
  plan.top = begin_y + options.pad - y;
  plan.window = {plan.mirror ? plan.size.width - end_x : begin_x, begin_y, end_x - begin_x, end_y - begin_y};
  if (options.erase > 0 && random.uniform() < options.erase) {
    plan.erase = random_erase(options, output, random);
  }
  return plan;
}

Transformer::Transformer(const TransformOptions& options, const PixelKernels& kernels)
    : options_(options),
      output_(options.output()),
      kernels_(kernels),
      resampler_(kernels),
      line_(static_cast<size_t>(output_.width) * 3 + Image::kSlack) {
  const PixelScale scale = options_.scale();
  for (size_t i = 0; i < shift_.size(); ++i) {
    shift_[i] = scale.shift[i % 3];
    factor_[i] = scale.factor[i % 3];
  }
}

Region Transformer::needed(const TransformPlan& plan) const {
  if (plan.window.width == 0 || plan.window.height == 0) {
    return {};
  }
  const Region all{0, 0, plan.size.width, plan.size.height};
  return Resampler::needed(plan.box, plan.size, plan.turn == Turn{} ? plan.window : all, options_.filter);
}

void Transformer::turn(const Image& image, const TransformPlan& plan) {
  const Size& size = plan.size;
  resampler_.begin(image, plan.box, size, {0, 0, size.width, size.height}, options_.filter);
  uint8_t* to = turner_.begin(size, plan.turn, options_.turn_fill);
  const size_t bytes = static_cast<size_t>(size.width) * 3;
  for (int y = 0; y < size.height; ++y) {
    std::memcpy(to + static_cast<size_t>(y) * bytes, resampler_.row(y), bytes);
  }
}

// put(y, its bytes in the output's order) for every row of the output.
template <class Put>
void Transformer::for_rows(const Image& image, const TransformPlan& plan, const Put& put) {
  const Region& window = plan.window;
  const bool any = window.width > 0 && window.height > 0;
  const bool turned = any && !(plan.turn == Turn{});
  if (turned) {
    turn(image, plan);
  } else if (any) {
    resampler_.begin(image, plan.box, plan.size, window, options_.filter);
  }
  const bool bgr = options_.colours.order == ColourOrder::bgr;
  const bool as_is = any && !turned && !plan.mirror && !bgr && window.width == output_.width;
  std::fill(line_.begin(), line_.end(), uint8_t{0});
  bool black = true;
  for (int y = 0; y < output_.height; ++y) {
    const bool inside = any && y >= plan.top && y < plan.top + window.height;
    if (!inside) {
      if (!black) {
        std::fill(line_.begin(), line_.end(), uint8_t{0});
        black = true;
      }
      put(y, line_.data());
      continue;
    }
    const uint8_t* pixels =
        turned ? turner_.row(window.y + y - plan.top, window.x, window.width) : resampler_.row(y - plan.top);
    if (as_is) {
      put(y, pixels);
      continue;
    }
    black = false;
    uint8_t* line = line_.data() + static_cast<size_t>(plan.left) * 3;
    const int red = bgr ? 2 : 0;
    for (int x = 0; x < window.width; ++x) {
      const uint8_t* pixel = pixels + 3 * (plan.mirror ? window.width - 1 - x : x);
      line[3 * x + red] = pixel[0];
      line[3 * x + 1] = pixel[1];
      line[3 * x + 2 - red] = pixel[2];
    }
    put(y, line_.data());
  }
}

void Transformer::run(const Image& image, const TransformPlan& plan, float* out) {
  const size_t values = static_cast<size_t>(output_.width) * 3;
  for_rows(image, plan, [&](int y, const uint8_t* row) {
    kernels_.to_float(row, values, shift_.data(), factor_.data(), out + static_cast<size_t>(y) * values);
  });
  for (int y = plan.erase.y; y < plan.erase.y + plan.erase.height; ++y) {
    std::fill_n(out + static_cast<size_t>(y) * values + static_cast<size_t>(plan.erase.x) * 3,
                static_cast<size_t>(plan.erase.width) * 3, options_.erase_value);
  }
}

void Transformer::run(const Image& image, const TransformPlan& plan, uint8_t* out) {
  const size_t values = static_cast<size_t>(output_.width) * 3;
  for_rows(image, plan,
           [&](int y, const uint8_t* row) { std::memcpy(out + static_cast<size_t>(y) * values, row, values); });
}

}  // namespace gle::data
