// Plans convolutions by the real cuDNN, through the backend's own code, for devices that are only described: no GPU and
// no driver needed. Fails if one of them has no plan within the rules.
//   list_convolutions | plan_convolutions [--tf32] [--table] DEVICE.json...
// --table: a row for each convolution with engine and workspace on each device, else a summary by device and network.

#include <cstdio>
#include <cstring>
#include <fstream>
#include <iostream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "engine/cuda/conv_plan.h"

namespace {

using gle::cuda::ConvProblem;
using gle::cuda::Direction;

struct Entry {
  std::string network;
  std::string direction;
  ConvProblem problem;
};

struct Device {
  std::string name;
  gle::cuda::Descriptor properties;
};

struct Summary {
  size_t convolutions = 0;
  std::set<int64_t> engines;
  size_t workspace = 0;
};

std::vector<Entry> read_list(std::istream& in) {
  std::vector<Entry> entries;
  Entry e;
  int64_t adds = 0;
  ConvProblem& p = e.problem;
  while (in >> e.network >> e.direction >> p.n >> p.h >> p.w >> p.c >> p.k >> p.r >> p.s >> p.p >> p.q >> p.stride_h >>
         p.stride_w >> p.pad_h >> p.pad_w >> p.x_pitch >> p.y_pitch >> p.x_alignment >> p.w_alignment >>
         p.y_alignment >> adds) {
    p.direction = e.direction == "forward" ? Direction::forward
                  : e.direction == "data"  ? Direction::backward_data
                                           : Direction::backward_weights;
    p.mode = adds == 0 ? gle::Accumulate::overwrite : gle::Accumulate::add;
    entries.push_back(e);
  }
  return entries;
}

Device read_device(const char* path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  const std::string json = text.str();
  const size_t key = json.find("\"deviceName\"");
  const size_t begin = json.find('"', json.find(':', key)) + 1;
  Device device{json.substr(begin, json.find('"', begin) - begin),
                gle::cuda::Descriptor(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR)};
  device.properties.set(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, json);
  device.properties.finalise();
  return device;
}

std::string text_of(const Entry& e) {
  const ConvProblem& p = e.problem;
  std::ostringstream text;
  text << e.direction << ' ' << p.r << 'x' << p.s << " s" << p.stride_h << ' ' << p.h << 'x' << p.w << 'x' << p.c
       << " -> " << p.p << 'x' << p.q << 'x' << p.k << (p.x_pitch != p.c ? ", slice" : "")
       << (p.mode == gle::Accumulate::add ? ", adds" : "");
  return text.str();
}

}  // namespace

int main(int count, char** arguments) try {
  gle::cuda::PlanRules rules{.deterministic = true, .workspace_limit = size_t{256} << 20};
  bool table = false;
  std::vector<Device> devices;
  for (int i = 1; i < count; ++i) {
    if (std::strcmp(arguments[i], "--tf32") == 0) {
      rules.tf32 = true;
    } else if (std::strcmp(arguments[i], "--table") == 0) {
      table = true;
    } else {
      devices.push_back(read_device(arguments[i]));
    }
  }
  const std::vector<Entry> entries = read_list(std::cin);
  if (entries.empty() || devices.empty()) {
    std::fprintf(stderr, "plan_convolutions: nothing to plan, or no device to plan for\n");
    return 2;
  }
  if (table) {
    std::printf("| convolution |");
    for (const Device& device : devices) {
      std::printf(" %s |", device.name.c_str());
    }
    std::printf("\n|---|");
    for (size_t i = 0; i < devices.size(); ++i) {
      std::printf("---|");
    }
    std::printf("\n");
  }
  std::vector<std::map<std::string, Summary>> summaries(devices.size());
  int refused = 0;
  for (const Entry& entry : entries) {
    if (table) {
      std::printf("| %s %s |", entry.network.c_str(), text_of(entry).c_str());
    }
    for (size_t d = 0; d < devices.size(); ++d) {
      std::string refusal;
      const auto plans =
          gle::cuda::plan_convolution(entry.problem, {nullptr, devices[d].properties.get()}, rules, 1, refusal);
      if (plans.empty()) {
        ++refused;
        std::fprintf(stderr, "%s: no plan for %s of %s: %s\n", devices[d].name.c_str(), text_of(entry).c_str(),
                     entry.network.c_str(), refusal.c_str());
        continue;
      }
      Summary& summary = summaries[d][entry.network];
      ++summary.convolutions;
      summary.engines.insert(plans[0].engine);
      summary.workspace = std::max(summary.workspace, plans[0].workspace);
      if (table) {
        std::printf(" %lld, %.1f |", static_cast<long long>(plans[0].engine),
                    static_cast<double>(plans[0].workspace) / (1 << 20));
      }
    }
    if (table) {
      std::printf("\n");
    }
  }
  for (size_t d = 0; !table && d < devices.size(); ++d) {
    for (const auto& [network, summary] : summaries[d]) {
      std::printf("| %s | %s | %zu |", devices[d].name.c_str(), network.c_str(), summary.convolutions);
      for (const int64_t engine : summary.engines) {
        std::printf(" %lld", static_cast<long long>(engine));
      }
      std::printf(" | %.1f |\n", static_cast<double>(summary.workspace) / (1 << 20));
    }
  }
  return refused == 0 ? 0 : 1;
} catch (const std::exception& error) {
  std::fprintf(stderr, "plan_convolutions: %s\n", error.what());
  return 1;
}
