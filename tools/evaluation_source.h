#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "engine/backend.h"
#include "engine/error.h"
#include "retrieval/evaluate.h"
#include "retrieval/strategies.h"
#include "tools/cli/dataset.h"
#include "tools/cli/model.h"

namespace gle::tools {

// A rule of the command line; the program's name is put before the message.
template <class... Parts>
void require_usage(bool holds, const Parts&... parts) {
  if (!holds) {
    fail(ErrorCode::usage, parts...);
  }
}

// Embeddings in files of any framework.
struct ArrayPaths {
  std::string embeddings, labels, cameras;
  std::string query_embeddings, query_labels, query_cameras;  // empty: the set queries itself
  std::vector<int32_t> distractors;                           // labels that nobody has
};

// What is to be ranked.
struct EvaluationSet {
  std::vector<float> query_values;  // empty if the gallery queries itself
  std::vector<float> gallery_values;
  int64_t dimensions = 0;
  Identities identities;

  Embeddings queries() const;
  Embeddings gallery() const;
};

// Where it comes from: a network and a data set, or embeddings that are there already.
class EvaluationSource {
 public:
  virtual ~EvaluationSource() = default;
  virtual std::string dataset() const = 0;
  // What it is made of: models and data, or files.
  virtual nlohmann::json notes() const = 0;
  virtual const Identities& identities() const = 0;
  // What embed() will be asked for, in this order: rows that come together share the passes through a network.
  virtual void announce(std::vector<std::vector<Strategy>> used) = 0;
  // Embeddings by these strategies; the same set until the next call. Throws ErrorCode::usage for those that need a
  // network where there is none.
  virtual const EvaluationSet& embed(std::span<const Strategy> used, const StrategyValues& values) = 0;
};

std::unique_ptr<EvaluationSource> source_of_models(Backend& backend, Comm& comm, const std::vector<std::string>& models,
                                                   const std::string& data, const ModelOptions& model,
                                                   const DatasetArguments& arguments, const Verbosity& verbosity);
// A folder of gle-embed's.
std::unique_ptr<EvaluationSource> source_of_folder(const std::string& folder);
std::unique_ptr<EvaluationSource> source_of_arrays(const ArrayPaths& paths);

}  // namespace gle::tools
