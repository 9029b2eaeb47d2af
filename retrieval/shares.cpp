#include "retrieval/shares.h"

namespace gle {

Shares::Shares(Comm* comm, int64_t rows, int64_t block_rows) : comm_(comm), rows_(rows), block_rows_(block_rows) {
  if (comm_ != nullptr) {
    rank_ = comm_->rank();
    ranks_ = comm_->size();
  }
}

std::vector<int64_t> Shares::own() const {
  std::vector<int64_t> result;
  for_each_own([&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      result.push_back(row);
    }
  });
  return result;
}

void Shares::gather(std::span<std::byte> values) const {
  if (ranks_ == 1 || rows_ == 0) {
    return;
  }
  const size_t row_bytes = values.size() / static_cast<size_t>(rows_);
  std::vector<std::byte> mine;
  for_each_own([&](int64_t begin, int64_t end) {
    const auto block =
        values.subspan(static_cast<size_t>(begin) * row_bytes, static_cast<size_t>(end - begin) * row_bytes);
    mine.insert(mine.end(), block.begin(), block.end());
  });
  const std::vector<std::vector<std::byte>> all = comm_->gather(mine);
  for (int rank = 0; rank < ranks_; ++rank) {
    const std::byte* next = all[static_cast<size_t>(rank)].data();
    Shares(rank, ranks_, rows_, block_rows_).for_each_own([&](int64_t begin, int64_t end) {
      const auto count = static_cast<size_t>(end - begin) * row_bytes;
      std::memcpy(values.data() + static_cast<size_t>(begin) * row_bytes, next, count);
      next += count;
    });
  }
}

}  // namespace gle
