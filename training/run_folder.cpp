#include "training/run_folder.h"

#include <span>

#include "engine/error.h"
#include "models/files/atomic_file.h"

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

bool is_run(const fs::path& path) {
  return fs::exists(path / "config.toml") || fs::exists(path / "checkpoints") || fs::exists(path / "metrics.jsonl");
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
  if (begin == Begin::fresh && is_run(path)) {
    fail(ErrorCode::usage, path.string(),
         ": there is a run already; --resume auto goes on with it, --force begins "
         "anew in its place");
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
  for (size_t i = static_cast<size_t>(keep); i < all.size(); ++i) {
    std::error_code ignored;  // one too many does no harm
    fs::remove(all[i].path, ignored);
  }
}

std::unique_ptr<Checkpoint> RunFolder::newest(const std::function<void(const std::string&)>& warn) const {
  std::vector<fs::path> candidates;
  for (const CheckpointEntry& entry : checkpoints_in(checkpoints())) {
    candidates.push_back(entry.path);
  }
  for (const fs::path& other : {last(), best()}) {
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
    fail(ErrorCode::weights, path_.string(), ": no checkpoint is whole: ", problems);
  }
  return nullptr;
}

void RunFolder::mend_names(const Position& position) const {
  const auto mend = [](const fs::path& name, const fs::path& file) {
    if (!(fs::exists(name) && fs::equivalent(file, name))) {
      let_be(name, file);
    }
  };
  for (const CheckpointEntry& entry : checkpoints_in(checkpoints())) {
    if (entry.path.filename() == checkpoint_name(position)) {
      mend(last(), entry.path);
    }
    if (entry.step == position.best_step) {
      mend(best(), entry.path);
    }
  }
}

fs::path next_run_folder(const fs::path& runs, const std::string& stem) {
  for (int number = 1;; ++number) {
    const fs::path path = runs / (stem + "-" + std::to_string(number));
    if (!fs::exists(path)) {
      return path;
    }
  }
}

}  // namespace gle
