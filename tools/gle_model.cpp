// Networks and weight files: what a network is made of, and moving weights in and out.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/cpu/cpu.h"
#include "models/dry_backend.h"
#include "models/files/atomic_file.h"
#include "models/files/file.h"
#include "models/files/npy.h"
#include "models/files/safetensors.h"
#include "models/files/sha256.h"
#include "models/model_file.h"
#include "models/onnx.h"
#include "models/plan.h"
#include "tools/cli/command.h"
#include "tools/cli/model.h"
#include "tools/cli/program.h"

namespace gle::tools {

namespace {

struct Arguments {
  std::string in, out, other;
  std::string network;
  std::string weights;
  HeadOptions head;
  std::string sha256;
  std::string input = "227x227";
  int64_t planned_batch = 1;
  int64_t batch = 32;
  bool layers = false;
  bool tensors = false;
  bool lenient = false;
  double tolerance = 0;
  uint64_t seed = 0;
  ForwardOptions forward;
};

double mebibytes(size_t bytes) { return static_cast<double>(bytes) / (1 << 20); }

std::pair<int64_t, int64_t> input_size(const std::string& text) {
  int h = 0;
  int w = 0;
  int read = 0;
  if (std::sscanf(text.c_str(), "%5dx%5d%n", &h, &w, &read) != 2 || static_cast<size_t>(read) != text.size() || h < 1 ||
      w < 1) {
    fail(ErrorCode::usage, "--input ", text, ": HEIGHTxWIDTH is expected, as 227x227");
  }
  return {h, w};
}

// Not under a name that another format has.
void require_format(const std::string& out, const std::string& written) {
  for (const std::string known : {".safetensors", ".gle", ".pth", ".pt", ".pth.tar", ".npz", ".npy", ".onnx"}) {
    if (known != written && out.ends_with(known)) {
      fail(ErrorCode::usage, out, ": a file of the kind ", written, " would be written, and the name says ", known,
           "; let it end in ", written);
    }
  }
}

std::string text_of(const std::vector<int64_t>& shape) {
  std::string text;
  for (const int64_t size : shape) {
    text += (text.empty() ? "" : "x") + std::to_string(size);
  }
  return text.empty() ? "1" : text;
}

std::string text_of(const InputDescription& input) {
  std::string text = std::to_string(input.height) + "x" + std::to_string(input.width);
  if (input.short_side > 0) {
    text += " from the middle of pictures of short side " + std::to_string(input.short_side);
  }
  if (input.square > 0) {
    text += " from the middle of squares of " + std::to_string(input.square);
  }
  return text + (input.bgr ? ", BGR" : ", RGB");
}

void print_description(const WeightFile& file) {
  if (!has_description(file)) {
    std::printf("network         not said\n");
    return;
  }
  const ModelDescription model = description_of(file);
  DryBackend dry;
  std::printf("network         %s\n", model.network.name.c_str());
  std::printf("classes         %lld\n", static_cast<long long>(model.network.head.classes));
  std::printf("embedding       %lld\n", static_cast<long long>(Network(dry, model.network).embedding_channels()));
  std::printf("input           %s\n", text_of(model.input).c_str());
}

int file_info(const std::string& path, bool list_tensors) {
  const WeightFile file = read_weights(weight_file_of(path));
  size_t numbers = 0;
  for (const WeightTensor& tensor : file.tensors) {
    numbers += tensor.values.size();
    if (list_tensors) {
      std::printf("%-64s %s\n", tensor.name.c_str(), text_of(tensor.shape).c_str());
    }
  }
  std::printf("file            %s\n", file.name.c_str());
  std::printf("format          %s\n", file.format.c_str());
  print_description(file);
  std::printf("tensors         %zu of %zu numbers, running statistics among them\n", file.tensors.size(), numbers);
  if (!file.left_out.empty()) {
    std::printf("left out        %zu tensors that are not floats\n", file.left_out.size());
  }
  return 0;
}

int network_info(const Arguments& arguments) {
  NetworkOptions options{.name = arguments.network, .head = arguments.head};
  const auto [h, w] = input_size(arguments.input);
  const int64_t batch = arguments.planned_batch;
  DryBackend backend;
  const Network network(backend, options);
  const std::vector<LayerRow> rows = describe(network, {1, h, w, 3});
  int64_t multiply_adds = 0;
  for (const LayerRow& row : rows) {
    multiply_adds += row.multiply_adds;
    if (arguments.layers) {
      std::string shape;
      for (int i = 1; i < row.output.rank(); ++i) {
        shape += i == 1 ? "" : "x";
        shape += std::to_string(row.output[i]);
      }
      std::printf("%-48s %-12s %14s %12lld %14lld\n", row.name.c_str(), row.kind.c_str(), shape.c_str(),
                  static_cast<long long>(row.parameters), static_cast<long long>(row.multiply_adds));
    }
  }
  std::printf("network         %s\n", options.name.c_str());
  std::printf("layers          %zu\n", rows.size());
  std::printf("parameters      %lld\n", static_cast<long long>(network.parameters().parameter_count()));
  std::printf("embedding       %lld\n", static_cast<long long>(network.embedding_channels()));
  std::printf("multiply-adds   %.3f G for one image of %lldx%lld\n", static_cast<double>(multiply_adds) * 1e-9,
              static_cast<long long>(h), static_cast<long long>(w));
  const Shape images{batch, h, w, 3};
  const auto print = [&](const char* what, Mode mode, bool recompute) {
    options.recompute = recompute;
    try {
      const MemoryPlan plan = plan_memory(options, images, mode);
      std::printf("%-30s %8.0f MiB, of which activations %.0f MiB\n", what, mebibytes(plan.peak),
                  mebibytes(plan.peak - plan.parameters));
    } catch (const Error& error) {  // as one small picture, of which batch-norm has no variance
      std::printf("%-30s not possible: %s\n", what, error.what());
    }
  };
  std::printf("memory for a batch of %lld, without an optimiser's moments and kernels' scratch:\n",
              static_cast<long long>(batch));
  print("  inference", Mode::inference, false);
  print("  training", Mode::training, false);
  if (options.name.starts_with("densenet")) {
    print("  training, recomputing", Mode::training, true);
  }
  return 0;
}

int info(const Arguments& arguments) {
  const std::vector<std::string> networks = network_names();
  if (std::ranges::count(networks, arguments.network) > 0) {
    return network_info(arguments);
  }
  if (std::filesystem::exists(arguments.network)) {
    return file_info(arguments.network, arguments.tensors);
  }
  std::string names;
  for (const std::string& name : networks) {
    names += (names.empty() ? "" : ", ") + name;
  }
  fail(ErrorCode::usage, arguments.network,
       ": there is no such file or folder, and no network of this name; there are: ", names);
}

// How many classes the file's classifier has, or none.
int64_t classes_in(const WeightFile& file, const std::string& classifier) {
  for (const WeightTensor& tensor : file.tensors) {
    if (tensor.name.ends_with(classifier + ".weight") && tensor.shape.size() >= 2) {
      return tensor.shape[0];
    }
  }
  return 0;
}

bool is_described_as(const WeightFile& file, const std::string& network) {
  return has_description(file) && description_of(file).network.name == network;
}

// As the file describes it, or else as its tensors tell.
NetworkOptions named_network(const Arguments& arguments, const WeightFile& file) {
  if (is_described_as(file, arguments.network)) {
    return description_of(file).network;
  }
  if (has_description(file) && !arguments.lenient) {
    fail(ErrorCode::weights, file.name, ": does not fit ", arguments.network, ": it says that it is of ",
         description_of(file).network.name, "; --no-strict takes what fits");
  }
  NetworkOptions options{.name = arguments.network};
  DryBackend dry;
  options.head.classes = classes_in(file, Network(dry, options).classifier_name());
  return options;
}

// The network that the arguments name, or that the file is of.
NetworkOptions network_of(const Arguments& arguments, const WeightFile& file) {
  if (arguments.network.empty()) {
    return description_of(file).network;
  }
  NetworkOptions options = named_network(arguments, file);
  const HeadOptions& given = arguments.head;
  options.head.classes = given.classes > 0 ? given.classes : options.head.classes;
  options.head.embedding = given.embedding > 0 ? given.embedding : options.head.embedding;
  options.head.bnneck = options.head.bnneck || given.bnneck;
  return options;
}

int import(const Arguments& arguments) {
  require_format(arguments.out, ".safetensors");
  const std::string path = weight_file_of(arguments.in);
  const std::vector<std::byte> bytes = read_file(path);
  if (!arguments.sha256.empty()) {
    require_sha256(bytes, arguments.sha256, path);
  }
  const WeightFile file = parse_weights(bytes, path);
  std::fprintf(stderr, "%s: %s, %zu tensors", file.name.c_str(), file.format.c_str(), file.tensors.size());
  std::fprintf(stderr, file.left_out.empty() ? "\n" : ", %zu of whole numbers left out\n", file.left_out.size());
  if (arguments.network.empty()) {
    write_safetensors(arguments.out, file.tensors, file.metadata);
    return 0;
  }
  DryBackend backend;
  const NetworkOptions options = network_of(arguments, file);
  Network network(backend, options);
  LoadReport report;
  const std::vector<WeightTensor> tensors = renamed_weights(network, file, report);
  std::fprintf(stderr, "%s\n", report.text().c_str());
  if ((!report.complete() && !arguments.lenient) || tensors.empty()) {
    fail(ErrorCode::weights, file.name, ": does not fit ", options.name, "; --no-strict takes what fits");
  }
  const InputDescription input =
      is_described_as(file, options.name) ? description_of(file).input : published_input(options.name);
  write_safetensors(arguments.out, tensors, metadata_of({options, input}));
  return 0;
}

struct Loaded {
  std::unique_ptr<Backend> backend;
  std::unique_ptr<Network> network;
};

Loaded load(const Arguments& arguments) {
  const WeightFile file = read_weights(weight_file_of(arguments.weights));
  Loaded result{.backend = make_cpu_backend(), .network = nullptr};
  result.network = std::make_unique<Network>(*result.backend, network_of(arguments, file));
  result.network->initialise(*result.backend, 0);
  const LoadReport report = load_weights(*result.backend, *result.network, file,
                                         arguments.lenient ? Strictness::lenient : Strictness::strict);
  std::fprintf(stderr, "%s: %s\n", file.name.c_str(), report.text().c_str());
  return result;
}

int init(const Arguments& arguments) {
  require_format(arguments.out, ".safetensors");
  const auto backend = make_cpu_backend();
  Network network(*backend, {.name = arguments.network, .head = arguments.head});
  network.initialise(*backend, arguments.seed);
  write_atomically(arguments.out, {format_model(*backend, network, published_input(arguments.network))});
  return 0;
}

int export_(const Arguments& arguments) {
  require_format(arguments.out, ".onnx");
  const Loaded loaded = load(arguments);
  write_atomically(arguments.out, {export_onnx(*loaded.backend, *loaded.network, arguments.forward)});
  return 0;
}

int run(const Arguments& arguments) {
  require_format(arguments.out, ".npy");
  const NpyArray images = read_npy(arguments.in);
  const std::vector<int64_t>& shape = images.shape;
  if (shape.size() != 4 || shape[3] != 3 || images.elements() == 0) {
    fail(ErrorCode::data, images.name, ": an array of images [N,H,W,3] is expected");
  }
  const Loaded loaded = load(arguments);
  const std::vector<float> pixels = images.floats();
  const int64_t batch = arguments.batch;
  const int64_t width = loaded.network->embedding_channels();
  ForwardOptions options = arguments.forward;
  options.with_logits = false;
  std::vector<float> embeddings(static_cast<size_t>(shape[0] * width));
  for (int64_t begin = 0; begin < shape[0]; begin += batch) {
    const int64_t count = std::min(batch, shape[0] - begin);
    Context ctx{.backend = *loaded.backend};
    const Tensor x = loaded.backend->new_tensor("images", {count, shape[1], shape[2], 3});
    loaded.backend->upload(&pixels[static_cast<size_t>(begin * shape[1] * shape[2] * 3)], x);
    const NetworkOutput output = loaded.network->forward(ctx, Var(x), options);
    loaded.backend->download(output.embedding.value(), &embeddings[static_cast<size_t>(begin * width)]);
  }
  write_npy(arguments.out, npy_of(std::span<const float>(embeddings), {shape[0], width}));
  return 0;
}

int diff(const Arguments& arguments) {
  const WeightFile a = read_weights(weight_file_of(arguments.in));
  const WeightFile b = read_weights(weight_file_of(arguments.other));
  std::map<std::string, const WeightTensor*, std::less<>> others;
  for (const WeightTensor& tensor : b.tensors) {
    others[tensor.name] = &tensor;
  }
  int differences = 0;
  double worst = 0;
  for (const WeightTensor& tensor : a.tensors) {
    const auto other = others.find(tensor.name);
    if (other == others.end()) {
      std::printf("only in %s: %s\n", a.name.c_str(), tensor.name.c_str());
      ++differences;
      continue;
    }
    double largest = 0;
    if (other->second->values.size() == tensor.values.size() && other->second->shape == tensor.shape) {
      for (size_t i = 0; i < tensor.values.size(); ++i) {
        const double difference = std::abs(static_cast<double>(tensor.values[i]) - other->second->values[i]);
        largest = std::isnan(difference) ? INFINITY : std::max(largest, difference);
      }
    } else {
      largest = INFINITY;
    }
    if (largest > arguments.tolerance) {
      std::printf("%s: %s %g\n", tensor.name.c_str(), std::isinf(largest) ? "shapes or NaN," : "largest difference",
                  largest);
      ++differences;
    }
    worst = std::max(worst, largest);
    others.erase(other);
  }
  for (const auto& [name, tensor] : others) {
    std::printf("only in %s: %s\n", b.name.c_str(), name.c_str());
    ++differences;
  }
  std::printf("%zu and %zu tensors, %d differ, largest difference %g\n", a.tensors.size(), b.tensors.size(),
              differences, worst);
  return differences == 0 ? 0 : 1;
}

void add_head_options(CLI::App& app, Arguments& arguments) {
  app.add_option("--classes", arguments.head.classes, "outputs of the classifier; 0: as the file, or none")
      ->option_text("N")
      ->check(CLI::Range(0, 100'000'000));
  app.add_option("--embedding", arguments.head.embedding, "a linear layer to D numbers before the classifier; 0: none")
      ->option_text("D")
      ->check(CLI::Range(0, 1'000'000));
  app.add_flag("--bnneck", arguments.head.bnneck, "batch-norm between embedding and classifier");
}

void add_weight_options(CLI::App& app, Arguments& arguments) {
  app.add_option("--weights", arguments.weights, "any weight file, checkpoint or folder of a run")
      ->option_text("FILE")
      ->required();
  app.add_option("--network", arguments.network, "where the file does not say it itself")
      ->option_text("NAME")
      ->check(suggested(network_names()));
  app.add_flag("--no-strict", arguments.lenient, "take the tensors that fit");
  add_head_options(app, arguments);
  app.add_option("--slope", arguments.forward.last_slope, "GL++: of the last activation below 0")
      ->option_text("S")
      ->check(CLI::Range(0.0, 1.0));
  app.add_option("--max-share", arguments.forward.max_share, "GL++: of the maximum in the global pooling")
      ->option_text("A")
      ->check(CLI::Range(0.0, 1.0));
  app.add_option("--beta", arguments.forward.beta, "GL++: embeddings f / |f| + beta f")
      ->option_text("B")
      ->check(CLI::NonNegativeNumber);
}

int main(int argc, char** argv) {
  Program program("gle-model", "Networks and weight files.",
                  "gle-model info densenet161 --classes 751 --input 256x128 --batch 30");
  Arguments arguments;
  CLI::App& app = program.options();
  app.require_subcommand(1);

  CLI::App* info_app = app.add_subcommand(
      "info", "layers, parameters, multiply-adds and memory of a network; or what is in a weight file or a run");
  info_app->footer("example: gle-model info densenet161 --classes 751 --input 256x128 --batch 30");
  info_app
      ->add_option(
          "NAME", arguments.network,
          "bn_inception, densenet121, inception_v3, ...; or a weight file, a checkpoint or the folder of a run")
      ->required()
      ->check(suggested(network_names()));
  info_app->add_option("--input", arguments.input, "size of the images")->option_text("HxW");
  info_app->add_option("--batch", arguments.planned_batch, "images in a batch")
      ->option_text("B")
      ->check(CLI::Range(1, 1'000'000));
  info_app->add_flag("--layers", arguments.layers, "a line for each layer");
  info_app->add_flag("--tensors", arguments.tensors, "of a file: a line for each tensor, name and shape");
  add_head_options(*info_app, arguments);

  CLI::App* init_app = app.add_subcommand("init", "a network's weights as training from scratch begins with them");
  init_app->footer("example: gle-model init bn_inception start.safetensors --classes 100 --seed 7");
  init_app->add_option("NAME", arguments.network, "the network")->required()->check(suggested(network_names()));
  init_app->add_option("OUT", arguments.out, "the .safetensors to write")->required();
  init_app->add_option("--seed", arguments.seed, "of the random numbers")->option_text("N");
  add_head_options(*init_app, arguments);

  CLI::App* import_app =
      app.add_subcommand("import", "any weight file as .safetensors; with --network under its names and complete");
  import_app->footer("example: gle-model import densenet121.pth d.safetensors --network densenet121");
  import_app->add_option("IN", arguments.in, ".safetensors, .pth, TorchScript, .npz, .gle or the folder of a run")
      ->required();
  import_app->add_option("OUT", arguments.out, "the .safetensors to write")->required();
  import_app->add_option("--network", arguments.network, "whose weights they are")
      ->option_text("NAME")
      ->check(suggested(network_names()));
  import_app->add_flag("--no-strict", arguments.lenient, "take the tensors that fit");
  import_app->add_option("--sha256", arguments.sha256, "that the file must have; one in its name is looked at anyway")
      ->option_text("DIGITS")
      ->check(CLI::Validator(
          [](const std::string& text) {
            const bool sound = text.size() == 64 && text.find_first_not_of("0123456789abcdef") == std::string::npos;
            return sound ? std::string() : "64 digits of 0-9 and a-f are expected";
          },
          ""));
  add_head_options(*import_app, arguments);

  CLI::App* export_app = app.add_subcommand("export", "the network for inference as an ONNX model");
  export_app->footer("example: gle-model export best.onnx --weights runs/demo/checkpoints/best.gle");
  export_app->add_option("OUT", arguments.out, "the .onnx to write")->required();
  add_weight_options(*export_app, arguments);

  CLI::App* run_app = app.add_subcommand("run", "embeddings of an array of images that are made ready already");
  run_app->footer("example: gle-model run images.npy embeddings.npy --weights best.safetensors");
  run_app->add_option("IMAGES", arguments.in, ".npy of [N,H,W,3] floats")->required();
  run_app->add_option("OUT", arguments.out, "the .npy to write")->required();
  run_app->add_option("--batch", arguments.batch, "images at a time")
      ->option_text("B")
      ->check(CLI::Range(1, 1'000'000));
  run_app->add_flag("--flip", arguments.forward.flip, "GL++: mean with the mirror image's");
  add_weight_options(*run_app, arguments);

  CLI::App* diff_app = app.add_subcommand("diff", "compares two weight files; exit code 1 if they differ");
  diff_app->footer("example: gle-model diff a.safetensors b.safetensors --tolerance 1e-6");
  diff_app->add_option("A", arguments.in, "a weight file, a checkpoint or the folder of a run")->required();
  diff_app->add_option("B", arguments.other, "another")->required();
  diff_app->add_option("--tolerance", arguments.tolerance, "largest difference that counts as none")
      ->option_text("T")
      ->check(CLI::NonNegativeNumber);

  return program.run(argc, argv, [&] {
    return info_app->parsed()     ? info(arguments)
           : init_app->parsed()   ? init(arguments)
           : import_app->parsed() ? import(arguments)
           : export_app->parsed() ? export_(arguments)
           : run_app->parsed()    ? run(arguments)
                                  : diff(arguments);
  });
}

}  // namespace

}  // namespace gle::tools

int main(int argc, char** argv) { return gle::tools::main(argc, argv); }
