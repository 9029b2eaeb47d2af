#pragma once

#include <algorithm>
#include <cstring>
#include <span>
#include <type_traits>
#include <vector>

#include "engine/comm/comm.h"

namespace gle {

// Rows divided over the ranks of a run: blocks of them in turn. A block is what one process computes at a time, so that
// every row comes out of the same matrix product and has the same bits on any number of ranks.
class Shares {
 public:
  // Without `comm` all rows are one's own.
  Shares(Comm* comm, int64_t rows, int64_t block_rows);

  int64_t rows() const { return rows_; }

  // body(begin, end) for every block of this rank.
  template <class Body>
  void for_each_own(Body&& body) const {
    for (int64_t begin = rank_ * block_rows_; begin < rows_; begin += ranks_ * block_rows_) {
      body(begin, std::min(begin + block_rows_, rows_));
    }
  }
  // Rows of this rank, ascending, and where among them a row stands that is one's own.
  std::vector<int64_t> own() const;
  int64_t place(int64_t row) const { return row / (ranks_ * block_rows_) * block_rows_ + row % block_rows_; }

  // values[rows, width] of which this rank has filled its rows: now all are there, on every rank.
  template <class Value>
  void gather(std::vector<Value>& values) const {
    static_assert(std::is_trivially_copyable_v<Value>);
    gather(std::as_writable_bytes(std::span(values)));
  }
  template <class Value>
  void gather(std::vector<std::vector<Value>>& lists) const {
    static_assert(std::is_trivially_copyable_v<Value>);
    if (ranks_ == 1) {
      return;
    }
    std::vector<int64_t> sizes(lists.size(), 0);
    std::vector<Value> mine;
    for (const int64_t row : own()) {
      const std::vector<Value>& list = lists[static_cast<size_t>(row)];
      sizes[static_cast<size_t>(row)] = std::ssize(list);
      mine.insert(mine.end(), list.begin(), list.end());
    }
    gather(sizes);
    const std::vector<std::vector<std::byte>> all = comm_->gather(std::as_bytes(std::span(mine)));
    for (int rank = 0; rank < ranks_; ++rank) {
      const std::byte* next = all[static_cast<size_t>(rank)].data();
      for (const int64_t row : Shares(rank, ranks_, rows_, block_rows_).own()) {
        std::vector<Value>& list = lists[static_cast<size_t>(row)];
        list.resize(static_cast<size_t>(sizes[static_cast<size_t>(row)]));
        if (!list.empty()) {
          std::memcpy(list.data(), next, list.size() * sizeof(Value));
        }
        next += list.size() * sizeof(Value);
      }
    }
  }

 private:
  Shares(int rank, int ranks, int64_t rows, int64_t block_rows)
      : rank_(rank), ranks_(ranks), rows_(rows), block_rows_(block_rows) {}
  void gather(std::span<std::byte> values) const;

  Comm* comm_ = nullptr;
  int rank_ = 0;
  int ranks_ = 1;
  int64_t rows_;
  int64_t block_rows_;
};

}  // namespace gle
