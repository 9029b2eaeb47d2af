// The C interface for C++ programs: handles that close themselves, and failures as exceptions.
#pragma once

#include <gle.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace gle_c {

class error : public std::runtime_error {
 public:
  explicit error(gle_status status) : std::runtime_error(gle_last_error()), status_(status) {}
  gle_status status() const { return status_; }

 private:
  gle_status status_;
};

inline void check(gle_status status) {
  if (status != GLE_OK) {
    throw error(status);
  }
}

inline gle_model_options model_defaults() {
  gle_model_options options;
  gle_model_defaults(&options);
  return options;
}

class model {
 public:
  explicit model(const std::string& path, const gle_model_options& options = model_defaults()) {
    gle_model* handle = nullptr;
    check(gle_model_open(path.c_str(), &options, &handle));
    handle_.reset(handle);
  }

  int64_t dimensions() const { return gle_model_dimensions(handle_.get()); }

  std::vector<float> embed_file(const std::string& path) {
    auto embedding = room(1);
    check(gle_embed_file(handle_.get(), path.c_str(), embedding.data()));
    return embedding;
  }
  std::vector<float> embed_encoded(const void* bytes, size_t size) {
    auto embedding = room(1);
    check(gle_embed_encoded(handle_.get(), bytes, size, embedding.data()));
    return embedding;
  }
  std::vector<float> embed_pixels(const uint8_t* rgb, int width, int height, size_t row_bytes) {
    auto embedding = room(1);
    check(gle_embed_pixels(handle_.get(), rgb, width, height, row_bytes, embedding.data()));
    return embedding;
  }
  std::vector<float> embed_tensor(const float* images, int64_t count, int height, int width) {
    auto embeddings = room(count);
    check(gle_embed_tensor(handle_.get(), images, count, height, width, embeddings.data()));
    return embeddings;
  }

 private:
  struct close {
    void operator()(gle_model* handle) const { gle_model_close(handle); }
  };
  std::vector<float> room(int64_t count) const { return std::vector<float>(static_cast<size_t>(count * dimensions())); }

  std::unique_ptr<gle_model, close> handle_;
};

struct neighbour {
  int64_t number;
  float distance;
  std::string name;
};

class index {
 public:
  explicit index(const std::string& path) {
    gle_index* handle = nullptr;
    check(gle_index_open(path.c_str(), &handle));
    handle_.reset(handle);
  }
  // Rows of `dimensions` numbers, one after the other.
  index(const std::vector<float>& embeddings, int64_t dimensions) {
    gle_index* handle = nullptr;
    check(gle_index_create(embeddings.data(), static_cast<int64_t>(embeddings.size()) / dimensions, dimensions, nullptr,
                           &handle));
    handle_.reset(handle);
  }

  int64_t size() const { return gle_index_size(handle_.get()); }

  // The k nearest, or all if there are fewer.
  std::vector<neighbour> search(const std::vector<float>& query, int64_t k) {
    if (static_cast<int64_t>(query.size()) != gle_index_dimensions(handle_.get())) {
      throw std::invalid_argument("gle: the query has another number of dimensions than the index");
    }
    k = k < size() ? k : size();
    std::vector<int64_t> numbers(static_cast<size_t>(k));
    std::vector<float> distances(static_cast<size_t>(k));
    check(gle_index_search(handle_.get(), query.data(), 1, k, numbers.data(), distances.data()));
    std::vector<neighbour> found;
    for (size_t i = 0; i < numbers.size(); ++i) {
      found.push_back({numbers[i], distances[i], gle_index_name(handle_.get(), numbers[i])});
    }
    return found;
  }

 private:
  struct close {
    void operator()(gle_index* handle) const { gle_index_close(handle); }
  };

  std::unique_ptr<gle_index, close> handle_;
};

}  // namespace gle_c
