#include "training/run_folder.h"

#include <algorithm>
#include <span>

#include "engine/error.h"
#include "models/files/atomic_file.h"
#include "models/files/file.h"

namespace gle {

namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail_io(const fs::path& path, const std::string& doing, const std::string& reason) {
  fail(ErrorCode::io, path.string(), ": ", doing, " failed: ", reason);
}

// `to` becomes another name of `from`, at once; a copy where the disk knows no links.
void let_be(const fs::path& to, const fs::path& from) {
  fs::path temporary = to;
  temporary += ".tmp";
  std::error_code problem;
  fs::remove(temporary, problem);
  fs::create_hard_link(from, temporary, problem);
  if (problem) {
    fs::copy_file(from, temporary, fs::copy_options::overwrite_existing, problem);
  }
  if (problem) {
    fail_io(temporary, "linking", problem.message());
  }
  fs::rename(temporary, to, problem);
  if (problem) {
    const std::string reason = problem.message();
    fs::remove(temporary, problem);
    fail_io(to, "renaming", reason);
  }
}

// As let_be(), if it is not so already.
void mend(const fs::path& name, const fs::path& file) {
  if (!(fs::exists(name) && fs::equivalent(file, name))) {
    let_be(name, file);
  }
}

// -1 if that cannot be told.
int64_t step_of(const fs::path& checkpoint) {
  try {
    return Checkpoint(checkpoint).state().position.step;
  } catch (const Error&) {
    return -1;
  }
}

// Null if none of the folder's is of the step, and whole.
std::unique_ptr<Checkpoint> checkpoint_of_step(const fs::path& folder, int64_t step) {
  std::vector<fs::path> candidates = {folder / "best.gle"};
  for (const CheckpointEntry& entry : checkpoints_in(folder)) {
    if (entry.step == step) {
      candidates.push_back(entry.path);
    }
  }
  for (const fs::path& path : candidates) {
    try {
      auto checkpoint = std::make_unique<Checkpoint>(path);
      if (checkpoint->state().position.step == step) {
        return checkpoint;
      }
    } catch (const Error&) {
      continue;  // the next may be whole
    }
  }
  return nullptr;
}

void remove_run(const fs::path& path) {
  for (const auto& entry : fs::directory_iterator(path)) {
    const std::string name = entry.path().filename().string();
    if (name == "checkpoints" || name == "nonfinite" || name == "config.toml" || name == "command.txt" ||
        name == "env.json" || name == "metrics.jsonl" || name == "eval.json" || name == "report.html" ||
        name == "summary.json" || name == "time.json" || name == "bad_images.csv" ||
        name.starts_with("events.out.tfevents.")) {
      std::error_code problem;
      fs::remove_all(entry.path(), problem);
      if (problem) {
        fail_io(entry.path(), "removing", problem.message());
      }
    }
  }
}

}  // namespace

fs::path RunFolder::prepared(fs::path path, Begin begin) {
  if (begin == Begin::fresh) {
    require_no_run(path);
  }
  return path;
}

RunFolder::RunFolder(fs::path path, Begin begin) : path_(prepared(std::move(path), begin)), lock_(path_) {
  if (begin == Begin::replace) {
    remove_run(path_);
  }
  make_folder(checkpoints());
}

void RunFolder::write_text(const std::string& name, const std::string& text) const {
  const std::span<const std::byte> bytes = std::as_bytes(std::span(text.data(), text.size()));
  write_atomically(path_ / name, {&bytes, 1});
}

void RunFolder::keep_checkpoint(const Position& position, int64_t keep,
                                const std::function<void(const fs::path&)>& save) const {
  const fs::path path = checkpoints() / checkpoint_name(position);
  save(path);
  let_be(last(), path);
  if (position.best_step == position.step) {
    let_be(best(), path);
  }
  const std::vector<CheckpointEntry> all = checkpoints_in(checkpoints());
  for (auto i = static_cast<size_t>(keep); i < all.size(); ++i) {
    std::error_code ignored;  // one too many does no harm
    fs::remove(all[i].path, ignored);
  }
}

