#include "core/ranks/mpi_group.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <climits>
#include <cstring>
#include <thread>
#include <vector>

#include "core/check.h"
#include "core/os/dynamic_library.h"
#include "core/os/threads.h"
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
  int (*ibarrier)(Handle, Handle*) = nullptr;
  int (*ibcast)(void*, int, Handle, int, Handle, Handle*) = nullptr;
  int (*iallgather)(const void*, int, Handle, void*, int, Handle, Handle, Handle*) = nullptr;
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
                        find(library, "MPI_Ibarrier", f.ibarrier, missing) &&
                        find(library, "MPI_Ibcast", f.ibcast, missing) &&
                        find(library, "MPI_Iallgather", f.iallgather, missing) &&
                        find(library, "MPI_Test", f.test, missing) &&
                        find(library, "ompi_mpi_comm_world", f.world, missing) &&
                        find(library, "ompi_mpi_byte", f.byte, missing) &&
                        find(library, "ompi_mpi_errors_return", f.errors_return, missing);
  if (!complete) return missing;
  return f;
}

class MpiGroup final : public Group {
 public:
  MpiGroup(const Functions& mpi, int rank, int size, const GroupOptions& options)
      : mpi_(mpi),
        rank_(rank),
        size_(size),
        timeout_s_(options.timeout_s),
        thread_(std::this_thread::get_id()) {}

  /// MPI_Finalize waits for all ranks without a limit, so it is called only when all have come. A
  /// rank that leaves without it is taken for lost by mpirun, which is what it is.
  ~MpiGroup() override {
    try {
      if (barrier()) mpi_.finalize();
    } catch (const std::exception&) {
      // No memory, or another thread destroys the group: the job ends as with a lost rank.
    }
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  std::string transport() const override { return "mpi"; }

  Expected<void> barrier() override {
    return complete("a barrier",
                    [&](Handle* request) { return mpi_.ibarrier(mpi_.world, request); });
  }

  Expected<void> broadcast(std::span<std::byte> bytes, int root) override {
    check(root >= 0 && root < size_, "the root of a broadcast is a rank of the group");
    check(bytes.size() <= INT_MAX, "MPI counts the bytes of a broadcast in an int");
    buffer_.assign(bytes.begin(), bytes.end());
    const auto done =
        complete(fmt::format("a broadcast of {} bytes from rank {}", bytes.size(), root),
                 [&](Handle* request) {
                   return mpi_.ibcast(buffer_.data(), static_cast<int>(buffer_.size()), mpi_.byte,
                                      root, mpi_.world, request);
                 });
    if (done && !bytes.empty()) std::memcpy(bytes.data(), buffer_.data(), bytes.size());
    return done;
  }

  Expected<void> all_gather(std::span<const std::byte> own, std::span<std::byte> all) override {
    check(all.size() == own.size() * static_cast<std::size_t>(size_),
          "all_gather needs room for every rank's bytes");
    check(all.size() <= INT_MAX, "MPI counts the bytes of an all-gather in an int");
    buffer_.resize(own.size() + all.size());
    std::copy(own.begin(), own.end(), buffer_.begin());
    std::byte* gathered = buffer_.data() + own.size();
    const int count = static_cast<int>(own.size());
    const auto done =
        complete(fmt::format("an all-gather of {} bytes each", own.size()), [&](Handle* request) {
          return mpi_.iallgather(buffer_.data(), count, mpi_.byte, gathered, count, mpi_.byte,
                                 mpi_.world, request);
        });
    if (done && !all.empty()) std::memcpy(all.data(), gathered, all.size());
    return done;
  }

 private:
  using Clock = std::chrono::steady_clock;

  template <class Start>
  Expected<void> complete(const std::string& call, const Start& start) {
    check(std::this_thread::get_id() == thread_,
          "a group of MPI is used by the thread that joined (MPI_THREAD_FUNNELED)");
    if (!broken_.empty()) return Error{broken_};
    Handle request = nullptr;
    if (const int code = start(&request); code != kSuccess) return break_off(call, words(code));
    const auto begin = Clock::now();
    // A job with more ranks than CPUs gives the others its turn at once.
    const auto spin = std::chrono::microseconds(
        size_ <= static_cast<int>(std::thread::hardware_concurrency()) ? 500 : 0);
    for (int done = 0;;) {
      if (const int code = mpi_.test(&request, &done, nullptr); code != kSuccess) {
        return break_off(call, words(code));
      }
      if (done) return {};
      const auto waited = Clock::now() - begin;
      if (std::chrono::duration<double>(waited).count() > timeout_s_) {
        return break_off(
            call, fmt::format("not all came within {:g} s: a rank is lost or hangs", timeout_s_));
      }
      if (waited > std::chrono::milliseconds(20)) {
        std::this_thread::sleep_for(std::chrono::microseconds(200));
      } else if (waited > spin) {
        std::this_thread::yield();
      }
    }
  }

  Error break_off(const std::string& call, const std::string& why) {
    broken_ = fmt::format("{} of {} ranks failed on rank {}: {}", call, size_, rank_, why);
    // MPI still holds its address, and has no way to let go of a collective that was started.
    static_cast<void>(new std::vector<std::byte>(std::move(buffer_)));
    return {broken_};
  }

  std::string words(int code) const {
    char text[kMaxErrorText] = {};
    int length = 0;
    if (mpi_.error_string(code, text, &length) != kSuccess)
      return fmt::format("MPI error {}", code);
    return text;
  }

  Functions mpi_;
  int rank_;
  int size_;
  double timeout_s_;
  std::thread::id thread_;
  std::vector<std::byte> buffer_;
  std::string broken_;
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
  return std::unique_ptr<Group>(std::make_unique<MpiGroup>(*functions, rank, size, options));
}

}  // namespace gauntlet::ranks
