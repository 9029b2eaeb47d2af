#include "tools/cli/own_folder.h"

#include "engine/error.h"

namespace gle::tools {

namespace fs = std::filesystem;

void require_not_the_data(const fs::path& out, const fs::path& data) {
  std::error_code problem;
  const fs::path folder = fs::is_directory(data, problem) ? data : fs::absolute(data).parent_path();
  if (fs::equivalent(out, folder, problem)) {
    fail(ErrorCode::usage, "--out ", out.string(), ": is the folder of the data, ", data.string(),
         "; name another one, files written there would be taken for a part of the data set");
  }
}

void require_empty(const fs::path& out) {
  std::error_code problem;
  for (const fs::directory_entry& entry : fs::directory_iterator(out, problem)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with('.')) {
      fail(ErrorCode::usage, "--out ", out.string(), ": has files of something else in it, such as ", name,
           "; name a folder that is empty or not there yet");
    }
  }
}

}  // namespace gle::tools
