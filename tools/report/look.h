#pragma once

#include <functional>
#include <memory>
#include <string>

#include "data/dataset.h"
#include "engine/backend.h"
#include "engine/thread_pool.h"
#include "retrieval/embed.h"
#include "tools/report/report.h"

namespace gle::report {

struct LookOptions {
  int queries = 16;       // rows of the grids
  int neighbours = 8;     // pictures in a row beside the query
  int64_t images = 2500;  // that are embedded, searched and mapped: whole classes until there are so many
  int batch = 32;
  int workers = 1;
  data::DecodeOptions decode = {};
  // Told what is done, how far it is, and what the whole is.
  std::function<void(const char* what, int64_t done, int64_t all)> progress = [](const char*, int64_t, int64_t) {};
};

// Grids and map: embeds test images of `data` and finds their neighbours. ErrorCode::data if there are too few.
void look_at_embeddings(Backend& backend, ThreadPool& pool, const EmbeddingModel& model,
                        const std::shared_ptr<const data::Dataset>& data, const LookOptions& options, Report& report);

// The refinement of one batch of training images; `data` numbers its classes as the classifier does.
Refinement look_at_refinement(Backend& backend, const EmbeddingModel& model,
                              const std::shared_ptr<const data::Dataset>& data, const TrainingConfig& config,
                              const LookOptions& options);

// Does both for a run's best checkpoint; what cannot be done is said in the report. `path` of the data set: empty for
// that of the run's config. Throws for a path that was given and cannot be read, and for a damaged checkpoint.
void look_at_run(Backend& backend, ThreadPool& pool, const Run& run, const std::string& path,
                 const LookOptions& options, Report& report);

}  // namespace gle::report
