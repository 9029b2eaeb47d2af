#include "retrieval/distances.h"

#include <algorithm>
#include <cmath>

#include "engine/error.h"
#include "retrieval/row_kernels.h"

namespace gle {

namespace {

constexpr int64_t kBlockFloats = int64_t{64} << 20;  // distances held at once, at most
constexpr int64_t kStretch = 1024;  // of the gallery: with the queries under way, what two cores' caches hold

// The gallery's mean, to a few bits: what is subtracted from all embeddings, so that norms are as small as the
// distances between them and little is lost when they cancel. A few bits, because the difference is exact then for
// values that are not much finer, such as whole numbers: their ties remain ties.
std::vector<float> common_shift(const Embeddings& e) {
  constexpr int kBits = 6;
  std::vector<double> sums(static_cast<size_t>(e.dimensions), 0.0);
  for (int64_t row = 0; row < e.rows; ++row) {
    row_kernels().accumulate(e[row].data(), e.dimensions, sums.data());
  }
  std::vector<float> shift(sums.size());
  for (size_t d = 0; d < sums.size(); ++d) {
    int exponent = 0;
    const double fraction = std::frexp(sums[d] / static_cast<double>(e.rows), &exponent);
    shift[d] = static_cast<float>(std::ldexp(std::nearbyint(std::ldexp(fraction, kBits)), exponent - kBits));
  }
  return shift;
}

std::vector<float> squared_norms(ThreadPool& pool, const Embeddings& e, const std::vector<float>& shift) {
  std::vector<float> norms(static_cast<size_t>(e.rows));
  constexpr int64_t kRows = 256;
  pool.parallel_for((e.rows + kRows - 1) / kRows, [&](int64_t piece, int) {
    for (int64_t row = piece * kRows; row < std::min(e.rows, (piece + 1) * kRows); ++row) {
      double sum = 0;
      for (size_t d = 0; d < shift.size(); ++d) {
        const float value = e[row][d] - shift[d];
        sum += static_cast<double>(value) * value;
      }
      norms[static_cast<size_t>(row)] = static_cast<float>(sum);
    }
  });
  return norms;
}

// Up to here sums of squares stay finite, and so does every distance.
constexpr float kLargestNorm = 1e38F / 8;

void check_range(std::span<const float> norms, const char* what) {
  const auto largest = std::max_element(norms.begin(), norms.end());
  if (!(*largest <= kLargestNorm)) {
    fail(ErrorCode::data, what, ": row ", largest - norms.begin(), " is too long for distances in single precision, ",
         std::sqrt(static_cast<double>(*largest)));
  }
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
    : backend_(backend), pool_(pool), queries_(queries), gallery_(gallery) {
  check(queries, "queries");
  check(gallery, "gallery");
  if (queries.dimensions != gallery.dimensions) {
    fail(ErrorCode::data, "embeddings: queries have ", queries.dimensions, " dimensions, the gallery ",
         gallery.dimensions);
  }
  shift_ = common_shift(gallery);
  query_norms_ = squared_norms(pool, queries, shift_);
  gallery_norms_ = squared_norms(pool, gallery, shift_);
  check_range(query_norms_, "queries");
  check_range(gallery_norms_, "gallery");
  gallery_tensor_ = upload(gallery, 0, gallery.rows).reshaped({1, gallery.rows * gallery.dimensions});
}

Tensor Distances::upload(const Embeddings& rows, int64_t begin, int64_t end) {
  Tensor tensor = backend_.new_tensor("distances", {end - begin, rows.dimensions});
  std::vector<float> shifted(static_cast<size_t>((end - begin) * rows.dimensions));
  pool_.parallel_for(end - begin, [&](int64_t row, int) {
    const auto from = rows[begin + row];
    float* to = shifted.data() + row * rows.dimensions;
    for (size_t d = 0; d < shift_.size(); ++d) {
      to[d] = from[d] - shift_[d];
    }
  });
  backend_.upload(shifted.data(), tensor);
  return tensor;
}

void Distances::multiply(const Tensor& block, int64_t query, int64_t first, int64_t columns, const VisitPiece& visit) {
  const RowKernels& kernels = row_kernels();
  const int64_t rows = block.rows(), dimensions = gallery_.dimensions;
  if (!products_ || products_.shape() != Shape({rows, columns})) {
    products_ = Tensor();  // before its successor is made
    products_ = backend_.new_tensor("distances", {rows, columns});
  }
  const Tensor stretch =
      gallery_tensor_.slice(first * dimensions, (first + columns) * dimensions).reshaped({columns, dimensions});
  backend_.gemm(block, Transpose::no, stretch, Transpose::yes, Tensor(), {products_});
  float* values = products_.data();
  if (products_.device().kind != Device::Kind::cpu) {
    host_.resize(static_cast<size_t>(products_.elements()));
    backend_.download(products_, host_.data());
    values = host_.data();
  }
  pool_.parallel_for(rows, [&](int64_t row, int) {
    float* distances = values + row * columns;
    kernels.to_distances(query_norms_[static_cast<size_t>(query + row)], gallery_norms_.data() + first, columns,
                         distances);
    visit({.query = query + row,
           .place = row,
           .first = first,
           .distances = {distances, static_cast<size_t>(columns)},
           .last = first + columns == gallery_.rows});
  });
}

void Distances::for_each_row(int64_t begin, int64_t end, const Visit& visit) {
  const int64_t rows = std::clamp<int64_t>(kBlockFloats / gallery_.rows, 1, kMostUnderWay);
  for (int64_t query = begin; query < end; query += rows) {
    const Tensor block = upload(queries_, query, std::min(query + rows, end));
    multiply(block, query, 0, gallery_.rows, [&](const Piece& whole) { visit(whole.query, whole.distances); });
  }
}

void Distances::for_each_piece(int64_t begin, int64_t end, const VisitPiece& visit) {
  const int64_t stretch = backend_.device() == Device{} ? kStretch : kBlockFloats / kMostUnderWay;
  for (int64_t query = begin; query < end; query += kMostUnderWay) {
    const Tensor block = upload(queries_, query, std::min(query + kMostUnderWay, end));
    for (int64_t first = 0; first < gallery_.rows; first += stretch) {
      multiply(block, query, first, std::min(stretch, gallery_.rows - first), visit);
    }
  }
}

}  // namespace gle
