#include <faiss/IndexFlat.h>
#include <faiss/IndexIVFFlat.h>

#include <algorithm>
#include <cmath>

#include "engine/error.h"
#include "tools/approximate.h"

namespace gle::tools {

Neighbours approximately_nearest(const Embeddings& queries, const Embeddings& gallery, int64_t k,
                                 const ApproximateOptions& options) {
  const int64_t usual = std::llround(4 * std::sqrt(static_cast<double>(gallery.rows)));
  const int64_t lists = std::clamp<int64_t>(options.lists > 0 ? options.lists : usual, 1, gallery.rows);
  Neighbours found{.k = k, .indices = {}, .distances = std::vector<float>(static_cast<size_t>(queries.rows * k))};
  std::vector<int64_t> indices(found.distances.size());
  try {
    const int64_t dimensions = gallery.dimensions;
    faiss::IndexFlatL2 cells(dimensions);
    faiss::IndexIVFFlat index(&cells, static_cast<size_t>(dimensions), static_cast<size_t>(lists));
    index.cp.min_points_per_centroid = 1;
    index.train(gallery.rows, gallery.values);
    index.add(gallery.rows, gallery.values);
    index.nprobe = static_cast<size_t>(std::min(options.probes, lists));
    index.search(queries.rows, queries.values, k, found.distances.data(), indices.data());
  } catch (const std::exception& e) {
    fail(ErrorCode::runtime, "faiss: ", e.what());
  }
  found.indices.assign(indices.begin(), indices.end());
  return found;
}

}  // namespace gle::tools
