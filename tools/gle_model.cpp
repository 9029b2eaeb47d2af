// Networks and weight files: what a network is made of, and moving weights in and out.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/cpu/cpu.h"
#include "models/dry_backend.h"
#include "models/files/atomic_file.h"
#include "models/files/npy.h"
#include "models/files/safetensors.h"
#include "models/onnx.h"
#include "models/plan.h"
#include "models/weights.h"

namespace gle::tools {

namespace {

constexpr const char* kUsage =
    "usage: gle-model COMMAND ...\n"
    "\n"
    "  info NAME [--classes N] [--input HxW] [--batch B] [--layers]\n"
    "      layers, parameters, multiply-adds and memory of a network\n"
    "  import IN OUT.safetensors [--network NAME] [--no-strict]\n"
    "      any weight file (.safetensors, .pth, TorchScript, .npz) as .safetensors;\n"
    "      with --network under its names, checked for completeness\n"
    "  export OUT.onnx --network NAME --weights FILE\n"
    "      the network for inference as an ONNX model\n"
    "  diff A B [--tolerance T]\n"
    "      compares two weight files; exit code 1 if they differ by more than T\n"
    "  run IMAGES.npy OUT.npy --network NAME --weights FILE\n"
    "      embeddings of an array of images [N,H,W,3] (f4), made ready as the\n"
    "      network wants them\n"
    "\n"
    "heads (info, export, run):  --classes N  --embedding D  --bnneck\n"
    "GL++ (export, run):  --slope S  --max-share A  --beta B  and for run: --flip\n"
    "other:  --batch B (info, run)  --no-strict (import, export, run)\n"
    "        --help  --version\n"
    "\n"
    "example: gle-model info densenet161 --classes 751 --input 256x128 --batch 30\n";

struct Arguments {
  std::vector<std::string> names;
  std::map<std::string, std::string, std::less<>> options;

