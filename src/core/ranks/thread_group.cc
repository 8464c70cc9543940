#include "core/ranks/thread_group.h"

#include <fmt/format.h>
#include <pthread.h>
#include <sched.h>

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "core/check.h"
#include "core/os/threads.h"

namespace gauntlet::ranks {
namespace {

struct Call {
  enum class Kind { none, barrier, broadcast, all_gather } kind = Kind::none;
  std::size_t bytes = 0;  // of each rank
  int root = 0;
  bool operator==(const Call&) const = default;
};

std::string text_of(const Call& call) {
  switch (call.kind) {
    case Call::Kind::none:
      return "nothing";
    case Call::Kind::barrier:
      return "a barrier";
    case Call::Kind::broadcast:
      return fmt::format("a broadcast of {} bytes from rank {}", call.bytes, call.root);
    case Call::Kind::all_gather:
      return fmt::format("an all-gather of {} bytes each", call.bytes);
  }
  fail("no such call");
}

/// What each rank brought to one call. The bytes are copies: a rank that gives up returns, and its
/// own buffers may be gone while others still read.
struct Round {
  std::vector<Call> calls;
  std::vector<std::vector<std::byte>> bytes;
};

/// Where threads meet. One meeting per call is enough, because two rounds take turns: a rank fills
/// a round for the call after next only once all have come to the next call, hence have read it.
class Meeting {
 public:
  Meeting(int size, double timeout_s)
      : size_(size),
        timeout_(timeout_s),
        spins_(size <= static_cast<int>(allowed_cpus().size()) ? kSpins : 0),
        calls_made_(static_cast<std::size_t>(size), 0),
        departed_(static_cast<std::size_t>(size)) {
    for (Round& round : rounds_) {
      round.calls.resize(static_cast<std::size_t>(size));
      round.bytes.resize(static_cast<std::size_t>(size));
    }
  }

  int size() const { return size_; }

  /// Returns the round once every rank has made this call.
  Expected<const Round*> meet(int rank, const Call& call, std::span<const std::byte> bytes) {
    if (broken_.load(std::memory_order_acquire)) return error();
    const auto self = static_cast<std::size_t>(rank);
    // Only this rank writes its count, so that it may read it without the lock.
    const std::uint64_t number = calls_made_[self];
    Round& round = rounds_[number % rounds_.size()];
    round.calls[self] = call;
    round.bytes[self].assign(bytes.begin(), bytes.end());
    {
      const std::lock_guard lock(mutex_);
      if (broken_) return error_locked();
      ++calls_made_[self];
      if (const auto gone = first_departed()) return break_off(left_text(*gone, call));
      if (++arrived_ == size_) {
        if (std::string wrong = mismatch(round); !wrong.empty()) return break_off(std::move(wrong));
        arrived_ = 0;
        completed_.store(number + 1, std::memory_order_release);
        changed_.notify_all();
        return &round;
      }
    }
    for (int spin = 0; spin < spins_; ++spin) {
      if (completed_.load(std::memory_order_acquire) > number) return &round;
#if defined(__x86_64__)
      __builtin_ia32_pause();
#endif
    }
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, timeout_, [&] { return completed_ > number || broken_; });
    if (completed_ > number) return &round;
    if (broken_) return error_locked();
    return break_off(fmt::format("{} did not come to {} of {} ranks within {:g} s",
                                 missing_text(number), text_of(call), size_, timeout_.count()));
  }

  /// A rank has ended; `why` is empty where it did so by returning.
  void leave(int rank, std::optional<Error> why) {
    const std::lock_guard lock(mutex_);
    const auto self = static_cast<std::size_t>(rank);
    departed_[self] = why ? why->message : "";
    if (why && !first_failure_) first_failure_ = fmt::format("rank {}: {}", rank, why->message);
    // Those who wait now wait for a call that this rank has not made.
    if (arrived_ > 0 && !broken_) break_off(left_text(rank, waiting_for()));
  }

  /// After all have left: the first failure, or that the ranks missed each other.
  Expected<void> outcome() {
    const std::lock_guard lock(mutex_);
    if (first_failure_) return Error{*first_failure_};
    if (broken_) return error_locked();
    return {};
  }

 private:
  static constexpr int kSpins = 2000;

  Error error() {
    const std::lock_guard lock(mutex_);
    return error_locked();
  }
  Error error_locked() const { return {reason_}; }

  Error break_off(std::string reason) {
    reason_ = std::move(reason);
    broken_.store(true, std::memory_order_release);
    changed_.notify_all();
    return {reason_};
  }

  std::optional<int> first_departed() const {
    for (int rank = 0; rank < size_; ++rank) {
      if (departed_[static_cast<std::size_t>(rank)]) return rank;
    }
    return std::nullopt;
  }

