#include "retrieval/rerank.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>

#include "engine/error.h"
#include "retrieval/nearest.h"
#include "retrieval/row_kernels.h"

namespace gle {

namespace {

// Half of k1, ties to even, as the published code rounds.
int64_t half_of(int64_t k) { return static_cast<int64_t>(std::nearbyint(static_cast<double>(k) / 2)); }

std::vector<float> stack(const Embeddings& first, const Embeddings& second) {
  std::vector<float> values;
  values.reserve(static_cast<size_t>((first.rows + second.rows) * second.dimensions));
  values.insert(values.end(), first.values, first.values + first.rows * first.dimensions);
  values.insert(values.end(), second.values, second.values + second.rows * second.dimensions);
  return values;
}

// Lanes that add up side by side: the compiler may not reorder a single sum.
float squared_distance(std::span<const float> a, std::span<const float> b) {
  constexpr size_t kLanes = 16;
  float sums[kLanes] = {};
  size_t i = 0;
  for (; i + kLanes <= a.size(); i += kLanes) {
    for (size_t lane = 0; lane < kLanes; ++lane) {
      const float difference = a[i + lane] - b[i + lane];
      sums[lane] += difference * difference;
    }
  }
  float sum = std::accumulate(std::begin(sums), std::end(sums), 0.0F);
  for (; i < a.size(); ++i) {
    const float difference = a[i] - b[i];
    sum += difference * difference;
  }
  return sum;
}

// Distances from queries to the gallery that are kept from one pass to the other, where they are so few.
constexpr int64_t kMostKept = int64_t{128} << 20;

Embeddings doubled_if_asked(Embeddings queries, const Embeddings& gallery, const RerankOptions& options) {
  require(!(options.duplicate_self && queries.rows > 0), "rerank",
          "duplicate_self is for one set that queries itself, but queries were given");
  return options.duplicate_self ? gallery : queries;
}

}  // namespace

Rerank::Rerank(Backend& backend, ThreadPool& pool, Embeddings queries, Embeddings gallery, const RerankOptions& options)
    : pool_(pool),
      options_(options),
      all_values_(stack(doubled_if_asked(queries, gallery, options), gallery)),
      all_{all_values_.data(), static_cast<int64_t>(all_values_.size()) / std::max<int64_t>(1, gallery.dimensions),
           gallery.dimensions},
      distances_(backend, pool, all_, all_),
      query_count_(queries.rows > 0 ? queries.rows : gallery.rows),
      gallery_count_(gallery.rows),
      first_of_gallery_(all_.rows - gallery.rows),
      reach_(std::max(options.k1 + 1, options.k2)) {
  require(options.k1 >= 1 && options.k2 >= 1, "rerank", "k1 and k2 must be at least 1, got ", options.k1, " and ",
          options.k2);
  require(options.lambda >= 0 && options.lambda <= 1, "rerank", "lambda must be from 0 to 1, got ", options.lambda);
  require(queries.rows == 0 || queries.dimensions == gallery.dimensions, "rerank", "queries have ", queries.dimensions,
          " dimensions, the gallery ", gallery.dimensions);
  require(reach_ <= all_.rows, "rerank", "k1 = ", options.k1, " and k2 = ", options.k2, " reach beyond the ", all_.rows,
          " images");
  find_neighbours();
  encode_all();
  if (options.k2 > 1) {
    expand_queries();
  }
  invert();
}

void Rerank::find_neighbours() {
  neighbours_.resize(static_cast<size_t>(all_.rows * reach_));
  largest_.resize(static_cast<size_t>(all_.rows));
  if (query_count_ * gallery_count_ <= kMostKept) {
    kept_.resize(static_cast<size_t>(query_count_ * gallery_count_));
  }
  std::vector<NearestOfRow> under_way(static_cast<size_t>(std::min(all_.rows, Distances::kMostUnderWay)));
  distances_.for_each_piece(0, all_.rows, [&](const Distances::Piece& piece) {
    NearestOfRow& row = under_way[static_cast<size_t>(piece.place)];
    float& largest = largest_[static_cast<size_t>(piece.query)];
    if (piece.first == 0) {
      row.begin(reach_, kNobody);
    }
    row.add(piece.first, piece.distances);
    largest = std::max(largest, row_kernels().largest(piece.distances.data(), std::ssize(piece.distances)));
    if (!kept_.empty() && piece.query < query_count_) {
      const int64_t skipped = std::clamp<int64_t>(first_of_gallery_ - piece.first, 0, std::ssize(piece.distances));
      std::copy(piece.distances.begin() + skipped, piece.distances.end(),
                kept_.begin() + piece.query * gallery_count_ + std::max<int64_t>(0, piece.first - first_of_gallery_));
    }
    if (piece.last) {
      std::ranges::transform(row.finish(), neighbours_.begin() + piece.query * reach_, &Neighbour::index);
    }
  });
}

// What turns a distance from image i into one relative to its largest. Images that all coincide are at distance 0 of
// each other, whatever it is divided by.
float Rerank::relative(int64_t i) const {
  const float largest = largest_[static_cast<size_t>(i)];
  return largest > 0 ? 1 / largest : 1;
}

bool Rerank::among_first(int64_t of, int64_t k, int32_t image) const {
  const int32_t* first = neighbours_.data() + of * reach_;
  return std::find(first, first + k + 1, image) != first + k + 1;
}

void Rerank::reciprocal(int64_t i, int64_t k, std::vector<int32_t>& found) const {
  found.clear();
  for (int64_t j = 0; j <= k; ++j) {
    const int32_t candidate = neighbours_[static_cast<size_t>(i * reach_ + j)];
    if (among_first(candidate, k, static_cast<int32_t>(i))) {
      found.push_back(candidate);
    }
  }
}

Rerank::Sparse Rerank::encode(int64_t i) const {
  std::vector<int32_t> core;
  std::vector<int32_t> of_member;
  reciprocal(i, options_.k1, core);
  std::vector<int32_t> images = core;
  std::vector<int32_t> sorted_core = core;
  std::sort(sorted_core.begin(), sorted_core.end());
  for (const int32_t member : core) {
    reciprocal(member, half_of(options_.k1), of_member);
    const auto shared = std::count_if(of_member.begin(), of_member.end(), [&](int32_t image) {
      return std::binary_search(sorted_core.begin(), sorted_core.end(), image);
    });
    if (3 * shared > 2 * static_cast<std::ptrdiff_t>(of_member.size())) {
      images.insert(images.end(), of_member.begin(), of_member.end());
    }
  }
  std::sort(images.begin(), images.end());
  images.erase(std::unique(images.begin(), images.end()), images.end());

  Sparse code;
  double sum = 0;
  for (const int32_t image : images) {
    const float weight = std::exp(-squared_distance(all_[i], all_[image]) * relative(i));
    code.push_back({image, weight});
    sum += weight;
  }
  for (Entry& entry : code) {
    entry.weight = static_cast<float>(entry.weight / sum);
  }
  return code;
}

void Rerank::encode_all() {
  codes_.resize(static_cast<size_t>(all_.rows));
  pool_.parallel_for(all_.rows, [&](int64_t image, int) { codes_[static_cast<size_t>(image)] = encode(image); });
}

void Rerank::expand_queries() {
  std::vector<Sparse> expanded(codes_.size());
  std::vector<std::vector<float>> sums(static_cast<size_t>(pool_.size()), std::vector<float>(codes_.size(), 0.0F));
  pool_.parallel_for(all_.rows, [&](int64_t image, int thread) {
    std::vector<float>& sum = sums[static_cast<size_t>(thread)];
    std::vector<int32_t> touched;
    for (int64_t j = 0; j < options_.k2; ++j) {
      for (const Entry& entry : codes_[static_cast<size_t>(neighbours_[static_cast<size_t>(image * reach_ + j)])]) {
        if (sum[static_cast<size_t>(entry.image)] == 0) {
          touched.push_back(entry.image);
        }
        sum[static_cast<size_t>(entry.image)] += entry.weight;
      }
    }
    std::sort(touched.begin(), touched.end());
    touched.erase(std::unique(touched.begin(), touched.end()), touched.end());
    Sparse& code = expanded[static_cast<size_t>(image)];
    code.reserve(touched.size());
    for (const int32_t other : touched) {
      code.push_back({other, sum[static_cast<size_t>(other)] / static_cast<float>(options_.k2)});
      sum[static_cast<size_t>(other)] = 0;
    }
  });
  codes_ = std::move(expanded);
}

void Rerank::invert() {
  column_starts_.assign(static_cast<size_t>(all_.rows) + 1, 0);
  for (int64_t g = 0; g < gallery_count_; ++g) {
    for (const Entry& entry : codes_[static_cast<size_t>(first_of_gallery_ + g)]) {
      ++column_starts_[static_cast<size_t>(entry.image) + 1];
    }
  }
  for (size_t i = 1; i < column_starts_.size(); ++i) {
    column_starts_[i] += column_starts_[i - 1];
  }
  columns_.resize(static_cast<size_t>(column_starts_.back()));
  std::vector<int64_t> next(column_starts_.begin(), column_starts_.end() - 1);
  for (int64_t g = 0; g < gallery_count_; ++g) {
    for (const Entry& entry : codes_[static_cast<size_t>(first_of_gallery_ + g)]) {
      columns_[static_cast<size_t>(next[static_cast<size_t>(entry.image)]++)] = {static_cast<int32_t>(g), entry.weight};
    }
  }
}

void Rerank::finish(int64_t query, std::span<float> to) const {
  thread_local std::vector<float> shared;
  shared.assign(static_cast<size_t>(gallery_count_), 0.0F);
  for (const Entry& mine : codes_[static_cast<size_t>(query)]) {
    const auto column = static_cast<size_t>(mine.image);
    for (auto e = static_cast<size_t>(column_starts_[column]); e < static_cast<size_t>(column_starts_[column + 1]);
         ++e) {
      shared[static_cast<size_t>(columns_[e].image)] += std::min(mine.weight, columns_[e].weight);
    }
  }
  const float scale = options_.lambda * relative(query);
  for (size_t g = 0; g < to.size(); ++g) {
    to[g] = (1 - options_.lambda) * (1 - shared[g] / (2 - shared[g])) + scale * to[g];
  }
}

void Rerank::for_each_row(int64_t begin, int64_t end, const Distances::Visit& visit) {
  if (kept_.empty()) {
    distances_.for_each_row(begin, end, [&](int64_t query, std::span<float> row) {
      const auto to = row.subspan(static_cast<size_t>(first_of_gallery_));
      finish(query, to);
      visit(query, to);
    });
    return;
  }
  pool_.parallel_for(end - begin, [&](int64_t piece, int) {
    const int64_t query = begin + piece;
    thread_local std::vector<float> row;
    const auto from = kept_.begin() + query * gallery_count_;
    row.assign(from, from + gallery_count_);
    finish(query, row);
    visit(query, row);
  });
}

}  // namespace gle
