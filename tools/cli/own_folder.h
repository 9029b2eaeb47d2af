#pragma once

#include <filesystem>

namespace gle::tools {

// For folders that a program is going to fill: files between those of a data set would make another data set of it.
// ErrorCode::usage if `out` is the folder `data`, or the one in which the file `data` lies.
void require_not_the_data(const std::filesystem::path& out, const std::filesystem::path& data);
// ErrorCode::usage if `out` is there and has anything in it that is not hidden.
void require_empty(const std::filesystem::path& out);

}  // namespace gle::tools
