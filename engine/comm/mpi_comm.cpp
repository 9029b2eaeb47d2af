// One thread makes every call of MPI. It takes collectives from a queue, starts them in their order, and asks MPI for
// progress until they are done: some at once, then ever less often, because on a machine with more ranks than cores
// whoever asks too often takes the time from the rank that it waits for.
#include "engine/comm/mpi_comm.h"

#include <mpi.h>

#include <chrono>
#include <climits>
#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <future>
#include <mutex>
#include <optional>
#include <thread>
#include <unordered_map>
#include <utility>

#include "engine/comm/open_mpi.h"
#include "engine/comm/watchdog.h"
#include "engine/error.h"

namespace gle {

namespace {

using Clock = std::chrono::steady_clock;
using Kind = Collective::Kind;
using Type = Collective::Type;

constexpr int kEagerTests = 50;
constexpr int kFrequentTests = 500;
constexpr std::chrono::microseconds kShortRest{20};
constexpr std::chrono::microseconds kLongRest{200};
// Messages that MPI has taken but not yet sent go out while nobody waits for anything.
constexpr std::chrono::milliseconds kIdleProgress{2};

struct Ranks {
  int rank = 0, size = 1, local_rank = 0, local_size = 1;
  std::string library;
  std::vector<std::string> hosts;  // of every rank
};

MPI_Datatype datatype(Type type) {
  switch (type) {
    case Type::f32:
      return MPI_FLOAT;
    case Type::f64:
      return MPI_DOUBLE;
    case Type::bytes:
      return MPI_BYTE;
  }
  bug("unknown type of a collective");
}

std::string text_of(int error) {
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  return MPI_Error_string(error, text, &length) == MPI_SUCCESS ? std::string(text, static_cast<size_t>(length))
                                                               : "error " + std::to_string(error);
}

std::vector<std::string> host_names(int size) {
  std::vector<char> names(static_cast<size_t>(size) * MPI_MAX_PROCESSOR_NAME, '\0');
  char own[MPI_MAX_PROCESSOR_NAME] = {};
  int length = 0;
  MPI_Get_processor_name(own, &length);
  MPI_Allgather(own, MPI_MAX_PROCESSOR_NAME, MPI_CHAR, names.data(), MPI_MAX_PROCESSOR_NAME, MPI_CHAR, MPI_COMM_WORLD);
  std::vector<std::string> hosts;
  hosts.reserve(static_cast<size_t>(size));
  for (int rank = 0; rank < size; ++rank) {
    hosts.emplace_back(names.data() + static_cast<ptrdiff_t>(rank) * MPI_MAX_PROCESSOR_NAME);
  }
  return hosts;
}

// What the thread and its callers share.
class Engine {
 public:
  Engine() : thread_([this] { run(); }) {}
  ~Engine() { thread_.join(); }

  Ranks ranks() { return ranks_.get_future().get(); }

  uint64_t add(const Collective& c) {
    const std::lock_guard lock(mutex_);
    queue_.push_back({next_, c});
    wake_.notify_one();
    return next_++;
  }

  void await(uint64_t ticket) {
    std::unique_lock lock(mutex_);
    done_.wait(lock, [&] { return finished_.contains(ticket); });
    const std::string problem = std::move(finished_[ticket]);
    finished_.erase(ticket);
    if (!problem.empty()) {
      // If a rank has died, the watchdog names it and ends this process meanwhile.
      const std::chrono::duration<double> patience(timeout_ + 2);
      lock.unlock();
      std::this_thread::sleep_for(patience);
      fail(ErrorCode::runtime, "mpi: ", problem, "; a rank may be gone");
    }
  }

  // Nothing more comes: ends MPI, with an exit code at once and in all ranks.
  void end(std::optional<int> abort_code) {
    const std::lock_guard lock(mutex_);
    ending_ = true;
    abort_code_ = abort_code;
    wake_.notify_one();
  }

