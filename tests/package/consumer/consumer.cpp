// A program outside the source tree: the gradient of 3x at x = 2.
#include <engine/cpu/cpu.h>
#include <layers/elementwise.h>

#include <cstdio>

int main() {
  const auto backend = gle::make_cpu_backend();
  gle::Tape tape(*backend);
  gle::Context ctx{.backend = *backend, .tape = &tape};
  const float two = 2.0F;
  const gle::Tensor value = backend->new_tensor("x", {1});
  backend->upload(&two, value);
  const gle::Var x = tape.leaf(value);
  tape.backward(gle::scale(ctx, x, 3.0F));
  float gradient = 0;
  backend->download(tape.gradient(x), &gradient);
  std::printf("%s: gradient %g\n", backend->description(), static_cast<double>(gradient));
  return gradient == 3.0F ? 0 : 1;
}
