#include "tests/reference/reference.h"

namespace gle::reference {

Array images_from_bytes(const Array& x, const PixelScale& scale, const Array& erased) {
  Array y(x.shape);
  for (int64_t n = 0; n < x.shape[0]; ++n) {
    for (int64_t h = 0; h < x.shape[1]; ++h) {
      for (int64_t w = 0; w < x.shape[2]; ++w) {
        const bool gone =
            erased && static_cast<double>(w) >= erased(n, 0) && static_cast<double>(w) < erased(n, 0) + erased(n, 2) &&
            static_cast<double>(h) >= erased(n, 1) && static_cast<double>(h) < erased(n, 1) + erased(n, 3);
        for (int64_t c = 0; c < 3; ++c) {
          y(n, h, w, c) =
              gone ? static_cast<double>(scale.erased)
                   : (x(n, h, w, c) - static_cast<double>(scale.shift[c])) * static_cast<double>(scale.factor[c]);
        }
      }
    }
  }
  return y;
}

}  // namespace gle::reference
