#pragma once

#include <string>

#include "data/dataset.h"
#include "engine/error.h"

namespace gle::tools {

// Runs `work` on pictures of the data set at `path`. What it says of one that is broken then tells how to find all.
template <class Work>
void reading_pictures(const data::Dataset& data, const std::string& path, const Work& work) {
  try {
    work();
  } catch (const Error& e) {
    const bool a_data_set = !data.class_names.empty();
    if (e.code() != ErrorCode::data || !a_data_set) {
      throw;
    }
    fail(ErrorCode::data, e.what(), "; gle-data check ", path, " lists all pictures that cannot be read");
  }
}

}  // namespace gle::tools
