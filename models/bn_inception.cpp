// BN-Inception as ported from Caffe: pools round up, average pools count their padding.
#include <string_view>

#include "models/graph_builder.h"

namespace gle {

namespace {

enum class Pool { average, maximum, maximum_alone };

// Widths of the four branches; a module whose pool stands alone halves the picture and has no 1x1 branch.
struct Module {
  const char* name;
  int64_t one, three_reduce, three, double_reduce, double_three;
  Pool pool;
  int64_t pool_projection;
};

constexpr Module kModules[] = {
    {"inception_3a", 64, 64, 64, 64, 96, Pool::average, 32},
    {"inception_3b", 64, 64, 96, 64, 96, Pool::average, 64},
    {"inception_3c", 0, 128, 160, 64, 96, Pool::maximum_alone, 0},
    {"inception_4a", 224, 64, 96, 96, 128, Pool::average, 128},
    {"inception_4b", 192, 96, 128, 96, 128, Pool::average, 128},
    {"inception_4c", 160, 128, 160, 128, 160, Pool::average, 128},
    {"inception_4d", 96, 128, 192, 160, 192, Pool::average, 128},
    {"inception_4e", 0, 128, 192, 192, 256, Pool::maximum_alone, 0},
    {"inception_5a", 352, 192, 320, 160, 224, Pool::average, 128},
    {"inception_5b", 352, 192, 320, 192, 224, Pool::maximum, 128},
};

constexpr Pool2dOptions kHalving{
    .kernel_h = 3, .kernel_w = 3, .stride_h = 2, .stride_w = 2, .rounding = Rounding::ceil};
constexpr Pool2dOptions kSameSize{
    .kernel_h = 3, .kernel_w = 3, .stride_h = 1, .stride_w = 1, .pad_h = 1, .pad_w = 1, .rounding = Rounding::ceil};

Place build_module(GraphBuilder& b, const Module& m, const Place& x, Padding padding, bool last) {
  const std::string name = m.name;
  const bool halves = m.pool == Pool::maximum_alone;
  const auto unit = [&](const std::string& suffix, const Place& in, const ConvSpec& spec,
                        const std::optional<Place>& out = {}) {
    const std::string conv = name + suffix;
    return b.conv_norm(conv, conv + "_bn", in, spec, out, last && out.has_value());
  };
  const auto three = [](int64_t out, int stride) {
    return ConvSpec{.out = out, .kernel_h = 3, .kernel_w = 3, .stride = stride, .pad_h = 1, .pad_w = 1};
  };
  const int stride = halves ? 2 : 1;
  const Place y = b.new_value(m.one + m.three + m.double_three + (halves ? x.channels() : m.pool_projection));
  int64_t taken = 0;
  if (m.one > 0) {
    unit("_1x1", x, {.out = m.one}, b.part(y, taken, m.one));
  }
  const Place reduced = unit("_3x3_reduce", x, {.out = m.three_reduce});
  unit("_3x3", reduced, three(m.three, stride), b.part(y, taken, m.three));
  const Place double_reduced = unit("_double_3x3_reduce", x, {.out = m.double_reduce});
  const Place first = unit("_double_3x3_1", double_reduced, three(m.double_three, 1));
  unit("_double_3x3_2", first, three(m.double_three, stride), b.part(y, taken, m.double_three));
  if (halves) {
    b.max_pool(name + "_pool", x, kHalving, b.part(y, taken, x.channels()));
  } else {
    Pool2dOptions same_size = kSameSize;
    same_size.padding = padding;
    const Place pooled = m.pool == Pool::average ? b.average_pool(name + "_pool", x, same_size)
                                                 : b.max_pool(name + "_pool", x, same_size);
    unit("_pool_proj", pooled, {.out = m.pool_projection}, b.part(y, taken, m.pool_projection));
  }
  return y;
}

}  // namespace

Graph build_bn_inception(GraphBuilder& b, BnInceptionKind kind) {
  const bool model_zoo = kind == BnInceptionKind::model_zoo;
  Place x = b.conv_norm("conv1_7x7_s2", "conv1_7x7_s2_bn", b.image(),
                        {.out = 64, .kernel_h = 7, .kernel_w = 7, .stride = 2, .pad_h = 3, .pad_w = 3});
  x = b.max_pool("pool1_3x3_s2", x, kHalving);
  x = b.conv_norm("conv2_3x3_reduce", "conv2_3x3_reduce_bn", x, {.out = 64});
  x = b.conv_norm("conv2_3x3", "conv2_3x3_bn", x, {.out = 192, .kernel_h = 3, .kernel_w = 3, .pad_h = 1, .pad_w = 1});
  x = b.max_pool("pool2_3x3_s2", x, kHalving);
  for (Module module : kModules) {
    const std::string_view name = module.name;
    if (model_zoo && (name == "inception_4c" || name == "inception_4d")) {
      module.pool_projection = 96;
    }
    x = build_module(b, module, x, model_zoo ? Padding::ignored : Padding::counted, name == "inception_5b");
  }
  return b.finish(x);
}

}  // namespace gle
