#pragma once

#include <array>
#include <exception>
#include <vector>

#include "data/loader.h"
#include "engine/backend.h"

namespace gle {

// What a loader is to make for a backend: bytes where they have to be copied to its device.
data::Pixels pixels_for(const Backend& backend);

// The batches of an epoch, `parts` for each step, on the backend's device. Where that has memory of its own, those of
// the next step are copied while the kernels of this one run.
class BatchFeed {
 public:
  BatchFeed(Backend& backend, data::Loader& loader, int64_t parts);
  ~BatchFeed();
  BatchFeed(const BatchFeed&) = delete;
  BatchFeed& operator=(const BatchFeed&) = delete;

  // The batches of the next step, there for kernels called from now on, until the call after the next; false if there
  // are not enough left. Throws what the loader throws.
  bool next(std::vector<data::Batch>& batches);
  // Once the kernels of a step have been called, if another one follows. What the loader throws waits for next().
  void look_ahead();

 private:
  using Batches = std::vector<data::Batch>;

  bool fetch();
  void copy(const Tensor& from, Tensor& place);

  Backend& backend_;
  data::Loader& loader_;
  bool copies_;
  std::array<Batches, 2> places_;  // device memory, taken by turns
  size_t turn_ = 0;
  Batches coming_;
  bool copying_ = false;  // copies may be under way
  bool fetched_ = false;  // coming_, `complete_` and `problem_` are those of the next step
  bool complete_ = false;
  std::exception_ptr problem_;
};

}  // namespace gle
