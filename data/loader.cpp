#include "data/loader.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <exception>
#include <fstream>
#include <map>
#include <mutex>
#include <thread>

#include "data/csv.h"
#include "data/image_cache.h"
#include "engine/cpu/cpu.h"
#include "engine/error.h"

namespace gle::data {

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

// One batch under way.
struct Slot {
  Batch batch;
  size_t taken = 0;     // images given to workers
  size_t finished = 0;  // images done
  std::vector<BadImage> bad;
  std::exception_ptr problem;
};

// What a thread needs for itself.
struct Desk {
  Desk(const TransformOptions& transform, const PixelKernels& kernels) : transformer(transform, kernels) {}

  Bytes file;
  Image image;
  Transformer transformer;
  std::string busy_with;  // under the state's lock
};

}  // namespace

struct Loader::State {
  State(std::shared_ptr<const Dataset> dataset, const LoaderOptions& loader_options)
      : data(std::move(dataset)),
        options(loader_options),
        output(options.transform.output()),
        kernels(pixel_kernels(options.isa ? *options.isa : cpu::chosen_isa())),
        allocator(options.memory),
        cache(options.cache_bytes),
        members(train_members(*data)) {}

  const std::shared_ptr<const Dataset> data;
  const LoaderOptions options;
  const Size output;
  const PixelKernels& kernels;
  CachingAllocator allocator;
  ImageCache cache;
  const ClassMembers members;
  std::vector<std::thread> threads;
  std::atomic<int64_t> bytes_read = 0;
  std::atomic<int64_t> cache_hits = 0;

  mutable std::mutex mutex;
  std::condition_variable work;   // for workers: there is some, or the end
  std::condition_variable ready;  // for next(): an image is done
  bool stopping = false;
  EpochPlan plan;
  uint64_t epoch = 0;
  int64_t next_batch = 0;  // to begin
  std::deque<std::shared_ptr<Slot>> slots;
  std::vector<std::unique_ptr<Desk>> desks;
  std::map<uint32_t, std::string> found_bad;     // by any thread so far
  std::map<uint32_t, std::string> reported_bad;  // in batches handed out
  Clock::time_point progress;
  Clock::time_point begun;
  int64_t images = 0;
  double waiting = 0;

  Tensor room(const Shape& shape, DType type) {
    return {allocator.allocate(static_cast<size_t>(shape.elements()) * bytes_of(type), "a batch of images"), shape,
            type};
  }

  // With the lock held: a batch with an image that nobody has taken, or null.
  std::shared_ptr<Slot> slot_with_work() {
    for (const auto& slot : slots) {
      if (slot->taken < slot->batch.items.size()) {
        return slot;
      }
    }
    if (next_batch >= plan.batches() || static_cast<int>(slots.size()) >= std::max(1, options.prefetch)) {
      return nullptr;
    }
    auto slot = std::make_shared<Slot>();
    const auto items = plan.of_batch(next_batch);
    slot->batch.index = next_batch++;
    slot->batch.items.assign(items.begin(), items.end());
    slot->batch.labels.resize(items.size());
    const auto count = static_cast<int64_t>(items.size());
    const bool bytes = options.pixels == Pixels::bytes;
    slot->batch.images = room({count, output.height, output.width, 3}, bytes ? DType::u8 : DType::f32);
    if (bytes && options.transform.erase > 0) {
      slot->batch.erased = room({count, 4}, DType::i32);
    }
    slots.push_back(slot);
    return slot;
  }

  void work_as(Desk& desk) {
    std::unique_lock lock(mutex);
    while (true) {
      std::shared_ptr<Slot> slot;
      try {
        work.wait(lock, [&] { return stopping || (slot = slot_with_work()) != nullptr; });
      } catch (...) {
        // No memory for another batch: it is the first one without a slot that says so.
        slot = std::make_shared<Slot>();
        slot->problem = std::current_exception();
        slots.push_back(slot);
        next_batch = plan.batches();
        ready.notify_all();
        continue;
      }
      if (stopping) {
        return;
      }
      one_image(desk, *slot, slot->taken++, lock);
      ready.notify_all();
    }
  }

