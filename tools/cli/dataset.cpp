#include "tools/cli/dataset.h"

#include "data/images.h"
#include "engine/error.h"
#include "tools/cli/command.h"

namespace gle::tools {

data::DatasetOptions DatasetArguments::options() const {
  data::DatasetOptions result{.dataset = dataset, .outside = outside ? data::Outside::allow : data::Outside::refuse};
  if (!train_classes.empty()) {
    result.train_classes = data::parse_class_range(train_classes);
    if (!result.train_classes) {
      fail(ErrorCode::usage, "--train-classes ", train_classes, ": A:B is expected, as 0:100");
    }
  }
  return result;
}

EmbedOptions DatasetArguments::embed_options(Comm& comm) const {
  return {.decode = {.exif = exif ? data::Exif::rotate : data::Exif::ignore},
          .batch = batch,
          .workers = workers,
          .comm = &comm};
}

void add_dataset_options(CLI::App& app, DatasetArguments& arguments) {
  app.add_option("--dataset", arguments.dataset,
                 "cub, sop, market1501, folders, ...; default: by what is in the folder")
      ->option_text("NAME")
      ->check(suggested(data::dataset_names()));
  app.add_option("--train-classes", arguments.train_classes, "class folders: those to train on; the others are tested")
      ->option_text("A:B");
  app.add_flag("--allow-outside-root", arguments.outside, "lists and links may lead out of the folder");
  app.add_flag("--exif", arguments.exif, "turn pictures as EXIF says");
  app.add_option("--batch", arguments.batch, "images at a time")->option_text("B")->check(CLI::Range(1, 65536));
  app.add_option("--workers", arguments.workers, "threads that decode")->option_text("N")->check(CLI::Range(0, 256));
}

std::shared_ptr<const data::Dataset> open_dataset(const std::string& path, const DatasetArguments& arguments,
                                                  const Verbosity& verbosity) {
  auto data = std::make_shared<data::Dataset>(data::load_images_or_dataset(path, arguments.options()));
  if (!verbosity.quiet) {
    for (const std::string& warning : data->warnings) {
      std::fprintf(stderr, "%s: %s\n", path.c_str(), warning.c_str());
    }
  }
  return data;
}

}  // namespace gle::tools
