// Prints every distinct convolution of a training step of the networks, a line each, as plan_convolutions reads them:
//   network direction N H W C K R S P Q stride_h stride_w pad_h pad_w x_pitch y_pitch x_align w_align y_align adds
// A convolution that several networks have is the first one's.

#include <cstdio>
#include <set>
#include <string>
#include <vector>

#include "models/dry_backend.h"
#include "models/network.h"

namespace {

using gle::DryConvolution;

const char* const kDirections[] = {"forward", "data", "weights"};

std::string line_of(const DryConvolution& c) {
  std::string line = kDirections[static_cast<int>(c.direction)];
  const auto& x = c.x.shape;
  const auto& w = c.w.shape;
  const auto& y = c.y.shape;
  for (const int64_t number :
       {x[0], x[1], x[2], x[3], w[0], w[1], w[2], y[1], y[2], int64_t{c.options.stride_h}, int64_t{c.options.stride_w},
        int64_t{c.options.pad_h}, int64_t{c.options.pad_w}, c.x.pitch, c.y.pitch, c.x.alignment, c.w.alignment,
        c.y.alignment, int64_t{c.mode == gle::Accumulate::add ? 1 : 0}}) {
    line += ' ';
    line += std::to_string(number);
  }
  return line;
}

std::vector<DryConvolution> convolutions_of(const std::string& name, int64_t size) {
  constexpr int64_t kImages = 32;
  gle::DryBackend backend;
  gle::Network network(backend, {.name = name, .head = {.classes = 100}});
  std::vector<DryConvolution> found;
  backend.note_convolutions(&found);
  gle::Tape tape(backend);
  gle::Context ctx{.backend = backend, .tape = &tape, .mode = gle::Mode::training};
  const auto images = gle::Var(backend.new_tensor("images", {kImages, size, size, 3}));
  const gle::NetworkOutput output = network.forward(ctx, images, {});
  tape.backward(output.logits, output.logits.value());
  return found;
}

}  // namespace

int main() {
  struct {
    const char* name;
    int64_t size;
  } const networks[] = {{"bn_inception", 227}, {"inception_v3", 299}, {"densenet121", 224},
                        {"densenet161", 224},  {"densenet169", 224},  {"densenet201", 224}};
  std::set<std::string> seen;
  for (const auto& network : networks) {
    for (const DryConvolution& convolution : convolutions_of(network.name, network.size)) {
      const std::string line = line_of(convolution);
      if (seen.insert(line).second) {
        std::printf("%s %s\n", network.name, line.c_str());
      }
    }
  }
}