  // Called and left with the lock held; works without it.
  void one_image(Desk& desk, Slot& slot, size_t i, std::unique_lock<std::mutex>& lock) {
    const uint32_t wanted = slot.batch.items[i];
    const auto position = static_cast<uint64_t>(slot.batch.index) * static_cast<uint64_t>(plan.batch) + i;
    const uint64_t of_epoch = epoch;
    uint32_t item = wanted;
    std::vector<BadImage> bad;
    std::exception_ptr problem;
    try {
      while (true) {
        const auto known = found_bad.find(item);
        std::string reason = known == found_bad.end() ? "" : known->second;
        desk.busy_with = data->name_of(data->items[item]);
        lock.unlock();
        if (reason.empty()) {
          reason = load(desk, item, of_epoch, position, slot.batch, i);
        }
        lock.lock();
        desk.busy_with.clear();
        if (reason.empty()) {
          break;
        }
        found_bad.emplace(item, reason);
        bad.push_back({item, reason});
        if (options.on_bad == OnBad::error) {
          fail(ErrorCode::data, reason);
        }
        item = replacement(item, wanted);
      }
    } catch (...) {
      if (!lock.owns_lock()) {
        lock.lock();
      }
      desk.busy_with.clear();
      problem = std::current_exception();
    }
    slot.batch.items[i] = item;
    slot.batch.labels[i] = data->items[item].label;
    slot.bad.insert(slot.bad.end(), bad.begin(), bad.end());
    slot.problem = slot.problem ? slot.problem : problem;
    ++slot.finished;
    progress = Clock::now();
  }

  // The training image of the class that follows `item`; `first` is where the search began.
  uint32_t replacement(uint32_t item, uint32_t first) const {
    const auto label = static_cast<size_t>(data->items[first].label);
    static const std::vector<uint32_t> kNone;
    const std::vector<uint32_t>& peers = label < members.of_class.size() ? members.of_class[label] : kNone;
    const auto after = std::upper_bound(peers.begin(), peers.end(), item);
    const uint32_t next = peers.empty() ? first : after == peers.end() ? peers.front() : *after;
    if (next == first) {
      fail(ErrorCode::data, data->name_of(data->items[first]), ": cannot be read, and class '",
           data->class_names[label], "' has no readable training image to take its place");
    }
    return next;
  }

  // Empty: done; else what is wrong with the file.
  std::string load(Desk& desk, uint32_t index, uint64_t of_epoch, uint64_t position, const Batch& batch, size_t place) {
    const Item& item = data->items[index];
    Random random(options.seed, of_epoch, Purpose::transform, index, position);
    try {
      if (const auto kept = cache.find(index)) {
        put(desk, *kept, plan_for(item, kept->width, kept->height, random), batch, place);
        ++cache_hits;
        return "";
      }
      data->read(item, desk.file);
      bytes_read += static_cast<int64_t>(desk.file.size());
      const std::string name = data->name_of(item);
      const ImageInfo info = read_image_info(desk.file, name, options.decode);
      const TransformPlan transform = plan_for(item, info.width, info.height, random);
      const bool keep = cache.has_room(info.width, info.height);
      const Region needed = desk.transformer.needed(transform);
      if (keep || needed.width == 0) {
        decode_image(desk.file, name, options.decode, desk.image);
      } else {
        decode_image(desk.file, name, info, needed, options.decode, desk.image);
      }
      put(desk, desk.image, transform, batch, place);
      if (keep) {
        cache.keep(index, desk.image);
      }
      return "";
    } catch (const Error& e) {
      if (e.code() != ErrorCode::data && e.code() != ErrorCode::io) {
        throw;
      }
      return e.what();
    }
  }

