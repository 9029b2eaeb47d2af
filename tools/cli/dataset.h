#pragma once

#include <memory>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "data/decode.h"
#include "retrieval/embed.h"
#include "tools/cli/program.h"

namespace gle::tools {

struct DatasetArguments {
  std::string dataset;
  std::string train_classes;  // "A:B"
  bool outside = false;
  bool exif = false;
  int batch = 64;
  int workers = 2;

  data::DatasetOptions options() const;
  EmbedOptions embed_options(Comm& comm) const;
};
// --dataset, --train-classes, --allow-outside-root, --exif, --batch, --workers.
void add_dataset_options(CLI::App& app, DatasetArguments& arguments);

// Pictures, a list of them or a data set; what is odd about it goes to stderr.
std::shared_ptr<const data::Dataset> open_dataset(const std::string& path, const DatasetArguments& arguments,
                                                  const Verbosity& verbosity);

}  // namespace gle::tools