  void watch(const Watch& watch) {
    const std::lock_guard lock(mutex_);
    new_watch_ = watch;
    timeout_ = watch.timeout;
  }

  double busy_seconds() {
    const std::lock_guard lock(mutex_);
    return busy_;
  }

 private:
  struct Item {
    uint64_t ticket;
    Collective collective;
  };
  struct UnderWay {
    uint64_t ticket;
    MPI_Request request;
  };

  void run();
  bool take(Item& item);
  void start(const Item& item);
  bool test();
  void finish(uint64_t ticket, int error);
  void rest(int fruitless);

  std::mutex mutex_;
  std::condition_variable wake_;
  std::condition_variable done_;
  std::deque<Item> queue_;
  std::unordered_map<uint64_t, std::string> finished_;  // what went wrong with each, or nothing
  uint64_t next_ = 1;
  bool ending_ = false;
  std::optional<int> abort_code_;
  std::optional<Watch> new_watch_;
  double timeout_ = Watch{}.timeout;
  double busy_ = 0;
  std::promise<Ranks> ranks_;

  // Of the thread.
  int rank_ = 0;
  std::deque<UnderWay> under_way_;
  std::optional<Watchdog> watchdog_;
  Clock::time_point busy_since_;
  std::thread thread_;
};

void Engine::run() {
  int provided = 0;
  OpenMpiMessages messages;
  MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided);
  messages.print_here();
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  Ranks ranks;
  MPI_Comm_rank(MPI_COMM_WORLD, &ranks.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks.size);
  MPI_Comm host = MPI_COMM_NULL;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host);
  MPI_Comm_rank(host, &ranks.local_rank);
  MPI_Comm_size(host, &ranks.local_size);
  MPI_Comm_free(&host);
  char version[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0;
  MPI_Get_library_version(version, &length);
  ranks.library.assign(version, static_cast<size_t>(length));
  ranks.library = ranks.library.substr(0, ranks.library.find(','));
  ranks.hosts = host_names(ranks.size);
  watchdog_.emplace(MPI_COMM_WORLD, ranks.hosts);
  rank_ = ranks.rank;
  ranks_.set_value(ranks);

  int fruitless = 0;
  for (Item item; take(item) || !under_way_.empty();) {
    if (item.ticket != 0) {
      start(item);
      item.ticket = 0;
      fruitless = 0;
    }
    fruitless = test() ? 0 : fruitless + 1;
    watchdog_->tick();
    rest(fruitless);
  }
  if (abort_code_) {
    watchdog_->announce_end();
    MPI_Abort(MPI_COMM_WORLD, *abort_code_);
  }
  watchdog_->finish();
  MPI_Finalize();
}

// The next of the queue, if there is one; false once nothing more will come.
bool Engine::take(Item& item) {
  std::unique_lock lock(mutex_);
  const auto take_watch = [&] {
    if (new_watch_) {
      watchdog_->watch(*std::exchange(new_watch_, std::nullopt));
    }
  };
  while (queue_.empty() && under_way_.empty() && !ending_) {
    take_watch();
    if (wake_.wait_for(lock, kIdleProgress) == std::cv_status::timeout) {
      lock.unlock();
      int flag = 0;
      MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
      watchdog_->tick();
      lock.lock();
    }
  }
  take_watch();
  if (ending_ && abort_code_) {
    under_way_.clear();
    return false;
  }
  if (!queue_.empty()) {
    item = queue_.front();
    queue_.pop_front();
    return true;
  }
  return !ending_;
}

void Engine::start(const Item& item) {
  const Collective& c = item.collective;
  invariant(c.count <= INT_MAX, "a collective of more elements than MPI counts");
  const auto count = static_cast<int>(c.count);
  const void* from = c.from == c.to ? MPI_IN_PLACE : c.from;
  const MPI_Datatype type = datatype(c.type);
  MPI_Comm world = MPI_COMM_WORLD;
  MPI_Request request = MPI_REQUEST_NULL;
  int error = MPI_SUCCESS;
  switch (c.kind) {
    case Kind::all_reduce:
      error = MPI_Iallreduce(from, c.to, count, type, MPI_SUM, world, &request);
      break;
    case Kind::all_gather: {
      const void* own = static_cast<const std::byte*>(c.to) + rank_ * c.bytes(1);
      error = MPI_Iallgather(c.from == own ? MPI_IN_PLACE : c.from, count, type, c.to, count, type, world, &request);
      break;
    }
    case Kind::reduce_scatter:
      error = MPI_Ireduce_scatter_block(from, c.to, count, type, MPI_SUM, world, &request);
      break;
    case Kind::broadcast:
      error = MPI_Ibcast(c.to, count, type, c.root, world, &request);
      break;
    case Kind::barrier:
      error = MPI_Ibarrier(world, &request);
      break;
  }
  if (error != MPI_SUCCESS) {
    finish(item.ticket, error);
    return;
  }
  if (under_way_.empty()) {
    busy_since_ = Clock::now();
  }
  under_way_.push_back({item.ticket, request});
}

// True if something is done.
bool Engine::test() {
  bool any = false;
  for (auto at = under_way_.begin(); at != under_way_.end();) {
    int flag = 0;
    const int error = MPI_Test(&at->request, &flag, MPI_STATUS_IGNORE);
    if (!flag && error == MPI_SUCCESS) {
      ++at;
      continue;
    }
    finish(at->ticket, error);
    at = under_way_.erase(at);
    any = true;
  }
  if (any && under_way_.empty()) {
    const std::lock_guard lock(mutex_);
    busy_ += std::chrono::duration<double>(Clock::now() - busy_since_).count();
  }
  return any;
}

void Engine::finish(uint64_t ticket, int error) {
  const std::lock_guard lock(mutex_);
  finished_.emplace(ticket, error == MPI_SUCCESS ? std::string() : text_of(error));
  done_.notify_all();
}

void Engine::rest(int fruitless) {
  // Sleeping, not yielding: where cores are short, who yields comes back after all the others, who sleeps comes back
  // when its time is up.
  if (fruitless > kEagerTests) {
    std::this_thread::sleep_for(fruitless < kFrequentTests ? kShortRest : kLongRest);
  }
}

class MpiComm : public Comm {
 public:
  MpiComm(std::unique_ptr<Engine> engine, const Ranks& ranks)
      : Comm({ranks.rank, ranks.size, ranks.local_rank, ranks.local_size, ranks.hosts}),
        engine_(std::move(engine)),
        library_(ranks.library) {}
  ~MpiComm() override {
    engine_->end(std::uncaught_exceptions() > exceptions_ ? std::optional(EXIT_FAILURE) : std::nullopt);
  }

  std::string description() const override { return std::to_string(size()) + " ranks, " + library_; }
  void watch(const Watch& watch) override { engine_->watch(watch); }

 protected:
  Ticket begin(const Collective& c) override {
    require(c.memory == Collective::Memory::host, "mpi",
            "exchanges memory of the host alone; GPUs need NCCL, which this build does not have");
    return engine_->add(c);
  }
  void finish(Ticket ticket) override { engine_->await(ticket); }
  void end_all(int exit_code) override {
    engine_->end(exit_code);
    engine_.reset();
  }
  double busy_seconds() const override { return engine_->busy_seconds(); }

 private:
  std::unique_ptr<Engine> engine_;
  std::string library_;
  int exceptions_ = std::uncaught_exceptions();
};

}  // namespace

std::unique_ptr<Comm> make_mpi_comm() {
  auto engine = std::make_unique<Engine>();
  const Ranks ranks = engine->ranks();
  return std::make_unique<MpiComm>(std::move(engine), ranks);
}

}  // namespace gle
