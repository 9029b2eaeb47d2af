#pragma once

#include "retrieval/nearest.h"

namespace gle::tools {

struct ApproximateOptions {
  int64_t lists = 0;   // cells that the embeddings are sorted into; 0: four times the square root of their number
  int64_t probes = 8;  // cells looked into for a query
};

// Some of the k nearest, by faiss's inverted lists: quicker than all distances, and not all of the nearest. Missing
// ones have index -1. Throws ErrorCode::usage in a build without faiss.
Neighbours approximately_nearest(const Embeddings& queries, const Embeddings& gallery, int64_t k,
                                 const ApproximateOptions& options);

// Which share of the exact neighbours the others hold too.
double recall_against(const Neighbours& exact, const Neighbours& found);

}  // namespace gle::tools
