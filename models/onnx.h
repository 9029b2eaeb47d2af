#pragma once

#include <cstddef>
#include <vector>

#include "models/network.h"

namespace gle {

// The network for inference as an ONNX model (opset 13): input "images" [N,3,H,W] with N, H and W left open, outputs
// "embedding" and, with a classifier, "logits". What `options` switches on is part of the graph; flip is not, since it
// is a second pass.
std::vector<std::byte> export_onnx(Backend& backend, Network& network, const ForwardOptions& options = {});

}  // namespace gle
