// Inception-v3 without its auxiliary classifier: every unit is a convolution without bias, batch-norm and ReLU.
#include <initializer_list>

#include "models/graph_builder.h"

namespace gle {

namespace {

constexpr Pool2dOptions kHalving{.kernel_h = 3, .kernel_w = 3, .stride_h = 2, .stride_w = 2};
constexpr Pool2dOptions kSameSize{.kernel_h = 3, .kernel_w = 3, .stride_h = 1, .stride_w = 1, .pad_h = 1, .pad_w = 1};

// A unit of a branch: padded to keep the size, unless it halves it.
struct Unit {
  const char* name;
  int64_t out;
  int kernel_h = 1;
  int kernel_w = 1;
  int stride = 1;
};
using Branch = std::initializer_list<Unit>;

class Blocks {
 public:
  Blocks(GraphBuilder& builder, InceptionV3Pools pools) : b_(builder), pools_(pools) {}

  Place unit(const std::string& block, const Unit& u, const Place& in, const std::optional<Place>& out = {},
             bool last = false) {
    const std::string name = block + "." + u.name;
    const bool padded = u.stride == 1;
    return b_.conv_norm(name + ".conv", name + ".bn", in,
                        {.out = u.out,
                         .kernel_h = u.kernel_h,
                         .kernel_w = u.kernel_w,
                         .stride = u.stride,
                         .pad_h = padded ? u.kernel_h / 2 : 0,
                         .pad_w = padded ? u.kernel_w / 2 : 0},
                        out, last);
  }

  // Branches side by side; behind them a pool with a projection, or with projection 0 the halving pool alone.
  Place mixed(const std::string& block, const Place& x, std::initializer_list<Branch> branches, int64_t projection) {
    int64_t width = projection > 0 ? projection : x.channels();
    for (const Branch& branch : branches) {
      width += std::prev(branch.end())->out;
    }
    const Place y = b_.new_value(width);
    int64_t taken = 0;
    for (const Branch& branch : branches) {
      Place at = x;
      for (const Unit& u : branch) {
        const bool ends = &u == std::prev(branch.end());
        at = unit(block, u, at, ends ? std::optional(b_.part(y, taken, u.out)) : std::nullopt);
      }
    }
    if (projection > 0) {
      unit(block, {"branch_pool", projection}, average(block, x), b_.part(y, taken, projection));
    } else {
      b_.max_pool(block + ".pool", x, kHalving, b_.part(y, taken, x.channels()));
    }
    return y;
  }

  Place a(const std::string& block, const Place& x, int64_t projection) {
    return mixed(block, x,
                 {{{"branch1x1", 64}},
                  {{"branch5x5_1", 48}, {"branch5x5_2", 64, 5, 5}},
                  {{"branch3x3dbl_1", 64}, {"branch3x3dbl_2", 96, 3, 3}, {"branch3x3dbl_3", 96, 3, 3}}},
                 projection);
  }

  Place b(const std::string& block, const Place& x) {
    return mixed(block, x,
                 {{{"branch3x3", 384, 3, 3, 2}},
                  {{"branch3x3dbl_1", 64}, {"branch3x3dbl_2", 96, 3, 3}, {"branch3x3dbl_3", 96, 3, 3, 2}}},
                 0);
  }

  Place c(const std::string& block, const Place& x, int64_t width) {
    return mixed(block, x,
                 {{{"branch1x1", 192}},
                  {{"branch7x7_1", width}, {"branch7x7_2", width, 1, 7}, {"branch7x7_3", 192, 7, 1}},
                  {{"branch7x7dbl_1", width},
                   {"branch7x7dbl_2", width, 7, 1},
                   {"branch7x7dbl_3", width, 1, 7},
                   {"branch7x7dbl_4", width, 7, 1},
                   {"branch7x7dbl_5", 192, 1, 7}}},
                 192);
  }

  Place d(const std::string& block, const Place& x) {
    return mixed(block, x,
                 {{{"branch3x3_1", 192}, {"branch3x3_2", 320, 3, 3, 2}},
                  {{"branch7x7x3_1", 192},
                   {"branch7x7x3_2", 192, 1, 7},
                   {"branch7x7x3_3", 192, 7, 1},
                   {"branch7x7x3_4", 192, 3, 3, 2}}},
                 0);
  }

  // Two of its branches fork at their ends.
  Place e(const std::string& block, const Place& x, bool last) {
    const Place y = b_.new_value(2048);
    int64_t taken = 0;
    const auto end = [&](const Unit& u, const Place& in) { unit(block, u, in, b_.part(y, taken, u.out), last); };
    end({"branch1x1", 320}, x);
    const Place three = unit(block, {"branch3x3_1", 384}, x);
    end({"branch3x3_2a", 384, 1, 3}, three);
    end({"branch3x3_2b", 384, 3, 1}, three);
    const Place reduced = unit(block, {"branch3x3dbl_1", 448}, x);
    const Place double_three = unit(block, {"branch3x3dbl_2", 384, 3, 3}, reduced);
    end({"branch3x3dbl_3a", 384, 1, 3}, double_three);
    end({"branch3x3dbl_3b", 384, 3, 1}, double_three);
    const bool maximum = last && pools_ == InceptionV3Pools::of_2015;
    end({"branch_pool", 192}, maximum ? b_.max_pool(block + ".pool", x, kSameSize) : average(block, x));
    return y;
  }

 private:
  Place average(const std::string& block, const Place& x) {
    Pool2dOptions options = kSameSize;
    options.padding = pools_ == InceptionV3Pools::of_2015 ? Padding::ignored : Padding::counted;
    return b_.average_pool(block + ".pool", x, options);
  }

  GraphBuilder& b_;
  InceptionV3Pools pools_;
};

}  // namespace

Graph build_inception_v3(GraphBuilder& b, InceptionV3Pools pools) {
  const auto stem = [&](const std::string& name, const Place& in, const ConvSpec& spec) {
    return b.conv_norm(name + ".conv", name + ".bn", in, spec);
  };
  Place x = stem("Conv2d_1a_3x3", b.image(), {.out = 32, .kernel_h = 3, .kernel_w = 3, .stride = 2});
  x = stem("Conv2d_2a_3x3", x, {.out = 32, .kernel_h = 3, .kernel_w = 3});
  x = stem("Conv2d_2b_3x3", x, {.out = 64, .kernel_h = 3, .kernel_w = 3, .pad_h = 1, .pad_w = 1});
  x = b.max_pool("maxpool1", x, kHalving);
  x = stem("Conv2d_3b_1x1", x, {.out = 80});
  x = stem("Conv2d_4a_3x3", x, {.out = 192, .kernel_h = 3, .kernel_w = 3});
  x = b.max_pool("maxpool2", x, kHalving);
  Blocks blocks(b, pools);
  x = blocks.a("Mixed_5b", x, 32);
  x = blocks.a("Mixed_5c", x, 64);
  x = blocks.a("Mixed_5d", x, 64);
  x = blocks.b("Mixed_6a", x);
  x = blocks.c("Mixed_6b", x, 128);
  x = blocks.c("Mixed_6c", x, 160);
  x = blocks.c("Mixed_6d", x, 160);
  x = blocks.c("Mixed_6e", x, 192);
  x = blocks.d("Mixed_7a", x);
  x = blocks.e("Mixed_7b", x, false);
  x = blocks.e("Mixed_7c", x, true);
  return b.finish(x);
}

}  // namespace gle
