#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "data/decode.h"
#include "data/sampler.h"
#include "data/transform.h"
#include "engine/cpu/runtime.h"
#include "engine/memory/caching_allocator.h"
#include "engine/tensor.h"

namespace gle::data {

// What an image that cannot be read does to the run. `quarantine` replaces it by the next good training image of its
// class and notes it; `leave_out` shows black in its place and notes it. More of them than the budget allows end the
// run.
enum class OnBad { error, quarantine, leave_out };

class BadImageList;

// What a batch holds: numbers for a network, or bytes that become these by Backend::images_from_bytes, a quarter of the
// memory to copy to a device.
enum class Pixels { floats, bytes };

struct LoaderOptions {
  TransformOptions transform = {};
  Pixels pixels = Pixels::floats;
  DecodeOptions decode = {};
  uint64_t seed = 0;
  // Threads beside the caller's; 0: the caller decodes in next().
  int workers = 2;
  // Batches that are ready or under way at most.
  int prefetch = 3;
  // Of every batch, only this one of so many equal parts: the pictures that a batch as a whole would have there.
  int part = 0;
  int parts = 1;
  OnBad on_bad = OnBad::quarantine;
  // Share of the data set's items that may be bad.
  double max_bad = 0.001;
  // Where to list the bad ones; empty: nowhere.
  std::filesystem::path bad_images = {};
  // Instead of these two: the budget and the list that several loaders have in common, all used by one thread.
  std::shared_ptr<BadImageList> bad_list = nullptr;
  // Decoded pictures to keep, in bytes.
  size_t cache_bytes = 0;
  // How long next() waits without any progress before it gives up and names the files under way.
  std::chrono::seconds patience{60};
  // Where batches live: the host's memory, or pinned memory for a GPU to copy from.
  MemorySource memory = host_memory();
  // Without one: as the CPU backend chooses.
  std::optional<cpu::Isa> isa = std::nullopt;
};

struct Batch {
  int64_t index = 0;            // in its epoch
  Tensor images;                // [N,H,W,3], f32 or u8
  Tensor erased;                // [N,4], i32: of bytes, the rectangle to erase; empty if the transform erases nothing
  std::vector<int32_t> labels;  // of the items
  std::vector<int32_t> all_labels;  // of the whole batch
  std::vector<uint32_t> items;      // of the data set: those in the batch, after replacements
  std::vector<size_t> left_out;     // places without a picture, ascending
};

struct BadImage {
  uint32_t item = 0;
  std::string reason;
};

struct LoaderStatistics {
  int64_t images = 0;  // in batches handed out
  int64_t bytes_read = 0;
  int64_t cache_hits = 0;
  size_t cached_bytes = 0;
  size_t bad_images = 0;
  double seconds = 0;          // since start()
  double seconds_waiting = 0;  // of them in next(): what the run loses to loading
};

// Turns the plan of an epoch into batches. What is in a batch is a function of (options, plan, epoch) and the files:
// the number of workers, the prefetch, the cache, and the batch it begins with change no bit. Batches must not outlive
// it.
class Loader {
 public:
  Loader(std::shared_ptr<const Dataset> data, const LoaderOptions& options);
  ~Loader();
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  // Begins an epoch, at any of its batches; what is left of the one before is dropped.
  void start(EpochPlan plan, uint64_t epoch, int64_t first_batch = 0);
  // The next batch; false after the last. Throws ErrorCode::data for a bad image (OnBad::error) or too many of them,
  // and ErrorCode::io when files take longer than options.patience.
  bool next(Batch& batch);

  // In the order of the items.
  std::vector<BadImage> bad_images() const;
  LoaderStatistics statistics() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace gle::data
