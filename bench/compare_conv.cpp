// Our own convolutions beside oneDNN's, layer by layer in one run: each side warmed up, taken in turns, the best of
// several rounds. Weights are reordered in every call on both sides, as in training.
//   gle-bench-conv bn_inception|densenet161 [rounds] [--layers]
#include <array>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>

#include "bench/conv_layers.h"
#include "bench/machine.h"
#include "engine/cpu/cpu.h"
#include "engine/error.h"
#include "layers/conv2d.h"

namespace gle::bench {

namespace {

constexpr std::array kDirections = {"forward", "backward data", "backward weights"};

struct Side {
  std::unique_ptr<Backend> backend;
  Tensor x{}, w{}, y{}, dx{}, dw{};

  void prepare(const ConvLayer& layer, int64_t batch) {
    const Conv2dOptions options = options_of(layer);
    const int64_t wide = layer.pitch > layer.c ? layer.pitch : layer.c;
    x = random_tensor(*backend, {batch, layer.h, layer.w, wide}, 1);
    dx = random_tensor(*backend, x.shape(), 2);
    w = random_tensor(*backend, {layer.k, layer.kernel, layer.kernel, layer.c}, 3);
    dw = random_tensor(*backend, w.shape(), 4);
    if (wide > layer.c) {
      x = x.slice(0, layer.c);
      dx = dx.slice(0, layer.c);
    }
    y = random_tensor(*backend, conv2d_shape(x.shape(), w.shape(), options), 5);
  }

  void run(size_t direction, const Conv2dOptions& options) {
    if (direction == 0) {
      backend->conv2d_forward(x, w, Tensor(), options, kIdentity, nullptr, y);
    } else if (direction == 1) {
      backend->conv2d_backward_data(w, y, options, {dx});
    } else {
      backend->conv2d_backward_weights(x, y, options, {dw});
    }
  }

  static Conv2dOptions options_of(const ConvLayer& layer) {
    return {.stride_h = layer.stride, .stride_w = layer.stride, .pad_h = layer.pad, .pad_w = layer.pad};
  }
};

struct Sums {
  double own = 0, library = 0, flops = 0;

  void print(const char* name) const {
    std::printf("%-18s %9.1f %9.1f ms   %7.1f %7.1f GFLOP/s   ratio %.2f\n", name, own * 1e3, library * 1e3,
                flops / own * 1e-9, flops / library * 1e-9, library / own);
  }
};

int run(const std::string& network, int rounds, bool each_layer) {
  const bool inception = network == "bn_inception";
  require(inception || network == "densenet161", "gle-bench-conv", "expected bn_inception or densenet161, got '",
          network, "'");
  const int64_t batch = inception ? 32 : 16;
  Side own{make_cpu_backend({.library = false})};
  Side library{make_cpu_backend()};
  require(std::string_view(library.backend->description()).find("oneDNN") != std::string_view::npos, "gle-bench-conv",
          "this build has no oneDNN to compare with; take the preset onednn");
  const Peak& limit = peak();
  std::printf("ours: %s\ntheirs: %s\npeak %.0f GFLOP/s, %.1f GB/s\n", own.backend->description(),
              library.backend->description(), limit.gflops, limit.gbytes);

  std::array<Sums, 3> sums;
  for (const ConvLayer& layer : inception ? bn_inception_layers() : densenet161_layers()) {
    own.prepare(layer, batch);
    library.prepare(layer, batch);
    const Conv2dOptions options = Side::options_of(layer);
    const double flops = 2.0 * static_cast<double>(own.y.elements()) * static_cast<double>(own.w.elements()) / layer.k;
    for (size_t direction = 0; direction < kDirections.size(); ++direction) {
      if (direction == 1 && layer.c == 3) {
        continue;  // nobody asks for the gradient of the picture
      }
      Sums row{1e30, 1e30, flops};
      for (int round = 0; round <= rounds; ++round) {
        const double a = seconds([&] { own.run(direction, options); });
        const double b = seconds([&] { library.run(direction, options); });
        if (round > 0) {
          row.own = std::min(row.own, a);
          row.library = std::min(row.library, b);
        }
      }
      if (each_layer) {
        char name[64];
        std::snprintf(name, sizeof name, "%dx%d %d->%d %d/%d %c", layer.h, layer.w, layer.c, layer.k, layer.kernel,
                      layer.stride, "fdw"[direction]);
        row.print(name);
      }
      sums[direction].own += row.own * layer.times;
      sums[direction].library += row.library * layer.times;
      sums[direction].flops += row.flops * layer.times;
    }
  }
  Sums all;
  std::printf("%-18s %9s %9s      %7s %7s\n", network.c_str(), "ours", "theirs", "ours", "theirs");
  for (size_t direction = 0; direction < kDirections.size(); ++direction) {
    sums[direction].print(kDirections[direction]);
    all.own += sums[direction].own;
    all.library += sums[direction].library;
    all.flops += sums[direction].flops;
  }
  all.print("all");
  return 0;
}

}  // namespace

}  // namespace gle::bench

int main(int argc, char** argv) {
  try {
    const bool each_layer = argc > 1 && std::strcmp(argv[argc - 1], "--layers") == 0;
    const int words = argc - (each_layer ? 1 : 0);
    return gle::bench::run(words > 1 ? argv[1] : "bn_inception", words > 2 ? std::stoi(argv[2]) : 5, each_layer);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "gle-bench-conv: %s\n", e.what());
    return 2;
  }
}
