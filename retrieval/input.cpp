#include "retrieval/input.h"

namespace gle {

data::Colours colours_of(const InputDescription& input) {
  return {.order = input.bgr ? data::ColourOrder::bgr : data::ColourOrder::rgb,
          .scale = input.scale,
          .mean = input.mean,
          .deviation = input.deviation};
}

data::TransformOptions inference_transform(const InputDescription& input) {
  data::TransformOptions options{.size = {.width = input.width, .height = input.height}, .colours = colours_of(input)};
  if (input.short_side > 0 || input.square > 0) {
    options.crop = data::Crop::centre;
    options.crop_size = options.size;
  }
  if (input.short_side > 0) {
    options.geometry = data::Geometry::resize_short_side;
    options.short_side = input.short_side;
  } else if (input.square > 0) {
    options.size = {.width = input.square, .height = input.square};
  }
  return options;
}

}  // namespace gle
