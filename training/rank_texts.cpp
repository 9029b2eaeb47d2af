#include "training/rank_texts.h"

namespace gle {

namespace {

std::vector<std::string> texts_of_all(Comm& comm, const std::string& text) {
  std::vector<std::string> all;
  for (const std::vector<std::byte>& bytes : comm.gather(std::as_bytes(std::span(text.data(), text.size())))) {
    all.emplace_back(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  return all;
}

}  // namespace

std::string first_said(Comm& comm, const std::string& text) {
  for (const std::string& said : texts_of_all(comm, text)) {
    if (!said.empty()) {
      return said;
    }
  }
  return "";
}

std::vector<std::string> all_lines(Comm& comm, const std::vector<std::string>& lines) {
  std::string joined;
  for (const std::string& line : lines) {
    joined += line + '\n';
  }
  std::vector<std::string> all;
  for (const std::string& text : texts_of_all(comm, joined)) {
    for (size_t begin = 0, end = 0; (end = text.find('\n', begin)) != text.npos; begin = end + 1) {
      all.push_back(text.substr(begin, end - begin));
    }
  }
  return all;
}

std::unique_ptr<Checkpoint> checkpoint_for_all(Comm& comm, std::unique_ptr<Checkpoint> of_first) {
  std::string path = of_first ? of_first->path().string() : "";
  comm.broadcast(path, 0);
  if (path.empty()) {
    return nullptr;
  }
  std::vector<std::byte> content = of_first ? of_first->file().content() : std::vector<std::byte>();
  comm.broadcast(content, 0);
  return of_first ? std::move(of_first) : std::make_unique<Checkpoint>(CheckpointFile(path, std::move(content)));
}

}  // namespace gle
