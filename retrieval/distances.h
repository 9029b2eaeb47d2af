#pragma once

#include <functional>
#include <span>
#include <vector>

#include "engine/backend.h"
#include "engine/thread_pool.h"
#include "retrieval/embeddings.h"

namespace gle {

// Squared Euclidean distances from queries to a gallery, a block of queries at a time: matrix products on the backend,
// memory bounded whatever the sizes. Equal rows of the gallery get equal distances.
class Distances {
 public:
  Distances(Backend& backend, ThreadPool& pool, Embeddings queries, Embeddings gallery);

  int64_t queries() const { return queries_.rows; }
  int64_t gallery() const { return gallery_.rows; }
  // Queries that go through one matrix product.
  int64_t block_rows() const { return block_rows_; }

  // Calls visit(query, distances to the whole gallery) once for each query in [begin, end), on several threads. The
  // span is the visitor's to change, and lasts for the call.
  using Visit = std::function<void(int64_t query, std::span<float> distances)>;
  void for_each_row(int64_t begin, int64_t end, const Visit& visit);
  void for_each_row(const Visit& visit) { for_each_row(0, queries_.rows, visit); }

 private:
  Tensor upload(const Embeddings& rows, int64_t begin, int64_t end);

  Backend& backend_;
  ThreadPool& pool_;
  Embeddings queries_;
  Embeddings gallery_;
  std::vector<float> shift_;  // [dimensions], subtracted from all
  std::vector<float> query_norms_;
  std::vector<float> gallery_norms_;
  int64_t block_rows_;
  Tensor gallery_tensor_;
  Tensor products_;          // [block_rows, gallery]
  std::vector<float> host_;  // the same in host memory, if the backend's is elsewhere
};

}  // namespace gle
