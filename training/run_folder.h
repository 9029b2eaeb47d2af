#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string>

#include "training/checkpoint.h"
#include "training/folder_lock.h"

namespace gle {

// The folder of a run: config.toml, command.txt, env.json, metrics.jsonl, event files, checkpoints/. One process at a
// time may hold it.
class RunFolder {
 public:
  enum class Begin { fresh, replace, resume };

  // fresh: throws ErrorCode::usage if a run is there already; replace: its files are removed; resume: they stay.
  // ErrorCode::io if it cannot be made, or another process holds it.
  RunFolder(std::filesystem::path path, Begin begin);

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path checkpoints() const { return path_ / "checkpoints"; }
  std::filesystem::path last() const { return checkpoints() / "last.gle"; }
  std::filesystem::path best() const { return checkpoints() / "best.gle"; }

  void write_text(const std::string& name, const std::string& text) const;

  // Writes epoch=NNN-step=NNNNNN.gle by `save`, lets last.gle be the same file (best.gle too if this step is the best),
  // and removes all but the newest `keep`. The one before is there until the new one is on the disk.
  void keep_checkpoint(const Position& position, int64_t keep,
                       const std::function<void(const std::filesystem::path&)>& save) const;

  // The newest checkpoint that is whole; `warn` hears of those that are not. Null if there is none at all, and
  // ErrorCode::weights if there are some and all are damaged.
  std::unique_ptr<Checkpoint> newest(const std::function<void(const std::string&)>& warn) const;
  // After a crash last.gle and best.gle may be of other steps than the run believes: lets them be the right ones if
  // these are still here.
  void mend_names(const Position& position) const;

 private:
  static std::filesystem::path prepared(std::filesystem::path path, Begin begin);

  std::filesystem::path path_;
  FolderLock lock_;
};

// The folder that a run without a name gets: runs/<data set>-<number>.
std::filesystem::path next_run_folder(const std::filesystem::path& runs, const std::string& stem);

}  // namespace gle
