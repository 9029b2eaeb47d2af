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

  // Calls visit(query, distances to the whole gallery) once for each query in [begin, end), on several threads. The
  // span is the visitor's to change, and lasts for the call.
  using Visit = std::function<void(int64_t query, std::span<float> distances)>;
  void for_each_row(int64_t begin, int64_t end, const Visit& visit);
  void for_each_row(const Visit& visit) { for_each_row(0, queries_.rows, visit); }

  // The same distances in stretches of the gallery that stay in the caches, for those who need not see a row as a
  // whole. Each query's stretches come in their order; of the queries under way none shares its `place`.
  struct Piece {
    int64_t query;
    int64_t place;  // below kMostUnderWay
    int64_t first;  // of the gallery
    std::span<float> distances;
    bool last;
  };
  static constexpr int64_t kMostUnderWay = 960;
  using VisitPiece = std::function<void(const Piece& piece)>;
  void for_each_piece(int64_t begin, int64_t end, const VisitPiece& visit);

 private:
  Tensor upload(const Embeddings& rows, int64_t begin, int64_t end);
  // Distances of uploaded queries, the first of them `query`, to a stretch of the gallery; one piece for each.
  void multiply(const Tensor& block, int64_t query, int64_t first, int64_t columns, const VisitPiece& visit);

  Backend& backend_;
  ThreadPool& pool_;
  Embeddings queries_;
  Embeddings gallery_;
  std::vector<float> shift_;  // [dimensions], subtracted from all
  std::vector<float> query_norms_;
  std::vector<float> gallery_norms_;
  Tensor gallery_tensor_;    // [1, rows * dimensions]
  Tensor products_;          // [queries under way, stretch of the gallery]
  std::vector<float> host_;  // the same in host memory, if the backend's is elsewhere
};

}  // namespace gle
