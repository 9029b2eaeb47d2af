#include "data/item_loader.h"

#include <algorithm>
#include <array>

#include "engine/cpu/cpu.h"
#include "engine/error.h"

namespace gle::data {

ItemLoader::ItemLoader(const Dataset& data, const LoaderOptions& options)
    : data_(data),
      options_(options),
      kernels_(pixel_kernels(options.isa ? *options.isa : cpu::chosen_isa())),
      cache_(options.cache_bytes) {}

std::string ItemLoader::load(uint32_t index, uint64_t epoch, uint64_t position, Tools& tools, const Batch& batch,
                             size_t place) {
  const Item& item = data_.items[index];
  Random random(options_.seed, epoch, Purpose::transform, index, position);
  try {
    if (const auto kept = cache_.find(index)) {
      put(*kept, plan_for(item, kept->width, kept->height, random), tools, batch, place);
      ++cache_hits_;
      return "";
    }
    data_.read(item, tools.file);
    bytes_read_ += static_cast<int64_t>(tools.file.size());
    const std::string name = data_.name_of(item);
    const ImageInfo info = read_image_info(tools.file, name, options_.decode);
    const TransformPlan transform = plan_for(item, info.width, info.height, random);
    const bool keep = cache_.has_room(info.width, info.height);
    const Region needed = tools.transformer.needed(transform);
    if (keep || needed.width == 0) {
      decode_image(tools.file, name, options_.decode, tools.image);
    } else {
      decode_image(tools.file, name, info, needed, options_.decode, tools.image);
    }
    put(tools.image, transform, tools, batch, place);
    if (keep) {
      cache_.keep(index, tools.image);
    }
    return "";
  } catch (const Error& e) {
    if (e.code() != ErrorCode::data && e.code() != ErrorCode::io) {
      throw;
    }
    return e.what();
  }
}

void ItemLoader::put(const Image& image, const TransformPlan& transform, Tools& tools, const Batch& batch,
                     size_t place) const {
  const Size output = options_.transform.output();
  const size_t at = place * static_cast<size_t>(output.width) * static_cast<size_t>(output.height) * 3;
  if (options_.pixels == Pixels::floats) {
    tools.transformer.run(image, transform, batch.images.data() + at);
    return;
  }
  tools.transformer.run(image, transform, batch.images.bytes() + at);
  if (batch.erased) {
    const Region& r = transform.erase;
    const std::array<int32_t, 4> rectangle = {r.x, r.y, r.width, r.height};
    std::copy(rectangle.begin(), rectangle.end(), batch.erased.ints() + place * 4);
  }
}

TransformPlan ItemLoader::plan_for(const Item& item, int width, int height, Random& random) const {
  const Region& box = item.box;
  if (box.width > 0 && (box.x + box.width > width || box.y + box.height > height)) {
    fail(ErrorCode::data, data_.name_of(item), ": its box reaches to ", box.x + box.width, ",", box.y + box.height,
         "; the picture has ", width, " x ", height, " pixels");
  }
  return plan_transform(options_.transform, width, height, box, random);
}

}  // namespace gle::data
