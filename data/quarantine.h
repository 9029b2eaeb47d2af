#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "data/loader.h"
#include "data/sampler.h"

namespace gle::data {

// The images of a run that cannot be read, whichever of its loaders found them: a budget, and a file that lists them.
// One thread uses it.
class BadImageList {
 public:
  // `max_bad`: share of the data set's items that may be bad. `file`: empty: none.
  BadImageList(const Dataset& data, double max_bad, std::filesystem::path file = {})
      : data_(data), max_bad_(max_bad), file_(std::move(file)) {}

  // What the file of an earlier process lists, without images that can be read by now. ErrorCode::data if it is no such
  // list.
  void read_back(const DecodeOptions& decode);
  // Throws ErrorCode::data if the budget is used up.
  void add(std::span<const BadImage> bad);
  // In the order of the items.
  std::vector<BadImage> images() const;
  size_t count() const { return images_.size(); }

 private:
  void write() const;

  const Dataset& data_;
  const double max_bad_;
  const std::filesystem::path file_;
  std::map<uint32_t, std::string> images_;
};

// What a loader knows of images that cannot be read, and what takes their places. Its user holds a lock.
class Quarantine {
 public:
  Quarantine(const Dataset& data, const LoaderOptions& options)
      : data_(data),
        members_(train_members(data)),
        list_(options.bad_list ? options.bad_list
                               : std::make_shared<BadImageList>(data, options.max_bad, options.bad_images)) {}

  // What is known to be wrong with an item: empty if nothing is.
  std::string reason(uint32_t item) const;
  void note(uint32_t item, const std::string& reason) { found_.emplace(item, reason); }
  // The training image of the class that follows `item`; `first` is where the search began. Throws ErrorCode::data when
  // it is back there.
  uint32_t replacement(uint32_t item, uint32_t first) const;

  // For a batch that is about to be handed out, so that what counts does not depend on how far the threads are ahead:
  // lists what was bad in it. Throws ErrorCode::data if the budget is used up.
  void report(std::span<const BadImage> bad) { list_->add(bad); }
  // In the order of the items.
  std::vector<BadImage> reported() const { return list_->images(); }
  size_t count() const { return list_->count(); }

 private:
  const Dataset& data_;
  const ClassMembers members_;
  std::map<uint32_t, std::string> found_;  // by any thread so far
  std::shared_ptr<BadImageList> list_;     // in batches handed out
};

}  // namespace gle::data