  std::string left_text(int rank, const Call& call) const {
    const std::string& why = *departed_[static_cast<std::size_t>(rank)];
    return fmt::format("rank {} ended before {} of {} ranks{}{}", rank, text_of(call), size_,
                       why.empty() ? "" : ": ", why);
  }

  Call waiting_for() const {
    const std::uint64_t number = completed_.load(std::memory_order_relaxed);
    for (std::size_t rank = 0; rank < calls_made_.size(); ++rank) {
      if (calls_made_[rank] > number) return rounds_[number % rounds_.size()].calls[rank];
    }
    fail("someone waits");
  }

  std::string missing_text(std::uint64_t number) const {
    std::vector<int> missing;
    for (int rank = 0; rank < size_; ++rank) {
      if (calls_made_[static_cast<std::size_t>(rank)] <= number) missing.push_back(rank);
    }
    return fmt::format("{} {}", missing.size() == 1 ? "rank" : "ranks", fmt::join(missing, ", "));
  }

  std::string mismatch(const Round& round) const {
    for (int rank = 1; rank < size_; ++rank) {
      const Call& call = round.calls[static_cast<std::size_t>(rank)];
      if (call == round.calls[0]) continue;
      return fmt::format("rank {} called {} where rank 0 called {}", rank, text_of(call),
                         text_of(round.calls[0]));
    }
    return "";
  }

  const int size_;
  const std::chrono::duration<double> timeout_;
  const int spins_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::array<Round, 2> rounds_;
  std::vector<std::uint64_t> calls_made_;
  int arrived_ = 0;
  std::atomic<std::uint64_t> completed_ = 0;
  std::atomic<bool> broken_ = false;
  std::string reason_;
  std::vector<std::optional<std::string>> departed_;  // why, by rank; empty: it returned
  std::optional<std::string> first_failure_;
};

class ThreadGroup final : public Group {
 public:
  ThreadGroup(Meeting& meeting, int rank) : meeting_(meeting), rank_(rank) {}

  int rank() const override { return rank_; }
  int size() const override { return meeting_.size(); }
  std::string transport() const override { return "threads"; }

  Expected<void> barrier() override {
    const auto met = meeting_.meet(rank_, {.kind = Call::Kind::barrier}, {});
    if (!met) return met.error();
    return {};
  }

  Expected<void> broadcast(std::span<std::byte> bytes, int root) override {
    check(root >= 0 && root < size(), "the root of a broadcast is a rank of the group");
    const std::span<const std::byte> own = rank_ == root ? bytes : std::span<std::byte>();
    const auto met = meeting_.meet(
        rank_, {.kind = Call::Kind::broadcast, .bytes = bytes.size(), .root = root}, own);
    if (!met) return met.error();
    const std::vector<std::byte>& sent = (*met)->bytes[static_cast<std::size_t>(root)];
    if (rank_ != root && !sent.empty()) std::memcpy(bytes.data(), sent.data(), sent.size());
    return {};
  }

  Expected<void> all_gather(std::span<const std::byte> own, std::span<std::byte> all) override {
    check(all.size() == own.size() * static_cast<std::size_t>(size()),
          "all_gather needs room for every rank's bytes");
    const auto met =
        meeting_.meet(rank_, {.kind = Call::Kind::all_gather, .bytes = own.size()}, own);
    if (!met) return met.error();
    std::byte* to = all.data();
    for (const std::vector<std::byte>& bytes : (*met)->bytes) {
      if (!bytes.empty()) std::memcpy(to, bytes.data(), bytes.size());
      to += bytes.size();
    }
    return {};
  }

 private:
  Meeting& meeting_;
  int rank_;
};

std::optional<Error> failure_of(const std::function<Expected<void>(Group&)>& body, Group& group) {
  try {
    const auto done = body(group);
    if (!done) return done.error();
    return std::nullopt;
  } catch (const std::exception& thrown) {
    return Error{thrown.what()};
  } catch (...) {
    return Error{"threw something that is no std::exception"};
  }
}

/// A new thread inherits the place of the one that starts it, which may be pinned.
void use_all_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int cpu : allowed_cpus()) CPU_SET(static_cast<std::size_t>(cpu), &set);
  pthread_setaffinity_np(pthread_self(), sizeof(set), &set);
}

}  // namespace

Expected<void> run_threads(int ranks, const std::function<Expected<void>(Group&)>& body,
                           const GroupOptions& options) {
  check(ranks >= 1, "a group has at least one rank");
  Meeting meeting(ranks, options.timeout_s);
  {
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < ranks; ++rank) {
      threads.emplace_back([&meeting, &body, rank] {
        use_all_cpus();
        ThreadGroup group(meeting, rank);
        meeting.leave(rank, failure_of(body, group));
      });
    }
  }
  return meeting.outcome();
}

}  // namespace gauntlet::ranks
