#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tools/cli/dataset.h"

namespace gle::tools {

// Opens the data set at `path` for these models. What the user does not say, runs that were trained on it do: the data
// set's name and, of class folders without a split, the classes that were trained on, which goes to stderr. They stay
// in `arguments`. Throws ErrorCode::usage if runs say different things.
std::shared_ptr<const data::Dataset> open_dataset_of(const std::vector<std::string>& models, const std::string& path,
                                                     DatasetArguments& arguments, const Verbosity& verbosity);

}  // namespace gle::tools
