#include "data/loader.h"

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>

#include "data/item_loader.h"
#include "data/quarantine.h"
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

struct Desk {
  ItemLoader::Tools tools;
  std::string busy_with;  // under the state's lock
};

}  // namespace

struct Loader::State {
  State(std::shared_ptr<const Dataset> dataset, LoaderOptions loader_options)
      : data(std::move(dataset)),
        options(std::move(loader_options)),
        output(options.transform.output()),
        allocator(options.memory),
        loader(*data, options),
        quarantine(*data, options) {}

  const std::shared_ptr<const Dataset> data;
  const LoaderOptions options;
  const size_t part = static_cast<size_t>(options.part);
  const size_t parts = static_cast<size_t>(options.parts);
  const Size output;
  CachingAllocator allocator;
  ItemLoader loader;
  std::vector<std::thread> threads;

  mutable std::mutex mutex;
  std::condition_variable work;   // for workers: there is some, or the end
  std::condition_variable ready;  // for next(): an image is done
  bool stopping = false;
  EpochPlan plan;
  uint64_t epoch = 0;
  int64_t next_batch = 0;  // to begin
  std::deque<std::shared_ptr<Slot>> slots;
  std::vector<std::unique_ptr<Desk>> desks;
  Quarantine quarantine;
  Clock::time_point progress;
  Clock::time_point begun;
  int64_t images = 0;
  double waiting = 0;

  Tensor room(const Shape& shape, DType type) {
    return {allocator.allocate(static_cast<size_t>(shape.elements()) * bytes_of(type), "a batch of images"), shape,
            type};
  }

