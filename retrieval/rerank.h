#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "engine/backend.h"
#include "engine/comm/comm.h"
#include "engine/thread_pool.h"
#include "retrieval/distances.h"
#include "retrieval/embeddings.h"
#include "retrieval/shares.h"

namespace gle {

struct RerankOptions {
  int64_t k1 = 20;
  int64_t k2 = 6;
  float lambda = 0.3F;
  // Queries and gallery are one set, given as `gallery` alone: present once, or twice as the authors' program has it.
  bool duplicate_self = false;
};

// k-reciprocal re-ranking (Zhong et al.), sparse: the same distances as the dense algorithm in memory of the order of
// images x neighbours (and half a gibibyte at most). Neighbours are ranked by squared Euclidean distance over queries
// and gallery together, ties by index, queries first.
class Rerank {
 public:
  // `queries` without rows: the gallery's images query each other. The ranks of `comm` share the work.
  Rerank(Backend& backend, ThreadPool& pool, Embeddings queries, Embeddings gallery, const RerankOptions& options,
         Comm* comm = nullptr);

  int64_t queries() const { return query_count_; }
  int64_t gallery() const { return gallery_count_; }
  // How the queries are divided over ranks.
  const Shares& shares() const { return query_shares_; }
  // visit(query, final distances to the whole gallery), on several threads, for each query of this rank.
  void for_each_row(const Distances::Visit& visit);

 private:
  // A row of V: which images, in ascending order, with what weight.
  struct Entry {
    int32_t image;
    float weight;
  };
  using Sparse = std::vector<Entry>;

  // The images that are reciprocal neighbours of i within k.
  void reciprocal(int64_t i, int64_t k, std::vector<int32_t>& found) const;
  bool among_first(int64_t of, int64_t k, int32_t image) const;
  float relative(int64_t i) const;
  bool keeps_distances() const;
  Sparse encode(int64_t i) const;
  void find_neighbours();
  void encode_all();
  void expand_queries();
  void invert();
  // Plain distances to the gallery become final ones.
  void finish(int64_t query, std::span<float> to) const;

  ThreadPool& pool_;
  RerankOptions options_;
  std::vector<float> all_values_;
  Embeddings all_;
  Distances distances_;
  Shares shares_;  // of all images
  int64_t query_count_;
  int64_t gallery_count_;
  Shares query_shares_;
  int64_t first_of_gallery_;
  int64_t reach_;                    // neighbours kept of each image, itself included
  std::vector<int32_t> neighbours_;  // [images, reach]
  std::vector<float> largest_;       // [images]
  std::vector<Sparse> codes_;
  std::vector<int64_t> column_starts_;  // the gallery's codes by column
  std::vector<Entry> columns_;
  std::vector<float> kept_;  // [own queries, gallery], or empty if that is too large: then they are computed again
};

}  // namespace gle
