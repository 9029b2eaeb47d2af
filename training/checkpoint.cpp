#include "training/checkpoint.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <map>

#include "engine/error.h"
#include "training/recipe.h"

namespace gle {

namespace {

namespace fs = std::filesystem;

constexpr const char* kPosition = "position";
constexpr const char* kConfig = "config";
constexpr const char* kDistances = "class_distances";
constexpr const char* kData = "data";
constexpr const char* kMoments = "optimiser/";

// The members of a position by name, for both directions.
template <class Visit>
void each_number(Position& p, Visit visit) {
  visit("phase", p.phase);
  visit("epoch", p.epoch);
  visit("step", p.step);
  visit("batches", p.batches);
  visit("epoch_of_phase", p.epoch_of_phase);
  visit("step_of_phase", p.step_of_phase);
  visit("batch_of_epoch", p.batch_of_epoch);
  visit("evaluation_due", p.evaluation_due);
  visit("best", p.best);
  visit("best_step", p.best_step);
  visit("since_best", p.since_best);
  visit("skipped", p.skipped);
  visit("done", p.done);
}

std::string text_of(Position position, int64_t optimiser_steps) {
  std::string text;
  const auto line = [&](const char* name, auto value) {
    char number[32];
    char* end = nullptr;
    if constexpr (std::is_same_v<decltype(value), bool>) {
      end = std::to_chars(number, number + sizeof number, value ? 1 : 0).ptr;
    } else {
      end = std::to_chars(number, number + sizeof number, value).ptr;
    }
    text += std::string(name) + " " + std::string(number, end) + "\n";
  };
  each_number(position, line);
  line("optimiser_steps", optimiser_steps);
  return text;
}

std::map<std::string, std::string, std::less<>> lines_of(std::string_view text) {
  std::map<std::string, std::string, std::less<>> lines;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    const size_t space = line.find(' ');
    lines.emplace(line.substr(0, space), space == line.npos ? "" : line.substr(space + 1));
  }
  return lines;
}

std::string_view text_in(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

class PositionReader {
 public:
  explicit PositionReader(const CheckpointFile& file)
      : path_(file.path()), lines_(lines_of(text_in(file[kPosition]))) {}

  template <class Number>
  void read(const char* name, Number& value) const {
    const auto found = lines_.find(name);
    if (found == lines_.end()) {
      fail(ErrorCode::weights, path_.string(), ": section '", kPosition, "' says nothing of ", name);
    }
    const std::string& text = found->second;
    std::conditional_t<std::is_same_v<Number, bool>, int, Number> number{};
    const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (problem != std::errc() || end != text.data() + text.size() || number < -1) {
      fail(ErrorCode::weights, path_.string(), ": section '", kPosition, "': ", name, " is '", text, "'");
    }
    value = static_cast<Number>(number);
  }

 private:
  const fs::path& path_;
  std::map<std::string, std::string, std::less<>> lines_;
};

std::vector<float> floats_in(const CheckpointFile& file, const std::string& name, size_t count) {
  const auto bytes = file[name];
  if (bytes.size() != count * sizeof(float)) {
    fail(ErrorCode::weights, file.path().string(), ": section '", name, "' has ", bytes.size(), " bytes, ",
         count * sizeof(float), " are expected: it is a checkpoint of another network");
  }
  std::vector<float> values(count);
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

void require_same_network(const fs::path& path, const NetworkOptions& found, const NetworkOptions& ours) {
  const auto text = [](const NetworkOptions& o) {
    return o.name + " with " + std::to_string(o.head.classes) + " classes" +
           (o.head.embedding > 0 ? ", embedding " + std::to_string(o.head.embedding) : std::string()) +
           (o.head.bnneck ? ", bnneck" : "");
  };
  if (text(found) != text(ours)) {
    fail(ErrorCode::weights, path.string(), ": a checkpoint of ", text(found), "; this run trains ", text(ours));
  }
}

}  // namespace

void save_checkpoint(const fs::path& path, Learner& learner, const std::vector<Optimiser::State>& moments,
                     const InputDescription& input, const std::string& config, const RunState& state) {
  Backend& backend = learner.backend();
  ParameterSet& parameters = learner.network().parameters();
  if (!backend.all_finite(parameters.values()) || !backend.all_finite(parameters.state_values())) {
    fail(ErrorCode::not_finite, "step ", state.position.step,
         ": weights or running statistics are not finite; no checkpoint is written, the one before stays");
  }
  // What evaluations look at is what the file's weights are.
  const AveragedWeights averaged(learner.optimiser());
  const std::vector<std::byte> weights = format_model(backend, learner.network(), input);
  const std::string position = text_of(state.position, learner.optimiser().steps());
  CheckpointWriter writer;
  const auto add_text = [&](const char* name, const std::string& text) {
    writer.add(name, std::as_bytes(std::span(text.data(), text.size())));
  };
  writer.add(std::string(kWeightsSection), weights);
  add_text(kPosition, position);
  add_text(kConfig, config);
  add_text(kData, state.data);
  std::vector<std::vector<float>> numbers;
  for (const Optimiser::State& moment : moments) {
    numbers.emplace_back(static_cast<size_t>(moment.values.elements()));
    backend.download(moment.values, numbers.back().data());
  }
  for (size_t i = 0; i < moments.size(); ++i) {
    writer.add(std::string(kMoments) + moments[i].name, std::as_bytes(std::span(numbers[i])));
  }
  if (!state.class_distances.empty()) {
    writer.add(kDistances, std::as_bytes(std::span(state.class_distances)));
  }
  writer.write(path);
}

Checkpoint::Checkpoint(CheckpointFile file) : file_(std::move(file)) {
  const PositionReader reader(file_);
  each_number(state_.position, [&](const char* name, auto& value) { reader.read(name, value); });
  if (state_.position.phase < 0 || state_.position.phase >= kPhases) {
    fail(ErrorCode::weights, file_.path().string(), ": section '", kPosition, "': phase is ", state_.position.phase,
         ", counted from 0; there are ", kPhases);
  }
  for (const auto& section : file_.sections()) {
    if (section.name == kDistances) {
      state_.class_distances = floats_in(file_, kDistances, section.bytes.size() / sizeof(float));
    } else if (section.name == kData) {
      state_.data = text_in(section.bytes);
    }
  }
}

std::string Checkpoint::config() const { return std::string(text_in(file_[kConfig])); }

void Checkpoint::restore_weights(Learner& learner) const {
  const WeightFile weights = parse_weights(file_[kWeightsSection], file_.path().string());
  require_same_network(file_.path(), description_of(weights).network, learner.network().options());
  load_weights(learner.backend(), learner.network(), weights);
}

void Checkpoint::restore(Learner& learner) const {
  restore_weights(learner);
  Optimiser& optimiser = learner.optimiser();
  const Tensor whole = learner.backend().new_tensor("moments", learner.network().parameters().values().shape());
  for (const Optimiser::State& moment : optimiser.state()) {
    const std::vector<float> values =
        floats_in(file_, std::string(kMoments) + moment.name, static_cast<size_t>(whole.elements()));
    learner.backend().upload(values.data(), whole);
    optimiser.set_whole_state({moment.name, whole});
  }
  int64_t steps = 0;
  PositionReader(file_).read("optimiser_steps", steps);
  optimiser.set_steps(steps);
  if (optimiser.averages()) {
    optimiser.swap_average();
  }
}

std::string checkpoint_name(const Position& position) {
  char name[64];
  std::snprintf(name, sizeof name, "epoch=%03ld-step=%06ld.gle", static_cast<long>(position.epoch),
                static_cast<long>(position.step));
  return name;
}

std::vector<CheckpointEntry> checkpoints_in(const fs::path& folder) {
  std::vector<CheckpointEntry> found;
  std::error_code problem;
  for (const auto& entry : fs::directory_iterator(folder, problem)) {
    const std::string name = entry.path().filename().string();
    long epoch = 0;
    long step = 0;
    int end = 0;
    if (std::sscanf(name.c_str(), "epoch=%ld-step=%ld.gle%n", &epoch, &step, &end) == 2 &&
        static_cast<size_t>(end) == name.size()) {
      found.push_back({step, entry.path()});
    }
  }
  std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) {
    return a.step != b.step ? a.step > b.step : a.path.filename() > b.path.filename();
  });
  return found;
}

}  // namespace gle
