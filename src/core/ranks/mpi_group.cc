#include "core/ranks/mpi_group.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <climits>
#include <list>
#include <map>
#include <new>
#include <optional>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "core/check.h"
#include "core/os/dynamic_library.h"
#include "core/ranks/message_group.h"
#include "core/ranks/process_watch.h"
#include "core/ranks/start.h"

namespace gauntlet::ranks {
namespace {

// OpenMPI's handles are addresses of objects that it exports; these numbers are those of its mpi.h.
using Handle = void*;
constexpr int kSuccess = 0;
constexpr int kThreadFunneled = 1;
constexpr int kMaxErrorText = 256;

struct Functions {
  int (*init_thread)(int*, char***, int, int*) = nullptr;
  int (*initialized)(int*) = nullptr;
  int (*finalize)() = nullptr;
  int (*comm_rank)(Handle, int*) = nullptr;
  int (*comm_size)(Handle, int*) = nullptr;
  int (*comm_set_errhandler)(Handle, Handle) = nullptr;
  int (*error_string)(int, char*, int*) = nullptr;
  int (*isend)(const void*, int, Handle, int, int, Handle, Handle*) = nullptr;
  int (*irecv)(void*, int, Handle, int, int, Handle, Handle*) = nullptr;
  int (*iprobe)(int, int, Handle, int*, void*) = nullptr;
  int (*get_count)(const void*, Handle, int*) = nullptr;
  int (*test)(Handle*, int*, void*) = nullptr;
  Handle world = nullptr;
  Handle byte = nullptr;
  Handle errors_return = nullptr;
};

// Its plug-ins look for MPI's own symbols, and not every build links them with libmpi: global.
LibrarySearch mpi_search() {
  return {.names = {"libmpi.so.40"},
          .folders = {"/usr/lib/openmpi/lib", "/usr/local/lib", "/opt/openmpi/lib"},
          .scope = SymbolScope::global};
}

Expected<DynamicLibrary> open_library() {
  auto library = DynamicLibrary::open(mpi_search());
  if (!library) {
    return Error{
        fmt::format("{}; install OpenMPI 4 or 5 ({})", library.error().message, kOpenMpiPackages)};
  }
  return library;
}

template <class F>
bool find(const DynamicLibrary& library, const char* name, F*& function, Error& missing) {
  const auto found = library.address(name);
  if (found) {
    function = reinterpret_cast<F*>(*found);
  } else {
    missing = found.error();
  }
  return static_cast<bool>(found);
}

Expected<Functions> functions_of(const DynamicLibrary& library) {
  Functions f;
  Error missing;
  const bool complete = find(library, "MPI_Init_thread", f.init_thread, missing) &&
                        find(library, "MPI_Initialized", f.initialized, missing) &&
                        find(library, "MPI_Finalize", f.finalize, missing) &&
                        find(library, "MPI_Comm_rank", f.comm_rank, missing) &&
                        find(library, "MPI_Comm_size", f.comm_size, missing) &&
                        find(library, "MPI_Comm_set_errhandler", f.comm_set_errhandler, missing) &&
                        find(library, "MPI_Error_string", f.error_string, missing) &&
                        find(library, "MPI_Isend", f.isend, missing) &&
                        find(library, "MPI_Irecv", f.irecv, missing) &&
                        find(library, "MPI_Iprobe", f.iprobe, missing) &&
                        find(library, "MPI_Get_count", f.get_count, missing) &&
                        find(library, "MPI_Test", f.test, missing) &&
                        find(library, "ompi_mpi_comm_world", f.world, missing) &&
                        find(library, "ompi_mpi_byte", f.byte, missing) &&
                        find(library, "ompi_mpi_errors_return", f.errors_return, missing);
  if (!complete) return missing;
  return f;
}

/// Room for MPI_Status, of which OpenMPI 4 and 5 use 24 bytes.
struct alignas(8) Status {
  std::byte bytes[128];
};

class MpiChannel final : public Channel {
 public:
  MpiChannel(const Functions& mpi, int rank, int size)
      : mpi_(mpi), rank_(rank), size_(size), thread_(std::this_thread::get_id()) {}

