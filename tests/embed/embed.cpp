// The same in C++: embeds pictures and prints the bits of an embedding a line.
#include <bit>
#include <cstdint>
#include <cstdio>
#include <gle.hpp>

int main(int argc, char** argv) {
  try {
    gle_c::model("no such file");
    return 1;
  } catch (const gle_c::error& e) {
    if (e.status() != GLE_IO) {
      return 1;
    }
  }
  gle_c::model model(argv[1]);
  std::vector<float> all;
  for (int i = 2; i < argc; ++i) {
    const std::vector<float> embedding = model.embed_file(argv[i]);
    for (size_t d = 0; d < embedding.size(); ++d) {
      std::printf("%08x%c", std::bit_cast<uint32_t>(embedding[d]), d + 1 < embedding.size() ? ' ' : '\n');
    }
    all.insert(all.end(), embedding.begin(), embedding.end());
  }
  gle_c::index index(all, model.dimensions());
  const std::vector<float> first(all.begin(), all.begin() + model.dimensions());
  try {
    index.search(std::vector<float>(first.size() + 1), 3);
    return 1;
  } catch (const std::invalid_argument&) {
  }
  return index.search(first, 3)[0].number == 0 ? 0 : 1;
}
