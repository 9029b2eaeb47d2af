#pragma once

#include <span>

#include "data/dataset.h"
#include "data/decode.h"
#include "data/resample.h"
#include "tools/report/report.h"

namespace gle::report {

// Small pictures of a data set's items. Throws as the data set does.
class Thumbnails {
 public:
  Thumbnails(const data::Dataset& data, const data::DecodeOptions& decode);

  // The whole image, its longer side `side` pixels.
  Picture picture(uint32_t item, int side);
  // The middle square of each.
  Sheet sheet(std::span<const uint32_t> items, int side);

 private:
  void decode(uint32_t item);
  // Of the decoded picture, to RGB at `out` with rows of `stride` bytes.
  void resize(const data::Region& box, const data::Size& size, uint8_t* out, size_t stride);

  const data::Dataset& data_;
  data::DecodeOptions options_;
  data::Bytes bytes_;
  data::Image image_;
  data::Region box_;
  data::Resampler resampler_;
};

// A JPEG file of RGB pixels.
std::string jpeg_of(const std::vector<uint8_t>& pixels, int width, int height, int quality);

}  // namespace gle::report