std::unique_ptr<Checkpoint> newest_checkpoint(const fs::path& run, const Warn& warn) {
  const fs::path folder = run / kCheckpoints;
  std::vector<fs::path> candidates;
  for (const CheckpointEntry& entry : checkpoints_in(folder)) {
    candidates.push_back(entry.path);
  }
  for (const fs::path& other : {folder / "last.gle", folder / "best.gle"}) {
    if (fs::exists(other)) {
      candidates.push_back(other);
    }
  }
  std::string problems;
  for (const fs::path& path : candidates) {
    try {
      return std::make_unique<Checkpoint>(path);
    } catch (const Error& e) {
      warn(std::string(e.what()) + "; trying the one before");
      problems += std::string(problems.empty() ? "" : "; ") + e.what();
    }
  }
  if (!candidates.empty()) {
    fail(ErrorCode::weights, run.string(), ": no checkpoint is whole: ", problems);
  }
  return nullptr;
}

std::unique_ptr<Checkpoint> RunFolder::checkpoint_of(int64_t step) const {
  return checkpoint_of_step(checkpoints(), step);
}

void RunFolder::mend_names(const Position& position) const {
  for (const CheckpointEntry& entry : checkpoints_in(checkpoints())) {
    if (entry.path.filename() == checkpoint_name(position)) {
      mend(last(), entry.path);
    }
    if (entry.step == position.best_step) {
      mend(best(), entry.path);
    }
  }
}

bool is_of_run(const Checkpoint& checkpoint, const fs::path& run) {
  const fs::path folder = run / kCheckpoints;
  const fs::path names[] = {folder / checkpoint.path().filename(),
                            folder / checkpoint_name(checkpoint.state().position)};
  return std::ranges::any_of(names, [&](const fs::path& name) {
    return fs::exists(name) &&
           (fs::equivalent(name, checkpoint.path()) || read_file(name) == checkpoint.file().content());
  });
}

void RunFolder::go_back_to(const Checkpoint& checkpoint, const Warn& warn) const {
  const Position& position = checkpoint.state().position;
  mend(checkpoints() / checkpoint_name(position), checkpoint.path());
  mend_names(position);
  if (position.best_step >= 0 && !fs::exists(best())) {
    if (const auto of_best = checkpoint_of_step(checkpoint.path().parent_path(), position.best_step)) {
      let_be(best(), of_best->path());
    }
  }
  std::string removed;
  for (const CheckpointEntry& entry : checkpoints_in(checkpoints())) {
    if (entry.step <= position.step) {
      continue;
    }
    std::error_code problem;
    fs::remove(entry.path, problem);
    if (problem) {
      fail_io(entry.path, "removing", problem.message());
    }
    removed += (removed.empty() ? "" : ", ") + entry.path.filename().string();
  }
  if (removed.empty()) {
    return;
  }
  warn("the run goes on from step " + std::to_string(position.step) + "; of later steps, removed: " + removed);
  const int64_t best_step = fs::exists(best()) ? step_of(best()) : -1;
  if (best_step > position.step) {
    warn(best().string() + " is of step " + std::to_string(best_step) + "; it stays until there is a new best");
  }
}

void require_no_run(const fs::path& path) {
  if (has_run(path)) {
    fail(ErrorCode::usage, path.string(),
         ": there is a run already; --resume auto goes on with it, --force begins anew in its place");
  }
}

bool has_run(const fs::path& path) {
  return fs::exists(path / "config.toml") || fs::exists(path / kCheckpoints) || fs::exists(path / "metrics.jsonl");
}

fs::path next_run_folder(const fs::path& runs, const std::string& stem) {
  for (int number = 1;; ++number) {
    fs::path path = runs / (stem + "-" + std::to_string(number));
    if (!fs::exists(path)) {
      return path;
    }
  }
}

}  // namespace gle
