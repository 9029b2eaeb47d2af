#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "engine/error.h"
#include "models/files/atomic_file.h"
#include "models/files/file.h"
#include "training/search.h"

namespace gle {

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr const char* kPlan = "search.toml";
constexpr const char* kResults = "results.json";

fs::path prepared(fs::path path, RunFolder::Begin begin) {
  if (begin == RunFolder::Begin::fresh && fs::exists(path / kPlan)) {
    fail(ErrorCode::usage, path.string(),
         ": there is a search already; --resume goes on with it, --force begins anew in its place");
  }
  return path;
}

Json json_value(const ConfigValue& value) {
  return std::visit([](const auto& v) { return Json(v); }, value);
}

std::string read_text(const fs::path& path) {
  if (!fs::exists(path)) {
    return "";
  }
  const std::vector<std::byte> bytes = read_file(path);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

SearchFolder::SearchFolder(fs::path path, RunFolder::Begin begin)
    : path_(prepared(std::move(path), begin)), lock_(path_) {
  if (begin != RunFolder::Begin::replace) {
    return;
  }
  for (const auto& entry : fs::directory_iterator(path_)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("trial-") || name == kPlan || name == kResults || name == "best.toml" ||
        name == "report.html" || name == "command.txt") {
      std::error_code problem;
      fs::remove_all(entry.path(), problem);
      if (problem) {
        fail(ErrorCode::io, entry.path().string(), ": removing failed: ", problem.message());
      }
    }
  }
}

fs::path SearchFolder::of_trial(int64_t number) const {
  char name[32];
  std::snprintf(name, sizeof name, "trial-%03lld", static_cast<long long>(number));
  return path_ / name;
}

std::string SearchFolder::plan() const { return read_text(path_ / kPlan); }

void SearchFolder::write_text(const std::string& name, const std::string& text) const {
  write_atomically(path_ / name, {std::as_bytes(std::span(text.data(), text.size()))});
}

std::vector<Trial> SearchFolder::results() const {
  const fs::path path = path_ / kResults;
  const std::string text = read_text(path);
  std::vector<Trial> trials;
  if (text.empty()) {
    return trials;
  }
  try {
    const Json json = Json::parse(text);
    for (const Json& each : json.at("trials")) {
      Trial& trial = trials.emplace_back();
      trial.number = each.at("trial").get<int64_t>();
      trial.ended = each.at("ended").get<std::string>();
      for (const Json& pair : each.at("evaluations")) {
        trial.evaluations.push_back({pair.at(0).get<int64_t>(), pair.at(1).get<double>()});
      }
      if (trial.number != std::ssize(trials) - 1) {
        fail(ErrorCode::data, path.string(), ": trial ", trial.number, " stands where trial ", trials.size() - 1,
             " should; mend it, or begin anew with --force");
      }
    }
  } catch (const Json::exception& e) {
    fail(ErrorCode::data, path.string(), ": is damaged: ", e.what(), "; mend it, or begin anew with --force");
  }
  return trials;
}

std::string json_of(const std::vector<Trial>& trials, const std::string& metric) {
  Json json = {{"metric", metric}, {"best", nullptr}, {"trials", Json::array()}};
  if (const Trial* best = best_of(trials)) {
    json["best"] = best->number;
  }
  for (const Trial& trial : trials) {
    Json settings = Json::object();
    for (const auto& [name, value] : trial.settings) {
      settings[name] = json_value(value);
    }
    Json evaluations = Json::array();
    for (const LoggedValue& at : trial.evaluations) {
      evaluations.push_back({at.step, at.value});
    }
    json["trials"].push_back({{"trial", trial.number},
                              {"ended", trial.ended},
                              {"best", trial.best() ? Json(*trial.best()) : Json(nullptr)},
                              {"settings", std::move(settings)},
                              {"evaluations", std::move(evaluations)}});
  }
  return json.dump(2) + "\n";
}

void SearchFolder::keep_results(const std::vector<Trial>& trials, const std::string& metric) const {
  write_text(kResults, json_of(trials, metric));
}

}  // namespace gle
