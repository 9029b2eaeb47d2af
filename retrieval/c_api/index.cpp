#include <algorithm>
#include <cmath>
#include <mutex>
#include <utility>

#include "engine/cpu/cpu.h"
#include "retrieval/c_api/guard.h"
#include "retrieval/embedding_folder.h"
#include "retrieval/nearest.h"

struct gle_index {
  static constexpr uint64_t kMagic = 0x676c6520696e6465;

  gle_index(std::vector<float> rows, int64_t dimensions, std::vector<std::string> row_names)
      : values(std::move(rows)),
        names(std::move(row_names)),
        embeddings{values.data(), static_cast<int64_t>(values.size()) / dimensions, dimensions},
        backend(gle::make_cpu_backend()) {
    gle::check(embeddings, "the index");
  }

  uint64_t magic = kMagic;
  std::mutex mutex;
  std::vector<float> values;
  std::vector<std::string> names;
  gle::Embeddings embeddings;
  std::unique_ptr<gle::Backend> backend;
  gle::ThreadPool pool;
};

namespace {

// The matrix products that find the nearest lose digits where vectors are close: duplicates are to be at 0.
double distance(std::span<const float> a, std::span<const float> b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double difference = static_cast<double>(a[i]) - b[i];
    sum += difference * difference;
  }
  return std::sqrt(sum);
}

}  // namespace

using gle::c_api::guarded;
using gle::c_api::require_handle;
using gle::c_api::require_pointer;

gle_status gle_index_open(const char* path, gle_index** index) {
  return guarded([&] {
    require_pointer(index, "index");
    *index = nullptr;
    require_pointer(path, "path");
    const gle::EmbeddingFolder folder = gle::EmbeddingFolder::read(path);
    const gle::Embeddings rows = folder.view();
    std::vector<std::string> names;
    for (const gle::EmbeddedItem& item : folder.items) {
      names.push_back(item.path);
    }
    *index = new gle_index({rows.values, rows.values + rows.rows * rows.dimensions}, rows.dimensions, std::move(names));
  });
}

gle_status gle_index_create(const float* embeddings, int64_t count, int64_t dimensions, const char* const* names,
                            gle_index** index) {
  return guarded([&] {
    require_pointer(index, "index");
    *index = nullptr;
    require_pointer(embeddings, "embeddings");
    int64_t numbers = 0;
    gle::require(count >= 1 && dimensions >= 1 && !__builtin_mul_overflow(count, dimensions, &numbers),
                 "gle_index_create", "count and dimensions must be positive, got ", count, " and ", dimensions);
    std::vector<std::string> copies(static_cast<size_t>(count));
    for (int64_t i = 0; names != nullptr && i < count; ++i) {
      require_pointer(names[i], "a name");
      copies[static_cast<size_t>(i)] = names[i];
    }
    *index = new gle_index({embeddings, embeddings + numbers}, dimensions, std::move(copies));
  });
}

void gle_index_close(gle_index* index) {
  if (gle::c_api::alive(index)) {
    index->magic = 0;
    delete index;
  }
}

int64_t gle_index_size(const gle_index* index) { return gle::c_api::alive(index) ? index->embeddings.rows : 0; }

int64_t gle_index_dimensions(const gle_index* index) {
  return gle::c_api::alive(index) ? index->embeddings.dimensions : 0;
}

const char* gle_index_name(const gle_index* index, int64_t number) {
  const bool good = gle::c_api::alive(index) && number >= 0 && number < index->embeddings.rows;
  return good ? index->names[static_cast<size_t>(number)].c_str() : nullptr;
}

gle_status gle_index_search(gle_index* index, const float* queries, int64_t count, int64_t k, int64_t* numbers,
                            float* distances) {
  return guarded([&] {
    require_handle(index, "gle_index_search");
    require_pointer(queries, "queries");
    require_pointer(numbers, "numbers");
    gle::require(count >= 1 && k >= 1 && k <= index->embeddings.rows, "gle_index_search",
                 "count must be positive and k from 1 to ", index->embeddings.rows, ", got ", count, " and ", k);
    const gle::Embeddings rows{queries, count, index->embeddings.dimensions};
    gle::check(rows, "the queries");
    const std::lock_guard lock(index->mutex);
    gle::Distances all(*index->backend, index->pool, rows, index->embeddings);
    const gle::Neighbours found = gle::nearest(all, k, gle::Self::included);
    std::vector<std::pair<double, int64_t>> row(static_cast<size_t>(k));
    for (int64_t q = 0; q < count; ++q) {
      for (size_t i = 0; i < row.size(); ++i) {
        const int64_t number = found[q][i];
        row[i] = {distance(rows[q], index->embeddings[number]), number};
      }
      std::sort(row.begin(), row.end());
      for (size_t i = 0; i < row.size(); ++i) {
        numbers[static_cast<size_t>(q * k) + i] = row[i].second;
        if (distances != nullptr) {
          distances[static_cast<size_t>(q * k) + i] = static_cast<float>(row[i].first);
        }
      }
    }
  });
}
