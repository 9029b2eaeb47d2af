#include <zlib.h>

#include <algorithm>

#include "data/inflate.h"
#include "engine/error.h"

namespace gle::data {

Bytes inflate_bytes(std::span<const uint8_t> packed, Wrapping wrapping, size_t limit, const std::string& name) {
  z_stream stream{};
  if (inflateInit2(&stream, wrapping == Wrapping::gzip ? 15 + 16 : 15) != Z_OK) {
    fail(ErrorCode::memory, name, ": no memory to unpack it");
  }
  struct Owner {
    z_stream* stream;
    ~Owner() { inflateEnd(stream); }
  } owner{&stream};
  constexpr size_t kStep = size_t{1} << 30;
  Bytes out(std::min(limit, std::max<size_t>(packed.size() * 4, 4096)));
  size_t filled = 0;
  size_t taken = 0;
  int status = Z_OK;
  while (status != Z_STREAM_END) {
    if (filled == out.size()) {
      if (out.size() == limit) {
        fail(ErrorCode::data, name, ": unpacks to more than the limit of ", limit, " bytes");
      }
      out.resize(std::min(limit, out.size() * 2));
    }
    stream.next_in = const_cast<Bytef*>(packed.data() + taken);
    stream.avail_in = static_cast<uInt>(std::min(packed.size() - taken, kStep));
    stream.next_out = out.data() + filled;
    stream.avail_out = static_cast<uInt>(std::min(out.size() - filled, kStep));
    status = inflate(&stream, Z_NO_FLUSH);
    taken = static_cast<size_t>(stream.next_in - packed.data());
    filled = static_cast<size_t>(stream.next_out - out.data());
    const bool stuck = status == Z_BUF_ERROR || (status == Z_OK && taken == packed.size() && filled < out.size());
    if (stuck || (status != Z_OK && status != Z_STREAM_END)) {
      fail(ErrorCode::data, name, ": compressed data ", stuck ? "ends too early" : "is damaged");
    }
  }
  out.resize(filled);
  return out;
}

}  // namespace gle::data
