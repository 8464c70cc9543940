#include "core/ranks/symmetric.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <new>
#include <optional>
#include <random>
#include <span>
#include <thread>
#include <vector>

#include "core/check.h"
#include "core/ranks/channel.h"

namespace gauntlet::ranks {
namespace {

using Bytes = std::span<const std::byte>;
using Clock = std::chrono::steady_clock;

/// Counters and windows of different ranks are no neighbours in a cache line, nor in the pair of
/// lines that is fetched together.
constexpr std::size_t kApart = 128;

constexpr std::size_t rounded(std::size_t bytes) { return (bytes + kApart - 1) / kApart * kApart; }

struct alignas(kApart) Counter {
  std::atomic<std::uint64_t> raised;
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free, "processes share no lock");

/// The first bytes of the memory: it is the one that rank 0 made.
struct alignas(kApart) Header {
  std::uint64_t token;
};

/// A mapping of the memory of all ranks, and its layout: each rank's counters, then its bytes.
class SharedMemory {
 public:
  SharedMemory(int descriptor, const std::vector<std::size_t>& sizes, int flags)
      : flags_(flags), bytes_(bytes_of(sizes, flags)) {
    for (std::size_t rank = 0; rank < sizes.size(); ++rank) {
      at_.push_back(
          bytes_of({sizes.begin(), sizes.begin() + static_cast<std::ptrdiff_t>(rank)}, flags));
    }
    struct stat status{};
    if (descriptor < 0 || ::fstat(descriptor, &status) != 0) return;
    if (status.st_size != static_cast<off_t>(bytes_)) return;
    // Populated: the first put meets no page fault.
    void* mapped =
        ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, descriptor, 0);
    if (mapped != MAP_FAILED) memory_ = static_cast<std::byte*>(mapped);
  }
  ~SharedMemory() {
    if (memory_ != nullptr) ::munmap(memory_, bytes_);
  }
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  static std::size_t bytes_of(const std::vector<std::size_t>& sizes, int flags) {
    std::size_t bytes = sizeof(Header);
    for (const std::size_t size : sizes) {
      bytes += static_cast<std::size_t>(flags) * sizeof(Counter) + rounded(size);
    }
    return bytes;
  }

  bool is_mapped() const { return memory_ != nullptr; }
  Header& header() { return *reinterpret_cast<Header*>(memory_); }
  std::atomic<std::uint64_t>& counter(int rank, int flag) {
    auto* counters = reinterpret_cast<Counter*>(memory_ + at_[static_cast<std::size_t>(rank)]);
    return counters[flag].raised;
  }
  std::byte* bytes(int rank) {
    return memory_ + at_[static_cast<std::size_t>(rank)] +
           static_cast<std::size_t>(flags_) * sizeof(Counter);
  }

 private:
  int flags_;
  std::vector<std::size_t> at_;  // where each rank's counters begin
  std::size_t bytes_;
  std::byte* memory_ = nullptr;
};

class SymmetricWindow final : public Window {
 public:
  SymmetricWindow(std::unique_ptr<SharedMemory> memory, std::unique_ptr<Channel> channel,
                  std::vector<std::size_t> sizes, int flags, double timeout_s)
      : memory_(std::move(memory)),
        channel_(std::move(channel)),
        sizes_(std::move(sizes)),
        flags_(flags),
        timeout_s_(timeout_s),
        spins_(channel_->size() <= static_cast<int>(std::thread::hardware_concurrency()) ? kSpins
                                                                                         : 0) {}

  std::span<std::byte> bytes() override {
    return {memory_->bytes(channel_->rank()), sizes_[static_cast<std::size_t>(channel_->rank())]};
  }

  Expected<void> put(int to, std::size_t offset, Bytes bytes, int flag) override {
    check(to >= 0 && to < channel_->size(), "put: to a rank of the group");
    check(flag >= 0 && flag < flags_, "put: a flag of the window");
    const std::size_t room = sizes_[static_cast<std::size_t>(to)];
    check(offset <= room && bytes.size() <= room - offset, "put: inside of the target's window");
    if (!bytes.empty()) std::memcpy(memory_->bytes(to) + offset, bytes.data(), bytes.size());
    memory_->counter(to, flag).fetch_add(1, std::memory_order_release);
    return {};
  }

  Expected<void> wait(int flag, std::uint64_t count) override {
    check(flag >= 0 && flag < flags_, "wait: for a flag of the window");
    const std::atomic<std::uint64_t>& counter = memory_->counter(channel_->rank(), flag);
    for (int spin = 0; spin < spins_; ++spin) {
      if (counter.load(std::memory_order_acquire) >= count) return {};
#if defined(__x86_64__)
      __builtin_ia32_pause();
#endif
    }
    return wait_long(counter, flag, count);
  }

