#include "training/batch_feed.h"

#include <utility>

#include "engine/error.h"

namespace gle {

data::Pixels pixels_for(const Backend& backend) {
  return backend.device() == Device{} ? data::Pixels::floats : data::Pixels::bytes;
}

BatchFeed::BatchFeed(Backend& backend, data::Loader& loader, int64_t parts)
    : backend_(backend),
      loader_(loader),
      copies_(!(backend.device() == Device{})),
      coming_(static_cast<size_t>(parts)) {
  for (Batches& place : places_) {
    place.resize(coming_.size());
  }
}

// Somebody else gets the places next.
BatchFeed::~BatchFeed() {
  if (copying_) {
    try {
      backend_.await_prefetched();
    } catch (const Error&) {
      // A device that is broken: whoever waits for it next says so.
    }
  }
}

bool BatchFeed::next(Batches& batches) {
  batches.clear();
  if (!fetched_) {
    complete_ = fetch();
  }
  fetched_ = false;
  if (problem_) {
    std::rethrow_exception(std::exchange(problem_, nullptr));
  }
  if (!complete_) {
    return false;
  }
  if (copies_) {
    backend_.await_prefetched();
    copying_ = false;
    turn_ = 1 - turn_;
  }
  batches.swap(coming_);
  coming_.resize(batches.size());  // without allocating: the two keep their memory
  return true;
}

void BatchFeed::look_ahead() {
  if (!copies_) {
    return;
  }
  fetched_ = true;
  try {
    complete_ = fetch();
  } catch (...) {
    problem_ = std::current_exception();
  }
}

bool BatchFeed::fetch() {
  for (size_t i = 0; i < coming_.size(); ++i) {
    data::Batch& batch = coming_[i];
    if (!loader_.next(batch)) {
      return false;
    }
    if (copies_) {
      copy(batch.images, places_[turn_][i].images);
      batch.images = places_[turn_][i].images;
      if (batch.erased) {
        copy(batch.erased, places_[turn_][i].erased);
        batch.erased = places_[turn_][i].erased;
      }
    }
  }
  return true;
}

void BatchFeed::copy(const Tensor& from, Tensor& place) {
  if (!place || !(place.shape() == from.shape())) {
    place = backend_.new_tensor("images", from.shape(), from.type());
    // Kernels called so far may still use this memory for what it was before.
    backend_.await_prefetched();
  }
  copying_ = true;
  backend_.prefetch(from.bytes(), place);
}

}  // namespace gle
