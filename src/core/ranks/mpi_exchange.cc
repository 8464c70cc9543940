#include "core/ranks/mpi_exchange.h"

#include <fmt/format.h>

#include <chrono>
#include <climits>
#include <deque>

#include "core/check.h"
#include "core/os/dynamic_library.h"
#include "core/ranks/mpi_group.h"

namespace gauntlet::ranks {
namespace {

using Handle = void*;
using Clock = std::chrono::steady_clock;

constexpr int kTag = 32'001;  // above the lanes of groups, and below what MPI grants at least

/// As OpenMPI's mpi.h has them: handles are addresses of objects.
struct ExchangeFunctions {
  int (*isend)(const void*, int, Handle, int, int, Handle, Handle*) = nullptr;
  int (*irecv)(void*, int, Handle, int, int, Handle, Handle*) = nullptr;
  int (*testall)(int, Handle*, int*, void*) = nullptr;
  int (*cuda_support)() = nullptr;  // null where this MPI does not know the question
  Handle world = nullptr;
  Handle byte = nullptr;
};

class Messages final : public MpiExchange {
 public:
  explicit Messages(const ExchangeFunctions& mpi) : mpi_(mpi) {}

  Expected<void> takes_device_memory() const override {
    if (mpi_.cuda_support != nullptr && mpi_.cuda_support() == 1) return {};
    return Error{
        "this MPI takes no addresses of a GPU's memory: use an OpenMPI that was built with CUDA "
        "(ompi_info --parsable | grep cuda_support:value) and started with UCX",
        ErrorKind::environment};
  }

  Expected<void> start(int to, const void* sent, int from, void* received,
                       std::size_t bytes) override {
    check(bytes <= INT_MAX, "MPI counts the bytes of a message in an int");
    const int count = static_cast<int>(bytes);
    Pending& pending = pending_.emplace_back();
    // The receive goes first, so that what comes finds its place.
    const bool started =
        mpi_.irecv(received, count, mpi_.byte, from, kTag, mpi_.world, &pending.requests[0]) == 0 &&
        mpi_.isend(sent, count, mpi_.byte, to, kTag, mpi_.world, &pending.requests[1]) == 0;
    if (started) return {};
    return Error{fmt::format("MPI started no exchange with ranks {} and {}", to, from)};
  }

  Expected<void> finish(double timeout_s) override {
    check(!pending_.empty(), "no exchange was started that could be finished");
    const auto end = Clock::now() + std::chrono::duration<double>(timeout_s);
    for (int done = 0; done == 0;) {
      // MPI_STATUSES_IGNORE is address 0.
      if (mpi_.testall(2, pending_.front().requests, &done, nullptr) != 0) {
        return Error{"MPI failed in an exchange"};
      }
      if (done == 0 && Clock::now() > end) {
        return Error{fmt::format("an exchange was not over within {:.3g} s", timeout_s)};
      }
    }
    pending_.pop_front();
    return {};
  }

 private:
  struct Pending {
    Handle requests[2] = {};
  };
  ExchangeFunctions mpi_;
  std::deque<Pending> pending_;
};

}  // namespace

Expected<std::unique_ptr<MpiExchange>> MpiExchange::find() {
  const auto path = find_mpi_library();
  if (!path) return path.error();
  const auto library =
      DynamicLibrary::open({.names = {*path}, .folders = {}, .scope = SymbolScope::global});
  if (!library) return library.error();
  ExchangeFunctions mpi;
  const auto take = [&](const char* name, auto& to) -> Expected<void> {
    const auto found = library->address(name);
    if (!found) return found.error();
    to = reinterpret_cast<std::decay_t<decltype(to)>>(*found);
    return {};
  };
  auto complete = take("MPI_Isend", mpi.isend);
  if (complete) complete = take("MPI_Irecv", mpi.irecv);
  if (complete) complete = take("MPI_Testall", mpi.testall);
  if (complete) complete = take("ompi_mpi_comm_world", mpi.world);
  if (complete) complete = take("ompi_mpi_byte", mpi.byte);
  if (!complete) return complete.error();
  // One that does not know the question has no support.
  if (const auto asked = take("MPIX_Query_cuda_support", mpi.cuda_support); !asked) {
    mpi.cuda_support = nullptr;
  }
  library->keep_loaded();
  return std::unique_ptr<MpiExchange>(std::make_unique<Messages>(mpi));
}

}  // namespace gauntlet::ranks