 private:
  static constexpr int kSpins = 4000;
  static constexpr double kYieldS = 0.02;

  Expected<void> wait_long(const std::atomic<std::uint64_t>& counter, int flag,
                           std::uint64_t count) {
    const auto begin = Clock::now();
    while (true) {
      // Whether the others are there is read first: what they put before is seen by then.
      const auto failed = failure();
      if (counter.load(std::memory_order_acquire) >= count) return {};
      if (failed) return *failed;
      const double waited = std::chrono::duration<double>(Clock::now() - begin).count();
      if (waited > timeout_s_) {
        return break_off(
            fmt::format("flag {} of rank {} was raised {} times instead of {} within {:g} s", flag,
                        channel_->rank(), counter.load(), count, timeout_s_));
      }
      if (waited < kYieldS) {
        std::this_thread::yield();
      } else {
        std::this_thread::sleep_for(std::chrono::microseconds(50));
      }
    }
  }

  /// Puts leave no message that a lost rank would be missed by: it is looked for. One that ended
  /// may have put all it had to, so that only the loss of all others ends a wait at once.
  std::optional<Error> failure() {
    if (const auto reason = channel_->broken()) return Error{*reason};
    std::string lost;
    for (int from = 0; from < channel_->size(); ++from) {
      if (from == channel_->rank()) continue;
      const Arrival arrival = channel_->poll(from, 0);
      if (arrival.state == Arrival::State::broken) return Error{arrival.why};
      if (arrival.state != Arrival::State::lost) return std::nullopt;
      lost += fmt::format("{}{}{}{}", lost.empty() ? "" : ", ", from,
                          arrival.why.empty() ? "" : ": ", arrival.why);
    }
    if (lost.empty()) return std::nullopt;
    return break_off(fmt::format("rank {} waits for puts, and all others have ended: {}",
                                 channel_->rank(), lost));
  }

  Error break_off(const std::string& reason) {
    channel_->break_off(reason);
    return {channel_->broken().value_or(reason)};
  }

  std::unique_ptr<SharedMemory> memory_;
  std::unique_ptr<Channel> channel_;
  std::vector<std::size_t> sizes_;
  int flags_;
  double timeout_s_;
  int spins_;
};

/// A file that nobody can find by name but through /proc, and that is gone with its last mapping.
int make_memory(std::size_t bytes) {
  const int made = ::memfd_create("gauntlet-window", MFD_CLOEXEC);
  if (made >= 0 && ::ftruncate(made, static_cast<off_t>(bytes)) == 0) return made;
  if (made >= 0) ::close(made);
  return -1;
}

}  // namespace

Expected<std::unique_ptr<Window>> open_symmetric_window(Group& group, std::size_t bytes, int flags,
                                                        const GroupOptions& options) {
  check(flags >= 1, "a window has at least one flag");
  const std::uint64_t own = bytes;
  std::vector<std::size_t> sizes(static_cast<std::size_t>(group.size()));
  if (const auto told = group.all_gather(std::as_bytes(std::span(&own, 1)),
                                         std::as_writable_bytes(std::span(sizes)));
      !told) {
    return told.error();
  }
  auto channel = group.open_channel(1);
  if (!channel) return channel.error();

  const bool first = group.rank() == 0;
  int descriptor = first ? make_memory(SharedMemory::bytes_of(sizes, flags)) : -1;
  std::random_device device;
  const auto token = agree(group, std::uint64_t{device()} << 32 | device());
  if (!token) return token.error();
  const auto path = agree(group, fmt::format("/proc/{}/fd/{}", ::getpid(), descriptor));
  if (!path) return path.error();
  if (!first) descriptor = ::open(path->c_str(), O_RDWR | O_CLOEXEC);
  auto memory = std::make_unique<SharedMemory>(descriptor, sizes, flags);
  if (first && memory->is_mapped()) memory->header().token = *token;
  // The others look at the token after it was written, and rank 0 keeps the file until they did.
  const auto written = group.barrier();
  const bool same = written && memory->is_mapped() && memory->header().token == *token;
  const auto all = written ? all_true(group, same) : written.error();
  if (descriptor >= 0) ::close(descriptor);
  if (!all) return all.error();
  if (!*all) {
    return Error{fmt::format(
        "the ranks share no memory of {} bytes: a symmetric window needs them on one host",
        SharedMemory::bytes_of(sizes, flags))};
  }
  return std::unique_ptr<Window>(std::make_unique<SymmetricWindow>(
      std::move(memory), std::move(*channel), std::move(sizes), flags, options.timeout_s));
}

}  // namespace gauntlet::ranks
