#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "models/files/byte_reader.h"
#include "models/network.h"

namespace gle {

// A tensor as weight files have them: convolutions [K,C,R,S].
struct WeightTensor {
  std::string name;
  std::vector<int64_t> shape;
  std::vector<float> values;
};

struct WeightFile {
  std::string name;    // for messages
  std::string format;  // "safetensors", "pth (zip)", "pth (legacy)", "torchscript", "npz", "checkpoint"
  std::vector<WeightTensor> tensors;
  std::vector<std::string> left_out;                 // tensors that are not floats, such as num_batches_tracked
  std::map<std::string, std::string> metadata = {};  // texts beside the tensors: safetensors and checkpoints have them
};

// Reads any of the formats, told apart by their first bytes. ErrorCode::weights if the file is damaged or hostile, or
// has another SHA-256 than its name says (models/files/sha256.h).
WeightFile read_weights(const std::string& path);
WeightFile parse_weights(Bytes bytes, const std::string& name);

struct LoadReport {
  std::vector<std::string> loaded;
  std::vector<std::string> missing;     // the network has it, the file has not
  std::vector<std::string> unexpected;  // the other way round
  std::vector<std::string> mismatched;  // "name: the file has [..], the network [..]"
  std::vector<std::string> skipped;     // a classifier of another number of classes, or none

  bool complete() const { return missing.empty() && unexpected.empty() && mismatched.empty(); }
  // One line per kind, with up to `most` names of each.
  std::string text(size_t most = 8) const;
};

enum class Strictness { strict, lenient };

// Copies the file's tensors to the network's parameters and state. Names may carry the prefixes of wrappers (module.,
// model., net., state_dict., _orig_mod.), torchvision's old DenseNet spelling or the spelling of the 2015 Inception-v3;
// batch-norm vectors may be [1,C]; num_batches_tracked and auxiliary classifiers are passed over. Strict: anything
// missing, unexpected or mismatched is an error of ErrorCode::weights and leaves the network as it was.
LoadReport load_weights(Backend& backend, Network& network, const WeightFile& file,
                        Strictness strictness = Strictness::strict);

// All parameters and state under their names, as load_weights() takes them.
std::vector<WeightTensor> network_weights(Backend& backend, Network& network);

// The file's tensors under the network's names and no others; what load_weights() would report is checked alike.
std::vector<WeightTensor> renamed_weights(Network& network, const WeightFile& file, LoadReport& report);

}  // namespace gle
