#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "data/loader.h"
#include "data/sampler.h"

namespace gle::data {

// The images of a run that cannot be read, what takes their places, and how many there may be. Its user holds a lock.
class Quarantine {
 public:
  Quarantine(const Dataset& data, const LoaderOptions& options)
      : data_(data), options_(options), members_(train_members(data)) {}

  // What is known to be wrong with an item: empty if nothing is.
  std::string reason(uint32_t item) const;
  void note(uint32_t item, const std::string& reason) { found_.emplace(item, reason); }
  // The training image of the class that follows `item`; `first` is where the search began. Throws ErrorCode::data when
  // it is back there.
  uint32_t replacement(uint32_t item, uint32_t first) const;

  // For a batch that is about to be handed out, so that what counts does not depend on how far the threads are ahead:
  // lists what was bad in it. Throws ErrorCode::data if the budget is used up.
  void report(std::span<const BadImage> bad);
  // In the order of the items.
  std::vector<BadImage> reported() const;
  size_t count() const { return reported_.size(); }

 private:
  void write_list() const;

  const Dataset& data_;
  const LoaderOptions& options_;
  const ClassMembers members_;
  std::map<uint32_t, std::string> found_;     // by any thread so far
  std::map<uint32_t, std::string> reported_;  // in batches handed out
};

}  // namespace gle::data
