#include "tools/approximate.h"

#include <algorithm>

namespace gle::tools {

double recall_against(const Neighbours& exact, const Neighbours& found) {
  int64_t shared = 0;
  const int64_t queries = std::ssize(exact.indices) / exact.k;
  for (int64_t q = 0; q < queries; ++q) {
    const auto others = found[q];
    shared += std::count_if(exact[q].begin(), exact[q].end(),
                            [&](int32_t i) { return std::find(others.begin(), others.end(), i) != others.end(); });
  }
  return static_cast<double>(shared) / static_cast<double>(exact.indices.size());
}

}  // namespace gle::tools