  /// MPI still holds the address of what has not been sent, and has no way to let go of it.
  ~MpiChannel() override {
    if (!sends_.empty()) static_cast<void>(new (std::nothrow) std::list<Send>(std::move(sends_)));
    if (!receives_.empty())
      static_cast<void>(new (std::nothrow) decltype(receives_)(std::move(receives_)));
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  std::string transport() const override { return "mpi"; }

  void send(int to, int lane, std::span<const std::byte> head,
            std::span<const std::byte> body) override {
    check_thread();
    check(head.size() + body.size() <= INT_MAX, "MPI counts the bytes of a message in an int");
    Send& send = sends_.emplace_back();
    send.to = to;
    send.lane = lane;
    send.message.reserve(head.size() + body.size());
    send.message.insert(send.message.end(), head.begin(), head.end());
    send.message.insert(send.message.end(), body.begin(), body.end());
    keep(mpi_.isend(send.message.data(), static_cast<int>(send.message.size()), mpi_.byte, to, lane,
                    mpi_.world, &send.request));
    move_on();
  }

  Arrival poll(int from, int lane) override {
    check_thread();
    if (broken_) return {.state = Arrival::State::broken, .message = {}, .why = *broken_};
    // Whether it has ended is read first: what it sent before has arrived by then.
    const auto lost = std::ranges::find(ended_, from, &ProcessWatch::Ended::rank);
    Arrival arrival = receive(from, lane);
    if (arrival.state != Arrival::State::nothing || lost == ended_.end()) return arrival;
    return {.state = Arrival::State::lost, .message = {}, .why = lost->text()};
  }

  bool flushed(int lane) override {
    move_on();
    return std::ranges::none_of(sends_, [&](const Send& send) { return send.lane == lane; });
  }

  std::vector<int> late_takers(int lane) const override {
    std::set<int> ranks;
    for (const Send& send : sends_) {
      if (send.lane == lane) ranks.insert(send.to);
    }
    return {ranks.begin(), ranks.end()};
  }

  void pause(Seconds waited, Seconds left) override {
    move_on();
    if (waited > kWatchAfter) look_for_ended(waited);
    // A job with more ranks than CPUs gives the others its turn at once.
    const Seconds spin(size_ <= static_cast<int>(std::thread::hardware_concurrency()) ? 500e-6 : 0);
    if (waited > Seconds(0.02)) {
      std::this_thread::sleep_for(std::min(left, Seconds(200e-6)));
    } else if (waited > spin) {
      std::this_thread::yield();
    }
  }

  void break_off(const std::string& reason) override {
    if (!broken_) broken_ = reason;
  }
  std::optional<std::string> broken() override {
    check_thread();
    return broken_;
  }

  /// MPI_Finalize waits for all ranks without a limit. A rank that leaves without it is taken for
  /// lost by mpirun, which is what it is.
  void all_have_come() override {
    if (sends_.empty() && !broken_) mpi_.finalize();
  }

  void watch(std::unique_ptr<ProcessWatch> watch) { watch_ = std::move(watch); }

 private:
  static constexpr Seconds kWatchAfter{0.005};
  static constexpr Seconds kWatchEvery{0.01};
  /// Whoever waits for a rank that waits for one that has ended.
  static constexpr Seconds kGivenUpAfter{0.1};

  struct Send {
    int lane = 0;
    std::vector<std::byte> message;
    Handle request = nullptr;
    int to = -1;
  };

  Arrival receive(int from, int lane) {
    auto pending = receives_.find({from, lane});
    if (pending == receives_.end()) {
      int there = 0;
      Status status;
      if (!keep(mpi_.iprobe(from, lane, mpi_.world, &there, &status)) || !there) return {};
      int count = 0;
      if (!keep(mpi_.get_count(&status, mpi_.byte, &count))) return {};
      pending = receives_.try_emplace({from, lane}).first;
      pending->second.message.resize(static_cast<std::size_t>(count));
      if (!keep(mpi_.irecv(pending->second.message.data(), count, mpi_.byte, from, lane, mpi_.world,
                           &pending->second.request))) {
        return {};
      }
    }
    int done = 0;
    if (!keep(mpi_.test(&pending->second.request, &done, nullptr)) || !done) return {};
    Arrival arrival{
        .state = Arrival::State::message, .message = std::move(pending->second.message), .why = {}};
    receives_.erase(pending);
    return arrival;
  }

  void look_for_ended(Seconds waited) {
    const auto now = std::chrono::steady_clock::now();
    if (!watch_ || now - watched_at_ < kWatchEvery) return;
    watched_at_ = now;
    if (ended_.empty()) {
      ended_ = watch_->ended();
      ended_at_ = now;
    } else if (now - ended_at_ > kGivenUpAfter && waited > kGivenUpAfter) {
      break_off(fmt::format("rank {} ended in the middle of the job: {}", ended_.front().rank,
                            ended_.front().text()));
    }
  }

  void check_thread() const {
    check(std::this_thread::get_id() == thread_,
          "a group of MPI is used by the thread that joined (MPI_THREAD_FUNNELED)");
  }

  /// Lets go of what has been sent.
  void move_on() {
    check_thread();
    std::erase_if(sends_, [&](Send& send) {
      int done = 0;
      return keep(mpi_.test(&send.request, &done, nullptr)) && done;
    });
  }

  /// An error of MPI's ends the group.
  bool keep(int code) {
    if (code == kSuccess) return true;
    char text[kMaxErrorText] = {};
    int length = 0;
    const bool known = mpi_.error_string(code, text, &length) == kSuccess;
    break_off(fmt::format("MPI failed on rank {}: {}", rank_,
                          known ? std::string(text) : fmt::format("error {}", code)));
    return false;
  }

  Functions mpi_;
  int rank_;
  int size_;
  std::thread::id thread_;
  std::list<Send> sends_;                         // MPI knows the addresses
  std::map<std::pair<int, int>, Send> receives_;  // under way, by sender and lane
  std::optional<std::string> broken_;
  std::unique_ptr<ProcessWatch> watch_;
  std::vector<ProcessWatch::Ended> ended_;
  std::chrono::steady_clock::time_point watched_at_, ended_at_;
};

}  // namespace

Expected<std::string> find_mpi_library() {
  const auto library = open_library();
  if (!library) return library.error();
  if (const auto functions = functions_of(*library); !functions) return functions.error();
  return library->path();
}

Expected<std::unique_ptr<Group>> join_mpi(const GroupOptions& options) {
  const Start start = started_as();
  if (start.by == Start::By::none) {
    return Error{"this process is no rank of an MPI job: start it with mpirun",
                 ErrorKind::wrong_use};
  }
  const auto opened = open_library();
  if (!opened) return opened.error();
  const auto functions = functions_of(*opened);
  if (!functions) return functions.error();
  // MPI leaves threads and handlers behind that run its code until the process ends.
  opened->keep_loaded();
  int initialized = 0;
  functions->initialized(&initialized);
  check(!initialized, "a process joins an MPI job once");
  int provided = 0;
  if (functions->init_thread(nullptr, nullptr, kThreadFunneled, &provided) != kSuccess) {
    return Error{"MPI_Init_thread failed; the log of mpirun says why"};
  }
  functions->comm_set_errhandler(functions->world, functions->errors_return);
  int rank = 0, size = 0;
  functions->comm_rank(functions->world, &rank);
  functions->comm_size(functions->world, &size);
  // A starter that MPI does not know leaves each process with a job of its own.
  if (start.size > 0 && size != start.size) {
    return Error{
        fmt::format("{} started {} ranks, but MPI joined {} of them; with Slurm use srun "
                    "--mpi=pmix, or mpirun inside of an allocation",
                    name_of(start.by), start.size, size)};
  }
  auto channel = std::make_unique<MpiChannel>(*functions, rank, size);
  MpiChannel& own = *channel;
  auto group = make_message_group(std::move(channel), options, GroupEnd::together);
  auto watch = ProcessWatch::of(*group);
  if (!watch) return watch.error();
  own.watch(std::move(*watch));
  return group;
}

}  // namespace gauntlet::ranks