  // Zeros in one place of a batch.
  static void blank(const Batch& batch, size_t i) {
    for (const Tensor& tensor : {batch.images, batch.erased}) {
      if (tensor) {
        const size_t bytes = static_cast<size_t>(tensor.elements()) * bytes_of(tensor.type()) / batch.items.size();
        std::memset(tensor.bytes() + i * bytes, 0, bytes);
      }
    }
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
    const auto all = plan.of_batch(next_batch);
    const auto items = all.subspan(all.size() / parts * part, all.size() / parts);
    slot->batch.index = next_batch++;
    // What takes the place of a bad one is of the same class.
    for (const uint32_t item : all) {
      slot->batch.all_labels.push_back(data->items[item].label);
    }
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
    const auto position = static_cast<uint64_t>(slot.batch.index) * static_cast<uint64_t>(plan.batch) +
                          part * slot.batch.items.size() + i;
    const uint64_t of_epoch = epoch;
    uint32_t item = wanted;
    std::vector<BadImage> bad;
    std::exception_ptr problem;
    try {
      while (true) {
        std::string reason = quarantine.reason(item);
        desk.busy_with = data->name_of(data->items[item]);
        progress = Clock::now();
        lock.unlock();
        if (reason.empty()) {
          reason = loader.load(item, of_epoch, position, desk.tools, slot.batch, i);
        }
        lock.lock();
        desk.busy_with.clear();
        if (reason.empty()) {
          break;
        }
        quarantine.note(item, reason);
        bad.push_back({item, reason});
        if (options.on_bad == OnBad::error) {
          fail(ErrorCode::data, reason);
        }
        if (options.on_bad == OnBad::leave_out) {
          blank(slot.batch, i);
          slot.batch.left_out.push_back(i);
          break;
        }
        item = quarantine.replacement(item, wanted);
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

  // With the lock held: waits until something is so, as long as images go on being read. False: they do not.
  template <class Condition>
  bool wait_patiently(std::unique_lock<std::mutex>& lock, Condition&& holds) {
    while (!holds()) {
      ready.wait_for(lock, std::chrono::milliseconds(50));
      if (Clock::now() - progress > options.patience && !holds()) {
        return false;
      }
    }
    return true;
  }

  bool idle() const {
    return std::all_of(desks.begin(), desks.end(), [](const auto& d) { return d->busy_with.empty(); });
  }
  bool front_is_complete() const {
    return !slots.empty() && (slots.front()->problem || slots.front()->finished == slots.front()->batch.items.size());
  }

  [[noreturn]] void fail_waiting() const {
    std::string files;
    for (const auto& desk : desks) {
      files += desk->busy_with.empty() ? "" : (files.empty() ? "" : ", ") + desk->busy_with;
    }
    fail(ErrorCode::io, "no image was read for ", options.patience.count(), " s; waiting for ",
         files.empty() ? "workers that do not run" : files);
  }
};

Loader::Loader(std::shared_ptr<const Dataset> data, const LoaderOptions& options)
    : state_(std::make_shared<State>(std::move(data), options)) {
  constexpr int kMostWorkers = 256;
  require(options.workers >= 0 && options.workers <= kMostWorkers, "loader", options.workers,
          " workers; expected 0 to ", kMostWorkers);
  require(options.max_bad >= 0 && options.max_bad <= 1, "loader", "max_bad is ", options.max_bad,
          "; expected a share from 0 to 1");
  require(options.parts >= 1 && options.part >= 0 && options.part < options.parts, "loader", "part ", options.part,
          " of ", options.parts);
  State& state = *state_;
  for (int i = 0; i < std::max(1, options.workers); ++i) {
    state.desks.push_back(std::make_unique<Desk>(Desk{state.loader.new_tools(), {}}));
  }
  for (int i = 0; i < options.workers; ++i) {
    // Each keeps the state alive, for a thread that hangs in a read is left behind.
    state.threads.emplace_back([held = state_, &desk = *state.desks[static_cast<size_t>(i)]] { held->work_as(desk); });
  }
}

Loader::~Loader() {
  State& state = *state_;
  std::unique_lock lock(state.mutex);
  state.stopping = true;
  state.work.notify_all();
  const bool hung = !state.wait_patiently(lock, [&] { return state.idle(); });
  lock.unlock();
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
  const auto parts = static_cast<int64_t>(state.parts);
  require(plan.batch % parts == 0 && std::ssize(plan.items) % parts == 0, "loader", "batches of ", plan.batch, " of ",
          plan.items.size(), " images cannot be cut into ", parts, " equal parts");
  for (const uint32_t item : plan.items) {
    require(item < state.data->items.size(), "loader", "item ", item, " of a data set of ", state.data->items.size());
  }
  std::unique_lock lock(state.mutex);
  // Workers still at an old batch hold it, but must not see the new plan.
  for (const auto& slot : state.slots) {
    slot->taken = slot->batch.items.size();
  }
  state.next_batch = state.plan.batches();
  state.progress = Clock::now();
  if (!state.wait_patiently(lock, [&] { return state.idle(); })) {
    state.fail_waiting();
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
    state.progress = Clock::now();
    state.work.notify_all();
    if (!state.wait_patiently(lock, [&] { return state.front_is_complete(); })) {
      state.fail_waiting();
    }
  }
  const std::shared_ptr<Slot> slot = state.slots.front();
  if (slot->problem) {
    std::rethrow_exception(slot->problem);
  }
  state.quarantine.report(slot->bad);
  state.slots.pop_front();
  state.images += static_cast<int64_t>(slot->batch.items.size());
  state.waiting += seconds_since(begin);
  batch = std::move(slot->batch);
  std::sort(batch.left_out.begin(), batch.left_out.end());
  lock.unlock();
  state.work.notify_all();
  return true;
}

std::vector<BadImage> Loader::bad_images() const {
  const std::lock_guard lock(state_->mutex);
  return state_->quarantine.reported();
}

LoaderStatistics Loader::statistics() const {
  const std::lock_guard lock(state_->mutex);
  LoaderStatistics s;
  s.images = state_->images;
  s.bytes_read = state_->loader.bytes_read();
  s.cache_hits = state_->loader.cache_hits();
  s.cached_bytes = state_->loader.cached_bytes();
  s.bad_images = state_->quarantine.count();
  s.seconds = seconds_since(state_->begun);
  s.seconds_waiting = state_->waiting;
  return s;
}

}  // namespace gle::data
