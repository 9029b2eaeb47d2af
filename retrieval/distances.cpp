#include "retrieval/distances.h"

#include <algorithm>
#include <cmath>

#include "engine/error.h"

namespace gle {

namespace {

constexpr int64_t kBlockFloats = int64_t{16} << 20;  // distances held at once
constexpr int64_t kMostBlockRows = 512;
constexpr int64_t kTileRows = 4096;  // of the gallery, in one matrix product

std::vector<float> squared_norms(ThreadPool& pool, const Embeddings& e) {
  std::vector<float> norms(static_cast<size_t>(e.rows));
  constexpr int64_t kRows = 256;
  pool.parallel_for((e.rows + kRows - 1) / kRows, [&](int64_t piece, int) {
    for (int64_t row = piece * kRows; row < std::min(e.rows, (piece + 1) * kRows); ++row) {
      double sum = 0;
      for (const float value : e[row]) {
        sum += static_cast<double>(value) * value;
      }
      norms[static_cast<size_t>(row)] = static_cast<float>(sum);
    }
  });
  return norms;
}

}  // namespace

void check(const Embeddings& e, const char* what) {
  if (e.rows <= 0 || e.dimensions <= 0) {
    fail(ErrorCode::data, what, ": there are no embeddings (", e.rows, " rows of ", e.dimensions, ")");
  }
  for (int64_t row = 0; row < e.rows; ++row) {
    const auto values = e[row];
    if (!std::all_of(values.begin(), values.end(), [](float v) { return std::isfinite(v); })) {
      fail(ErrorCode::data, what, ": row ", row, " holds a number that is not finite");
    }
  }
}

Distances::Distances(Backend& backend, ThreadPool& pool, Embeddings queries, Embeddings gallery)
    : backend_(backend),
      pool_(pool),
      queries_(queries),
      gallery_(gallery),
      query_norms_(squared_norms(pool, queries)),
      gallery_norms_(squared_norms(pool, gallery)),
      block_rows_(std::clamp<int64_t>(kBlockFloats / std::max<int64_t>(1, gallery.rows), 1, kMostBlockRows)) {
  check(queries, "queries");
  check(gallery, "gallery");
  if (queries.dimensions != gallery.dimensions) {
    fail(ErrorCode::data, "embeddings: queries have ", queries.dimensions, " dimensions, the gallery ",
         gallery.dimensions);
  }
  for (int64_t begin = 0; begin < gallery.rows; begin += kTileRows) {
    gallery_tiles_.push_back(upload(gallery, begin, std::min(gallery.rows, begin + kTileRows)));
  }
  block_.resize(static_cast<size_t>(block_rows_ * gallery.rows));
}

Tensor Distances::upload(const Embeddings& rows, int64_t begin, int64_t end) {
  Tensor tensor = backend_.new_tensor("distances", {end - begin, rows.dimensions});
  backend_.upload(rows.values + begin * rows.dimensions, tensor);
  return tensor;
}

void Distances::for_each_row(int64_t begin, int64_t end, const Visit& visit) {
  const int64_t width = gallery_.rows;
  std::vector<float> products;
  for (int64_t first = begin; first < end; first += block_rows_) {
    const int64_t rows = std::min(block_rows_, end - first);
    const Tensor block = upload(queries_, first, first + rows);
    int64_t column = 0;
    for (const Tensor& tile : gallery_tiles_) {
      const Tensor dots = backend_.new_tensor("distances", {rows, tile.rows()});
      backend_.gemm(block, Transpose::no, tile, Transpose::yes, Tensor(), {dots});
      products.resize(static_cast<size_t>(dots.elements()));
      backend_.download(dots, products.data());
      pool_.parallel_for(rows, [&](int64_t row, int) {
        const float norm = query_norms_[static_cast<size_t>(first + row)];
        const float* norms = gallery_norms_.data() + column;
        const float* dot = products.data() + row * tile.rows();
        float* to = block_.data() + row * width + column;
        for (int64_t i = 0; i < tile.rows(); ++i) {
          to[i] = std::max(0.0F, norm + norms[i] - 2 * dot[i]);
        }
      });
      column += tile.rows();
    }
    pool_.parallel_for(rows, [&](int64_t row, int) {
      visit(first + row, std::span<float>(block_.data() + row * width, static_cast<size_t>(width)));
    });
  }
}

}  // namespace gle
