#include "core/ranks/thread_group.h"

#include <fmt/format.h>
#include <pthread.h>
#include <sched.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "core/check.h"
#include "core/os/threads.h"
#include "core/ranks/message_group.h"

namespace gauntlet::ranks {
namespace {

/// Where the ranks leave messages for each other.
class Hub {
 public:
  explicit Hub(int size)
      : spins_(size <= static_cast<int>(allowed_cpus().size()) ? kSpins : 0),
        inboxes_(static_cast<std::size_t>(size)),
        departed_(static_cast<std::size_t>(size)) {}

  int size() const { return static_cast<int>(inboxes_.size()); }

  void send(int from, int to, int lane, std::vector<std::byte> message) {
    Inbox& inbox = inboxes_[static_cast<std::size_t>(to)];
    {
      const std::lock_guard lock(inbox.mutex);
      inbox.messages[{from, lane}].push_back(std::move(message));
    }
    inbox.call();
  }

  Arrival poll(int self, int from, int lane) {
    if (broken_.load(std::memory_order_acquire)) {
      return {.state = Arrival::State::broken, .message = {}, .why = *broken()};
    }
    // Whether it has ended is read first: what it sent before is there by then.
    const std::optional<std::string> ended = departed(from);
    Inbox& inbox = inboxes_[static_cast<std::size_t>(self)];
    {
      const std::lock_guard lock(inbox.mutex);
      const auto found = inbox.messages.find({from, lane});
      if (found != inbox.messages.end() && !found->second.empty()) {
        Arrival arrival{.state = Arrival::State::message,
                        .message = std::move(found->second.front()),
                        .why = {}};
        found->second.pop_front();
        // Lanes of groups that are no more would pile up.
        if (found->second.empty() && lane != 0) inbox.messages.erase(found);
        return arrival;
      }
    }
    if (ended) return {.state = Arrival::State::lost, .message = {}, .why = *ended};
    return {};
  }

  /// Until something has happened that this rank has not looked at yet.
  void pause(int self, Channel::Seconds left) {
    Inbox& inbox = inboxes_[static_cast<std::size_t>(self)];
    for (int spin = 0; spin < spins_; ++spin) {
      if (inbox.events.load(std::memory_order_acquire) != inbox.seen) break;
#if defined(__x86_64__)
      __builtin_ia32_pause();
#endif
    }
    std::unique_lock lock(inbox.mutex);
    inbox.changed.wait_for(lock, left, [&] { return inbox.events != inbox.seen; });
    inbox.seen = inbox.events;
  }

  void break_off(const std::string& reason) {
    {
      const std::lock_guard lock(mutex_);
      if (reason_.empty()) reason_ = reason;
      broken_.store(true, std::memory_order_release);
    }
    call_all();
  }

  std::optional<std::string> broken() {
    if (!broken_.load(std::memory_order_acquire)) return std::nullopt;
    const std::lock_guard lock(mutex_);
    return reason_;
  }

  /// A rank has ended; no error where it did so by returning.
  void leave(int rank, std::optional<Error> why) {
    {
      const std::lock_guard lock(mutex_);
      departed_[static_cast<std::size_t>(rank)] = why ? why->message : "";
      if (why && !first_failure_) first_failure_ = fmt::format("rank {}: {}", rank, why->message);
    }
    call_all();
  }

  /// After all have left: the first failure, or that the ranks missed each other.
  Expected<void> outcome() {
    const std::lock_guard lock(mutex_);
    if (first_failure_) return Error{*first_failure_};
    if (broken_) return Error{reason_};
    return {};
  }

 private:
  static constexpr int kSpins = 2000;

  struct Inbox {
    std::mutex mutex;
    std::condition_variable changed;
    std::map<std::pair<int, int>, std::deque<std::vector<std::byte>>> messages;  // by sender, lane
    std::atomic<std::uint64_t> events = 0;
    std::uint64_t seen = 0;  // its owner's

    void call() {
      {
        const std::lock_guard lock(mutex);
        events.fetch_add(1, std::memory_order_release);
      }
      changed.notify_all();
    }
  };

  void call_all() {
    for (Inbox& inbox : inboxes_) inbox.call();
  }

  std::optional<std::string> departed(int rank) {
    const std::lock_guard lock(mutex_);
    return departed_[static_cast<std::size_t>(rank)];
  }

  const int spins_;
  std::deque<Inbox> inboxes_;
  std::mutex mutex_;
  std::atomic<bool> broken_ = false;
  std::string reason_;
  std::vector<std::optional<std::string>> departed_;  // why, by rank; empty: it returned
  std::optional<std::string> first_failure_;
};

class ThreadChannel final : public Channel {
 public:
  ThreadChannel(Hub& hub, int rank) : hub_(hub), rank_(rank) {}

  int rank() const override { return rank_; }
  int size() const override { return hub_.size(); }
  std::string transport() const override { return "threads"; }
  void send(int to, int lane, std::span<const std::byte> head,
            std::span<const std::byte> body) override {
    std::vector<std::byte> message;
    message.reserve(head.size() + body.size());
    message.insert(message.end(), head.begin(), head.end());
    message.insert(message.end(), body.begin(), body.end());
    hub_.send(rank_, to, lane, std::move(message));
  }
  Arrival poll(int from, int lane) override { return hub_.poll(rank_, from, lane); }
  bool flushed(int) override { return true; }
  void pause(Seconds, Seconds left) override { hub_.pause(rank_, left); }
  void break_off(const std::string& reason) override { hub_.break_off(reason); }
  std::optional<std::string> broken() override { return hub_.broken(); }

 private:
  Hub& hub_;
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
  Hub hub(ranks);
  {
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < ranks; ++rank) {
      threads.emplace_back([&, rank] {
        use_all_cpus();
        const auto group = make_message_group(std::make_unique<ThreadChannel>(hub, rank), options,
                                              GroupEnd::silent);
        hub.leave(rank, failure_of(body, *group));
      });
    }
  }
  return hub.outcome();
}

}  // namespace gauntlet::ranks
