#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "data/image.h"
#include "data/random.h"
#include "data/resample.h"
#include "data/turn.h"
#include "engine/options.h"

namespace gle::data {

// How the picture is brought to size, before mirror, pad and crop.
enum class Geometry { as_is, resize, resize_short_side, random_resized_crop };
enum class Crop { none, centre, random };
enum class ColourOrder { rgb, bgr };

// y = (v * scale - mean) / deviation for the bytes v of a pixel; mean and deviation are in the output's order.
struct Colours {
  ColourOrder order = ColourOrder::rgb;
  float scale = 1.0F / 255;
  std::array<float, 3> mean = {0, 0, 0};
  std::array<float, 3> deviation = {1, 1, 1};
};
inline constexpr Colours kImageNetColours{
    ColourOrder::rgb, 1.0F / 255, {0.485F, 0.456F, 0.406F}, {0.229F, 0.224F, 0.225F}};
inline constexpr Colours kBnInceptionColours{ColourOrder::bgr, 1.0F, {104, 117, 128}, {1, 1, 1}};

struct Range {
  double low = 0;
  double high = 0;
};

// In this order: box of the data set, geometry, turn and shift, mirror, pad with black, crop, erase, colours. The
// rounding and the distributions are torchvision's.
struct TransformOptions {
  Geometry geometry = Geometry::resize;
  Size size = {224, 224};  // resize, random_resized_crop
  int short_side = 256;    // resize_short_side
  Range area = {0.08, 1.0};
  Range aspect = {3.0 / 4, 4.0 / 3};
  Filter filter = Filter::bilinear;
  double turn = 0;                               // degrees, at most, either way
  double shift = 0;                              // share of width and height, at most, either way
  std::array<uint8_t, 3> turn_fill = {0, 0, 0};  // what turn and shift leave bare: red, green, blue
  double mirror = 0;                             // probability
  int pad = 0;                                   // on all four sides
  Crop crop = Crop::none;
  Size crop_size = {224, 224};
  double erase = 0;  // probability
  Range erase_area = {0.02, 0.4};
  Range erase_aspect = {0.3, 3.33};
  float erase_value = 0;  // after the colours: 0 is their mean
  Colours colours = {};

  // Of what comes out. Throws ErrorCode::usage for options that have no one size, or make no sense.
  Size output() const;
  // How bytes in the output's order become what comes out.
  PixelScale scale() const;
};

// All that chance decides about one image, and what follows from it.
struct TransformPlan {
  Region box;     // of the picture
  Size size;      // that it is resized to
  Region window;  // of that, what is seen
  Turn turn;      // of the resized picture
  bool mirror = false;
  int left = 0;  // where the window is in the output; around it is black
  int top = 0;
  Region erase;
};

// `box` empty: the whole picture of width x height.
TransformPlan plan_transform(const TransformOptions& options, int width, int height, const Region& box, Random& random);

// Carries plans out. One object per thread; it keeps its buffers.
class Transformer {
 public:
  Transformer(const TransformOptions& options, const PixelKernels& kernels);

  // What of the picture run() will read; empty if all is black.
  Region needed(const TransformPlan& plan) const;
  // Writes one image of the batch: output() pixels of three floats.
  void run(const Image& image, const TransformPlan& plan, float* out);
  // The same before colours and erasing: Backend::images_from_bytes does these, to the same bits.
  void run(const Image& image, const TransformPlan& plan, uint8_t* out);

 private:
  void turn(const Image& image, const TransformPlan& plan);
  template <class Put>
  void for_rows(const Image& image, const TransformPlan& plan, const Put& put);

  TransformOptions options_;
  Size output_;
  const PixelKernels& kernels_;
  Resampler resampler_;
  Turner turner_;
  std::array<float, 48> shift_{};
  std::array<float, 48> factor_{};
  std::vector<uint8_t> line_;
};

}  // namespace gle::data