  void put(Desk& desk, const Image& image, const TransformPlan& transform, const Batch& batch, size_t place) const {
    const size_t at = place * static_cast<size_t>(output.width) * static_cast<size_t>(output.height) * 3;
    if (options.pixels == Pixels::floats) {
      desk.transformer.run(image, transform, batch.images.data() + at);
      return;
    }
    desk.transformer.run(image, transform, batch.images.bytes() + at);
    if (batch.erased) {
      const Region& r = transform.erase;
      const std::array<int32_t, 4> rectangle = {r.x, r.y, r.width, r.height};
      std::copy(rectangle.begin(), rectangle.end(), batch.erased.ints() + place * 4);
    }
  }

  TransformPlan plan_for(const Item& item, int width, int height, Random& random) const {
    const Region& box = item.box;
    if (box.width > 0 && (box.x + box.width > width || box.y + box.height > height)) {
      fail(ErrorCode::data, data->name_of(item), ": its box reaches to ", box.x + box.width, ",", box.y + box.height,
           "; the picture has ", width, " x ", height, " pixels");
    }
    return plan_transform(options.transform, width, height, box, random);
  }

  // With the lock held: waits for the first batch to be complete.
  void wait_for_front(std::unique_lock<std::mutex>& lock) {
    progress = Clock::now();
    const auto complete = [&] {
      return !slots.empty() && (slots.front()->problem || slots.front()->finished == slots.front()->batch.items.size());
    };
    while (!complete()) {
      ready.wait_for(lock, std::chrono::milliseconds(200));
      if (!complete() && Clock::now() - progress > options.patience) {
        std::string files;
        for (const auto& desk : desks) {
          files += desk->busy_with.empty() ? "" : (files.empty() ? "" : ", ") + desk->busy_with;
        }
        fail(ErrorCode::io, "no image was read for ", options.patience.count(), " s; waiting for ",
             files.empty() ? "workers that do not run" : files);
      }
    }
  }

  // With the lock held: counts what was bad in a batch that is about to be handed out.
  void report(const Slot& slot) {
    const size_t before = reported_bad.size();
    for (const BadImage& bad : slot.bad) {
      reported_bad.emplace(bad.item, bad.reason);
    }
    if (reported_bad.size() == before) {
      return;
    }
    write_list();
    const auto budget = static_cast<size_t>(options.max_bad * static_cast<double>(data->items.size()));
    if (options.on_bad == OnBad::quarantine && reported_bad.size() > budget) {
      std::string list;
      constexpr size_t kShown = 20;
      size_t shown = 0;
      for (const auto& [item, reason] : reported_bad) {
        if (++shown > kShown) {
          list += "\n  ...";
          break;
        }
        list += "\n  " + reason;
      }
      fail(ErrorCode::data, reported_bad.size(), " images cannot be read; the budget is ", budget, " of ",
           data->items.size(), ". Mend or remove them, or allow more:", list);
    }
  }

  void write_list() const {
    if (options.bad_images.empty()) {
      return;
    }
    std::ofstream out(options.bad_images, std::ios::binary | std::ios::trunc);
    out << "path,reason\n";
    for (const auto& [item, reason] : reported_bad) {
      out << csv_field(data->items[item].path) << ',' << csv_field(reason) << '\n';
    }
    out.flush();
    if (!out) {
      fail(ErrorCode::io, options.bad_images.string(), ": cannot be written");
    }
  }
};

Loader::Loader(std::shared_ptr<const Dataset> data, const LoaderOptions& options)
    : state_(std::make_shared<State>(std::move(data), options)) {
  constexpr int kMostWorkers = 256;
  require(options.workers >= 0 && options.workers <= kMostWorkers, "loader", options.workers,
          " workers; expected 0 to ", kMostWorkers);
  require(options.max_bad >= 0 && options.max_bad <= 1, "loader", "max_bad is ", options.max_bad,
          "; expected a share from 0 to 1");
  State& state = *state_;
  for (int i = 0; i < std::max(1, options.workers); ++i) {
    state.desks.push_back(std::make_unique<Desk>(options.transform, state.kernels));
  }
  for (int i = 0; i < options.workers; ++i) {
    // Each keeps the state alive, for a thread that hangs in a read is left behind.
    state.threads.emplace_back([held = state_, &desk = *state.desks[static_cast<size_t>(i)]] { held->work_as(desk); });
  }
}

