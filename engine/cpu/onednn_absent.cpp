// A build without oneDNN: there is nothing to open, so nothing to call.
#include "engine/cpu/onednn.h"
#include "engine/error.h"

namespace gle::cpu {

OneDnn* OneDnn::open(Isa, int) { return nullptr; }
void OneDnn::close(OneDnn*) {}
const char* OneDnn::version() const { bug("oneDNN is absent"); }

bool OneDnn::conv2d_forward(Workspace&, const Tensor&, const Tensor&, const Tensor&, const Conv2dOptions&, Activation,
                            PackedWeights*, CachingAllocator&, const Tensor&) {
  bug("oneDNN is absent");
}
bool OneDnn::conv2d_backward_data(Workspace&, const Tensor&, const Tensor&, const Conv2dOptions&, const GradTarget&) {
  bug("oneDNN is absent");
}
bool OneDnn::conv2d_backward_weights(Workspace&, const Tensor&, const Tensor&, const Conv2dOptions&,
                                     const GradTarget&) {
  bug("oneDNN is absent");
}
bool OneDnn::gemm(const Tensor&, Transpose, const Tensor&, Transpose, const GradTarget&) { bug("oneDNN is absent"); }

}  // namespace gle::cpu
