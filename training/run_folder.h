#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "models/files/folder_lock.h"
#include "training/checkpoint.h"

namespace gle {

// Hears of what is odd.
using Warn = std::function<void(const std::string&)>;

inline constexpr const char* kCheckpoints = "checkpoints";

// What can be told of a run without holding its folder.
bool has_run(const std::filesystem::path& path);
// Throws ErrorCode::usage if there is one.
void require_no_run(const std::filesystem::path& path);
// The newest checkpoint that is whole; `warn` hears of those that are not. Null if there is none at all, and
// ErrorCode::weights if there are some and all are damaged.
std::unique_ptr<Checkpoint> newest_checkpoint(const std::filesystem::path& run, const Warn& warn);
// Whether it is one of the run's, or a copy of one.
bool is_of_run(const Checkpoint& checkpoint, const std::filesystem::path& run);

// The folder of a run: config.toml, command.txt, env.json, metrics.jsonl, event files, checkpoints/. One process at a
// time may hold it.
class RunFolder {
 public:
  enum class Begin { fresh, replace, resume };

  // fresh: throws ErrorCode::usage if a run is there already; replace: its files are removed; resume: they stay.
  // ErrorCode::io if it cannot be made, or another process holds it.
  RunFolder(std::filesystem::path path, Begin begin);

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path checkpoints() const { return path_ / kCheckpoints; }
  std::filesystem::path last() const { return checkpoints() / "last.gle"; }
  std::filesystem::path best() const { return checkpoints() / "best.gle"; }

  void write_text(const std::string& name, const std::string& text) const;

  // Writes epoch=NNN-step=NNNNNN.gle by `save`, lets last.gle be the same file (best.gle too if this step is the best),
  // and removes all but the newest `keep`. The one before is there until the new one is on the disk.
  void keep_checkpoint(const Position& position, int64_t keep,
                       const std::function<void(const std::filesystem::path&)>& save) const;

  // As newest_checkpoint().
  std::unique_ptr<Checkpoint> newest(const Warn& warn) const { return newest_checkpoint(path_, warn); }
  // best.gle or another one, if it is whole and of this step; else null.
  std::unique_ptr<Checkpoint> checkpoint_of(int64_t step) const;
  // After a crash last.gle and best.gle may be of other steps than the run believes: lets them be the right ones if
  // these are still here.
  void mend_names(const Position& position) const;
  // For a run that goes on from this checkpoint, of its own or of another run (whose best one is then taken along): it
  // becomes the newest, and those of later steps are removed. A best.gle of a later step stays if there is no other.
  void go_back_to(const Checkpoint& checkpoint, const Warn& warn) const;

 private:
  static std::filesystem::path prepared(std::filesystem::path path, Begin begin);

  std::filesystem::path path_;
  FolderLock lock_;
};

// The folder that a run without a name gets: runs/<data set>-<number>.
std::filesystem::path next_run_folder(const std::filesystem::path& runs, const std::string& stem);

}  // namespace gle