Loader::~Loader() {
  State& state = *state_;
  {
    const std::lock_guard lock(state.mutex);
    state.stopping = true;
  }
  state.work.notify_all();
  const bool hung = [&] {
    const std::lock_guard lock(state.mutex);
    return Clock::now() - state.progress > state.options.patience &&
           std::any_of(state.desks.begin(), state.desks.end(), [](const auto& d) { return !d->busy_with.empty(); });
  }();
  for (std::thread& thread : state.threads) {
    if (hung) {
      thread.detach();
    } else {
      thread.join();
    }
  }
}

void Loader::start(EpochPlan plan, uint64_t epoch, int64_t first_batch) {
  require(first_batch >= 0 && first_batch <= plan.batches(), "loader", "batch ", first_batch, " of an epoch of ",
          plan.batches());
  State& state = *state_;
  for (const uint32_t item : plan.items) {
    require(item < state.data->items.size(), "loader", "item ", item, " of a data set of ", state.data->items.size());
  }
  std::unique_lock lock(state.mutex);
  // Workers still at an old batch hold it, but must not see the new plan.
  for (const auto& slot : state.slots) {
    slot->taken = slot->batch.items.size();
  }
  state.next_batch = state.plan.batches();
  const auto idle = [&] {
    return std::all_of(state.desks.begin(), state.desks.end(), [](const auto& d) { return d->busy_with.empty(); });
  };
  state.progress = Clock::now();
  while (!idle()) {
    state.ready.wait_for(lock, std::chrono::milliseconds(50));
    require(Clock::now() - state.progress <= state.options.patience || idle(), "loader",
            "a read of the epoch before does not end");
  }
  state.slots.clear();
  state.plan = std::move(plan);
  state.epoch = epoch;
  state.next_batch = first_batch;
  state.begun = Clock::now();
  state.images = 0;
  state.waiting = 0;
  lock.unlock();
  state.work.notify_all();
}

bool Loader::next(Batch& batch) {
  State& state = *state_;
  batch = {};
  const Clock::time_point begin = Clock::now();
  std::unique_lock lock(state.mutex);
  if (state.slots.empty() && state.next_batch >= state.plan.batches()) {
    return false;
  }
  if (state.options.workers == 0) {
    const std::shared_ptr<Slot> slot = state.slot_with_work();
    while (slot && slot->taken < slot->batch.items.size()) {
      state.one_image(*state.desks[0], *slot, slot->taken++, lock);
    }
  } else {
    state.work.notify_all();
    state.wait_for_front(lock);
  }
  const std::shared_ptr<Slot> slot = state.slots.front();
  if (slot->problem) {
    std::rethrow_exception(slot->problem);
  }
  state.report(*slot);
  state.slots.pop_front();
  state.images += static_cast<int64_t>(slot->batch.items.size());
  state.waiting += seconds_since(begin);
  batch = std::move(slot->batch);
  lock.unlock();
  state.work.notify_all();
  return true;
}

std::vector<BadImage> Loader::bad_images() const {
  const std::lock_guard lock(state_->mutex);
  std::vector<BadImage> list;
  for (const auto& [item, reason] : state_->reported_bad) {
    list.push_back({item, reason});
  }
  return list;
}

LoaderStatistics Loader::statistics() const {
  const std::lock_guard lock(state_->mutex);
  LoaderStatistics s;
  s.images = state_->images;
  s.bytes_read = state_->bytes_read;
  s.cache_hits = state_->cache_hits;
  s.cached_bytes = state_->cache.bytes();
  s.bad_images = state_->reported_bad.size();
  s.seconds = seconds_since(state_->begun);
  s.seconds_waiting = state_->waiting;
  return s;
}

}  // namespace gle::data