  bool has(std::string_view name) const { return options.contains(name); }
  std::string text(const std::string& name) const {
    const auto found = options.find(name);
    if (found == options.end()) {
      fail(ErrorCode::usage, name, " is missing; try --help");
    }
    return found->second;
  }
  int64_t integer(const std::string& name, int64_t otherwise, int64_t least) const {
    if (!has(name)) {
      return otherwise;
    }
    const std::string value = text(name);
    int64_t number = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
    if (error != std::errc() || end != value.data() + value.size() || number < least || number > 1'000'000) {
      fail(ErrorCode::usage, name, " ", value, ": a whole number from ", least, " to 1000000 is expected");
    }
    return number;
  }
  std::optional<float> real(const std::string& name) const {
    if (!has(name)) {
      return std::nullopt;
    }
    const std::string value = text(name);
    float number = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
    if (error != std::errc() || end != value.data() + value.size() || !std::isfinite(number) || number < 0) {
      fail(ErrorCode::usage, name, " ", value, ": a number from 0 is expected");
    }
    return number;
  }
};

Arguments parse(int argc, char** argv, size_t names, std::initializer_list<std::string_view> values,
                std::initializer_list<std::string_view> flags) {
  Arguments result;
  const auto among = [](std::initializer_list<std::string_view> list, std::string_view name) {
    return std::find(list.begin(), list.end(), name) != list.end();
  };
  for (int i = 2; i < argc; ++i) {
    const std::string argument = argv[i];
    if (!argument.starts_with("--")) {
      result.names.push_back(argument);
    } else if (among(flags, argument)) {
      result.options[argument] = "";
    } else if (among(values, argument) && i + 1 < argc) {
      result.options[argument] = argv[++i];
    } else {
      fail(ErrorCode::usage, argv[1], ": ", among(values, argument) ? "no value after '" : "unknown option '", argument,
           "'; try --help");
    }
  }
  if (result.names.size() != names) {
    fail(ErrorCode::usage, argv[1], ": ", names, " names are expected, got ", result.names.size(), "; try --help");
  }
  return result;
}

std::pair<int64_t, int64_t> input_size(const Arguments& arguments) {
  if (!arguments.has("--input")) {
    return {227, 227};
  }
  const std::string value = arguments.text("--input");
  int h = 0;
  int w = 0;
  int read = 0;
  if (std::sscanf(value.c_str(), "%5dx%5d%n", &h, &w, &read) != 2 || static_cast<size_t>(read) != value.size() ||
      h < 1 || w < 1) {
    fail(ErrorCode::usage, "--input ", value, ": HEIGHTxWIDTH is expected, as 227x227");
  }
  return {h, w};
}

HeadOptions head_of(const Arguments& arguments) {
  return {.classes = arguments.integer("--classes", 0, 0),
          .embedding = arguments.integer("--embedding", 0, 0),
          .bnneck = arguments.has("--bnneck")};
}

ForwardOptions forward_of(const Arguments& arguments) {
  return {.last_slope = arguments.real("--slope").value_or(0.0F),
          .max_share = arguments.real("--max-share"),
          .beta = arguments.real("--beta"),
          .flip = arguments.has("--flip")};
}

Strictness strictness_of(const Arguments& arguments) {
  return arguments.has("--no-strict") ? Strictness::lenient : Strictness::strict;
}

double mebibytes(size_t bytes) { return static_cast<double>(bytes) / (1 << 20); }

int info(int argc, char** argv) {
  const Arguments arguments =
      parse(argc, argv, 1, {"--classes", "--embedding", "--input", "--batch"}, {"--bnneck", "--layers"});
  NetworkOptions options{.name = arguments.names[0], .head = head_of(arguments)};
  const auto [h, w] = input_size(arguments);
  const int64_t batch = arguments.integer("--batch", 1, 1);
  DryBackend backend;
  const Network network(backend, options);
  const std::vector<LayerRow> rows = describe(network, {1, h, w, 3});
  int64_t multiply_adds = 0;
  for (const LayerRow& row : rows) {
    multiply_adds += row.multiply_adds;
    if (arguments.has("--layers")) {
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
    const MemoryPlan plan = plan_memory(options, images, mode);
    std::printf("%-30s %8.0f MiB, of which activations %.0f MiB\n", what, mebibytes(plan.peak),
                mebibytes(plan.peak - plan.parameters));
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

// How many classes the file's classifier has, or none.
int64_t classes_in(const WeightFile& file, const std::string& classifier) {
  for (const WeightTensor& tensor : file.tensors) {
    if (tensor.name.ends_with(classifier + ".weight") && tensor.shape.size() >= 2) {
      return tensor.shape[0];
    }
  }
  return 0;
}

int import(int argc, char** argv) {
  const Arguments arguments = parse(argc, argv, 2, {"--network"}, {"--no-strict"});
  const WeightFile file = read_weights(arguments.names[0]);
  std::vector<WeightTensor> tensors = file.tensors;
  std::map<std::string, std::string> metadata;
  std::fprintf(stderr, "%s: %s, %zu tensors", file.name.c_str(), file.format.c_str(), file.tensors.size());
  std::fprintf(stderr, file.left_out.empty() ? "\n" : ", %zu of whole numbers left out\n", file.left_out.size());
  if (arguments.has("--network")) {
    DryBackend backend;
    const std::string name = arguments.text("--network");
    const std::string classifier = Network(backend, {.name = name}).classifier_name();
    Network network(backend, {.name = name, .head = {.classes = classes_in(file, classifier)}});
    LoadReport report;
    tensors = renamed_weights(network, file, report);
    std::fprintf(stderr, "%s\n", report.text().c_str());
    if ((!report.complete() && strictness_of(arguments) == Strictness::strict) || tensors.empty()) {
      fail(ErrorCode::weights, file.name, ": does not fit ", name, "; --no-strict takes what fits");
    }
    metadata["network"] = name;
  }
  write_safetensors(arguments.names[1], tensors, metadata);
  return 0;
}

struct Loaded {
  std::unique_ptr<Backend> backend;
  std::unique_ptr<Network> network;
};

Loaded load(const Arguments& arguments) {
  const std::string name = arguments.text("--network");
  const WeightFile file = read_weights(arguments.text("--weights"));
  HeadOptions head = head_of(arguments);
  if (!arguments.has("--classes")) {
    DryBackend dry;
    head.classes = classes_in(file, Network(dry, {.name = name}).classifier_name());
  }
  Loaded result{.backend = make_cpu_backend(), .network = nullptr};
  result.network = std::make_unique<Network>(*result.backend, NetworkOptions{.name = name, .head = head});
  result.network->initialise(*result.backend, 0);
  const LoadReport report = load_weights(*result.backend, *result.network, file, strictness_of(arguments));
  std::fprintf(stderr, "%s: %s\n", file.name.c_str(), report.text().c_str());
  return result;
}

int export_(int argc, char** argv) {
  const Arguments arguments =
      parse(argc, argv, 1, {"--network", "--weights", "--classes", "--embedding", "--slope", "--max-share", "--beta"},
            {"--bnneck", "--no-strict"});
  const Loaded loaded = load(arguments);
  write_atomically(arguments.names[0], {export_onnx(*loaded.backend, *loaded.network, forward_of(arguments))});
  return 0;
}

int run(int argc, char** argv) {
  const Arguments arguments =
      parse(argc, argv, 2,
            {"--network", "--weights", "--classes", "--embedding", "--slope", "--max-share", "--beta", "--batch"},
            {"--bnneck", "--no-strict", "--flip"});
  const NpyArray images = read_npy(arguments.names[0]);
  const std::vector<int64_t>& shape = images.shape;
  if (shape.size() != 4 || shape[3] != 3 || images.elements() == 0) {
    fail(ErrorCode::data, images.name, ": an array of images [N,H,W,3] is expected");
  }
  const Loaded loaded = load(arguments);
  const std::vector<float> pixels = images.floats();
  const int64_t batch = arguments.integer("--batch", 32, 1);
  const int64_t width = loaded.network->embedding_channels();
  ForwardOptions options = forward_of(arguments);
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
  write_npy(arguments.names[1], npy_of(std::span<const float>(embeddings), {shape[0], width}));
  return 0;
}

int diff(int argc, char** argv) {
  const Arguments arguments = parse(argc, argv, 2, {"--tolerance"}, {});
  const double tolerance = arguments.real("--tolerance").value_or(0.0F);
  const WeightFile a = read_weights(arguments.names[0]);
  const WeightFile b = read_weights(arguments.names[1]);
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
    if (largest > tolerance) {
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

int main(int argc, char** argv) {
  const std::string command = argc > 1 ? argv[1] : "";
  const bool help = std::any_of(argv + 1, argv + argc, [](const char* a) { return std::strcmp(a, "--help") == 0; });
  if (help) {
    std::fputs(kUsage, stdout);
    return 0;
  }
  if (command == "--version") {
    std::puts("gle-model " GLE_VERSION);
    return 0;
  }
  if (command == "info") {
    return info(argc, argv);
  }
  if (command == "import") {
    return import(argc, argv);
  }
  if (command == "export") {
    return export_(argc, argv);
  }
  if (command == "run") {
    return run(argc, argv);
  }
  if (command == "diff") {
    return diff(argc, argv);
  }
  fail(ErrorCode::usage, "there is no command '", command, "'; try --help");
}

}  // namespace

}  // namespace gle::tools

int main(int argc, char** argv) {
  try {
    return gle::tools::main(argc, argv);
  } catch (const gle::Error& e) {
    std::fprintf(stderr, "gle-model: %s\n", e.what());
    return static_cast<int>(e.code());
  } catch (const std::bad_alloc&) {
    std::fprintf(stderr, "gle-model: out of memory\n");
    return 5;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "gle-model: %s\n", e.what());
    return 1;
  }
}
