#include "tools/doctor_oracle.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <span>

#include "losses/group_loss.h"
#include "models/files/npy.h"

namespace gle::doctor {

namespace {

constexpr double kValueTolerance = 1e-5;
constexpr double kGradientTolerance = 1e-4;

double difference(std::span<const float> found, const std::vector<double>& expected) {
  double largest = 0;
  double worst = 0;
  if (found.size() != expected.size()) {
    return INFINITY;
  }
  for (size_t i = 0; i < expected.size(); ++i) {
    if (!std::isfinite(found[i])) {
      return INFINITY;
    }
    largest = std::max(largest, std::abs(expected[i]));
    worst = std::max(worst, std::abs(static_cast<double>(found[i]) - expected[i]));
  }
  return worst == 0 ? 0 : worst / largest;
}

struct Case {
  Npz file;
  GroupLossOptions options;
  std::vector<int32_t> labels, anchors;

  explicit Case(const std::filesystem::path& path) : file(Npz::read(path)) {
    options.refinement.temperature = static_cast<float>(file.at("temperature").scalar());
    options.refinement.steps = static_cast<int>(file.at("iterations").scalar());
    options.refinement.diagonal = choice("diagonal", "zero", "one") ? Diagonal::zero : Diagonal::one;
    options.refinement.negatives = choice("negatives", "clamp", "shift") ? Negatives::clamp : Negatives::shift;
    options.columns = file.at("batch_classes_only").scalar() != 0 ? Columns::of_batch : Columns::all;
    options.anchors = AnchorChoice::given;
    options.mean_over = MeanOver::all;
    for (const int64_t label : file.at("labels").integers()) {
      labels.push_back(static_cast<int32_t>(label));
    }
    for (const int64_t anchor : file.at("anchors").integers()) {
      anchors.push_back(static_cast<int32_t>(anchor));
    }
  }

  bool choice(const char* key, const char* first, const char* second) const {
    const std::string text = file.at(key).text();
    if (text != first && text != second) {
      fail(ErrorCode::data, key, " is '", text, "', expected '", first, "' or '", second, "'");
    }
    return text == first;
  }

  Tensor load(Backend& backend, const char* key) const {
    const NpyArray& array = file.at(key);
    if (array.shape.size() != 2 || array.elements() == 0) {
      fail(ErrorCode::data, key, " is not a matrix");
    }
    Tensor tensor = backend.new_tensor(key, {array.shape[0], array.shape[1]});
    backend.upload(array.floats().data(), tensor);
    return tensor;
  }

  double miss(const char* key, std::span<const float> found) const { return difference(found, file.at(key).doubles()); }
};

std::vector<float> fetch(Backend& backend, const Tensor& tensor) {
  std::vector<float> values(static_cast<size_t>(tensor.elements()));
  backend.download(tensor, values.data());
  return values;
}

}  // namespace

bool OracleResult::good() const {
  return std::max({similarities, iterates, functional, loss}) <= kValueTolerance &&
         std::max(dembeddings, dlogits) <= kGradientTolerance;
}

OracleResult check_oracle(Backend& backend, const std::filesystem::path& path) {
  Case c(path);
  Tape tape(backend);
  Context ctx{.backend = backend, .tape = &tape, .mode = Mode::training};
  const Var embeddings = tape.leaf(c.load(backend, "embeddings"));
  const Var logits = tape.leaf(c.load(backend, "logits"));
  GroupBatch batch;
  batch.set(ctx, c.labels, logits.shape()[1], c.options, c.anchors);
  GroupLossDetails details;
  const Var loss = group_loss(ctx, embeddings, logits, batch, c.options, Var(), &details);
  tape.backward(loss);

  OracleResult result;
  result.similarities = c.miss("W", details.similarities);
  std::vector<float> iterates;
  for (const std::vector<float>& x : details.iterates) {
    iterates.insert(iterates.end(), x.begin(), x.end());
  }
  result.iterates = c.miss("X", iterates);
  result.functional = c.miss("functional", std::vector<float>(details.functional.begin(), details.functional.end()));
  result.loss = c.miss("loss_mean_over_all", fetch(backend, loss.value()));
  const auto gradient = [&](const char* key, const Var& leaf) {
    const Tensor found = tape.gradient(leaf);
    return found ? c.miss(key, fetch(backend, found)) : INFINITY;
  };
  result.dembeddings = gradient("d_embeddings", embeddings);
  result.dlogits = gradient("d_logits", logits);

  c.options.mean_over = MeanOver::non_anchors;
  const Var other = group_loss(ctx, embeddings, logits, batch, c.options);
  result.loss = std::max(result.loss, c.miss("loss_mean_over_non_anchors", fetch(backend, other.value())));
  return result;
}

int examine_oracle(const std::string& folder, Backend& backend) {
  std::vector<std::filesystem::path> files;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    if (entry.path().extension() == ".npz") {
      files.push_back(entry.path());
    }
  }
  if (error) {
    fail(ErrorCode::io, "--oracle ", folder, ": ", error.message());
  }
  if (files.empty()) {
    fail(ErrorCode::data, "--oracle ", folder, ": no .npz file in it");
  }
  std::sort(files.begin(), files.end());
  std::printf("%s; tolerance %.0e, gradients %.0e\n\n%-34s %9s %9s %9s %9s %9s %9s\n", backend.description(),
              kValueTolerance, kGradientTolerance, "file", "W", "X", "F", "loss", "dE", "dZ");
  int missed = 0;
  for (const auto& file : files) {
    const OracleResult r = check_oracle(backend, file);
    missed += r.good() ? 0 : 1;
    std::printf("%-34s %9.1e %9.1e %9.1e %9.1e %9.1e %9.1e%s\n", file.filename().c_str(), r.similarities, r.iterates,
                r.functional, r.loss, r.dembeddings, r.dlogits, r.good() ? "" : "  MISSED");
  }
  std::printf("\n%zu files, %d missed\n", files.size(), missed);
  return missed;
}

}  // namespace gle::doctor
