#include "tests/shapes.h"

#include <algorithm>
#include <iterator>
#include <sstream>

namespace gle::test {

std::vector<Shape> row_shapes() {
  std::vector<Shape> shapes = {{1, 1},         {1, 7},          {3, 1},        {2, 2},        {5, 17},
                               {4, 33},        {7, 100},        {1, 1000},     {300, 8},      {129, 3},
                               {2, 64},        {3, 48},         {1, 1, 1, 1},  {1, 1, 1, 31}, {2, 3, 5, 7},
                               {3, 5, 2, 9},   {1, 4, 1, 16},   {2, 1, 6, 24}, {2, 5, 3, 64}, {1, 3, 3, 257},
                               {2, 65, 1, 16}, {2, 40, 48, 53}, {3000, 65}};
  Draw draw(1);
  for (int i = 0; i < 14; ++i) {
    shapes.push_back({draw.integer(1, 40), draw.integer(1, 70)});
    shapes.push_back({draw.integer(1, 3), draw.integer(1, 7), draw.integer(1, 7), draw.integer(1, 70)});
  }
  return shapes;
}

std::vector<Shape> matrix_shapes() {
  std::vector<Shape> shapes;
  std::ranges::copy_if(row_shapes(), std::back_inserter(shapes), [](const Shape& s) { return s.rank() == 2; });
  Draw draw(4);
  for (int i = 0; i < 25; ++i) {
    shapes.push_back({draw.integer(1, 20), draw.integer(1, 150)});
  }
  return shapes;
}

std::vector<ConvGeometry> conv_geometries() {
  std::vector<ConvGeometry> all = {
      // single pixels, channels and filters
      {{1, 1, 1, 1}, {1, 1, 1, 1}, {}, true},
      {{1, 1, 1, 1}, {1, 3, 3, 1}, {1, 1, 1, 1}, false},
      {{2, 1, 1, 17}, {5, 1, 1, 17}, {}, true},
      // the usual kernels, channel counts off the vector widths
      {{2, 5, 7, 3}, {4, 3, 3, 3}, {1, 1, 1, 1}, true},
      {{2, 6, 5, 17}, {19, 3, 3, 17}, {1, 1, 1, 1}, false},
      {{1, 7, 7, 64}, {64, 3, 3, 64}, {1, 1, 1, 1}, true},
      {{2, 4, 6, 64}, {33, 1, 1, 64}, {}, false},
      {{1, 9, 11, 8}, {16, 5, 5, 8}, {1, 1, 2, 2}, true},
      {{1, 4, 4, 100}, {50, 3, 3, 100}, {1, 1, 1, 1}, true},
      // 3x3 with many channels: odd and even sizes, every padding, single pixels, several groups of squares
      {{2, 7, 10, 40}, {36, 3, 3, 40}, {1, 1, 1, 1}, true},
      {{1, 6, 5, 48}, {33, 3, 3, 48}, {1, 1, 0, 2}, false},
      {{3, 4, 8, 32}, {68, 3, 3, 32}, {1, 1, 2, 0}, true},
      {{2, 1, 1, 33}, {40, 3, 3, 33}, {1, 1, 1, 1}, true},
      {{2, 3, 3, 130}, {47, 3, 3, 130}, {1, 1, 0, 0}, false},
      {{2, 46, 47, 32}, {35, 3, 3, 32}, {1, 1, 1, 1}, false},
      {{1, 29, 27, 33}, {36, 3, 3, 33}, {1, 1, 1, 1}, true},
      // strides
      {{2, 9, 9, 3}, {8, 3, 3, 3}, {2, 2, 1, 1}, true},
      {{1, 15, 13, 3}, {12, 7, 7, 3}, {2, 2, 3, 3}, true},
      {{2, 8, 8, 32}, {24, 1, 1, 32}, {2, 2, 0, 0}, false},
      {{1, 10, 9, 5}, {6, 3, 3, 5}, {3, 2, 1, 0}, true},
      {{1, 11, 7, 4}, {3, 2, 2, 4}, {4, 3, 1, 1}, false},
      // rectangular kernels and paddings
      {{1, 8, 8, 16}, {16, 1, 7, 16}, {1, 1, 0, 3}, true},
      {{1, 8, 8, 16}, {16, 7, 1, 16}, {1, 1, 3, 0}, false},
      {{2, 6, 9, 9}, {7, 2, 4, 9}, {1, 2, 1, 0}, true},
      {{1, 5, 12, 1}, {2, 4, 3, 1}, {2, 1, 0, 2}, true},
      // kernels larger than the picture
      {{1, 2, 3, 6}, {5, 5, 5, 6}, {1, 1, 2, 2}, true},
      {{2, 1, 2, 3}, {4, 3, 6, 3}, {1, 1, 1, 2}, false},
      {{1, 3, 1, 2}, {2, 7, 5, 2}, {2, 1, 3, 2}, true},
      // enough work for several bands and threads
      {{3, 28, 30, 16}, {40, 3, 3, 16}, {1, 1, 1, 1}, false},
      {{2, 40, 40, 3}, {24, 7, 7, 3}, {2, 2, 3, 3}, true},
      {{4, 14, 14, 96}, {72, 1, 1, 96}, {}, true},
      // so many pixels that the sum over them is cut into groups
      {{2, 64, 64, 4}, {8, 3, 3, 4}, {1, 1, 1, 1}, false},
      {{2, 58, 60, 17}, {10, 3, 3, 17}, {1, 1, 1, 0}, true},
      {{3, 50, 50, 8}, {9, 1, 1, 8}, {}, false},
  };
  Draw draw(2);
  while (all.size() < 79) {
    const int64_t c = draw.one_of<int64_t>({1, 2, 3, 7, 8, 16, 17, 24, 31, 64});
    const int64_t k = draw.one_of<int64_t>({1, 2, 5, 8, 15, 16, 24, 33, 48, 65});
    const int r = draw.small(1, 5), s = draw.small(1, 5);
    const Conv2dOptions options{draw.small(1, 3), draw.small(1, 3), draw.small(0, r - 1), draw.small(0, s - 1)};
    const int64_t h = draw.integer(std::max(1, r - 2 * options.pad_h), 9);
    const int64_t w = draw.integer(std::max(1, s - 2 * options.pad_w), 9);
    all.push_back({{draw.integer(1, 3), h, w, c}, {k, r, s, c}, options, draw.integer(0, 1) == 1});
  }
  return all;
}

std::string name_of(const ConvGeometry& g) {
  std::ostringstream text;
  text << "x" << g.x << " w" << g.w << " stride " << g.options.stride_h << "x" << g.options.stride_w << " pad "
       << g.options.pad_h << "x" << g.options.pad_w << (g.with_bias ? " bias" : "");
  return text.str();
}

std::vector<PoolGeometry> pool_geometries() {
  std::vector<PoolGeometry> all;
  for (const Rounding rounding : {Rounding::floor, Rounding::ceil}) {
    for (const Padding padding : {Padding::counted, Padding::ignored}) {
      const auto with = [&](const Shape& x, Pool2dOptions options) {
        options.rounding = rounding;
        options.padding = padding;
        all.push_back({x, options});
      };
      with({1, 1, 1, 1}, {1, 1, 1, 1, 0, 0});
      with({2, 2, 2, 3}, {2, 2, 2, 2, 0, 0});
      with({1, 7, 8, 17}, {3, 3, 2, 2, 0, 0});  // GoogLeNet's, overlapping
      with({2, 9, 6, 5}, {3, 3, 2, 2, 1, 1});   // ResNet's
      with({1, 8, 5, 33}, {3, 3, 1, 1, 1, 1});  // an inception block's
      with({1, 6, 7, 64}, {2, 3, 1, 2, 1, 0});
      with({1, 5, 9, 8}, {2, 2, 3, 4, 0, 1});      // windows with gaps between them
      with({1, 2, 3, 2}, {4, 4, 1, 2, 2, 1});      // larger than the picture
      with({1, 16, 16, 2}, {15, 17, 1, 1, 7, 8});  // 255 taps
      with({2, 40, 41, 24}, {3, 3, 2, 2, 0, 0});
    }
  }
  Draw draw(3);
  while (all.size() < 80) {
    const int kh = draw.small(1, 5), kw = draw.small(1, 5);
    const Pool2dOptions options{kh,
                                kw,
                                draw.small(1, 4),
                                draw.small(1, 4),
                                draw.small(0, kh / 2),
                                draw.small(0, kw / 2),
                                draw.integer(0, 1) == 0 ? Rounding::floor : Rounding::ceil,
                                draw.integer(0, 1) == 0 ? Padding::counted : Padding::ignored};
    const int64_t h = draw.integer(std::max(1, kh - 2 * options.pad_h), 12);
    const int64_t w = draw.integer(std::max(1, kw - 2 * options.pad_w), 12);
    all.push_back({{draw.integer(1, 3), h, w, draw.integer(1, 40)}, options});
  }
  return all;
}

std::string name_of(const PoolGeometry& g) {
  const Pool2dOptions& o = g.options;
  std::ostringstream text;
  text << "x" << g.x << " window " << o.kernel_h << "x" << o.kernel_w << " stride " << o.stride_h << "x" << o.stride_w
       << " pad " << o.pad_h << "x" << o.pad_w << (o.rounding == Rounding::ceil ? " ceil" : "")
       << (o.padding == Padding::ignored ? " padding ignored" : "");
  return text.str();
}

}  // namespace gle::test
