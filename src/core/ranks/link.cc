#include "core/ranks/link.h"

#include <sys/prctl.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <deque>
#include <map>
#include <thread>
#include <utility>
#include <vector>

#include "core/check.h"
#include "core/ranks/channel.h"
#include "core/ranks/intervals.h"
#include "core/ranks/message_group.h"

namespace gauntlet::ranks {
namespace {

using Clock = std::chrono::steady_clock;
using Seconds = Channel::Seconds;

// A transport may need this rank while it sleeps, so that it looks after it so often.
constexpr Seconds kLongestSleep(200e-6);
// Falling asleep and waking up take about as long.
constexpr Seconds kShortestSleep(10e-6);

// For groups, windows and starters made over the links: each split takes one.
constexpr int kLanes = 1 << 20;

/// To the microsecond: a thread's timers are otherwise let be some 50 µs late.
void sleep(Seconds time) {
  ::prctl(PR_SET_TIMERSLACK, 1000UL);
  std::this_thread::sleep_for(time);
  ::prctl(PR_SET_TIMERSLACK, 0UL);  // as it was
}

double now_s() { return Seconds(Clock::now().time_since_epoch()).count(); }

/// In front of each message: when it left, and when its last byte is there.
struct Stamp {
  double sent_s;
  double there_s;
};

class RealLinks final : public Links {
 public:
  RealLinks(const Fabric& fabric, int rank) : fabric_(fabric), rank_(rank) {}

  const Fabric& fabric() const override { return fabric_; }

  LinkTraffic traffic() override {
    const Overlap overlap = overlap_of(wire_, waits_);
    traffic_.wire_s += overlap.covered;
    traffic_.exposed_s += overlap.shared;
    wire_.clear();
    waits_.clear();
    return traffic_;
  }

  void count(int to, std::size_t bytes) {
    ++traffic_.messages;
    traffic_.bytes += bytes;
    if (fabric_.same_host(rank_, to)) return;
    ++traffic_.messages_between;
    traffic_.bytes_between += bytes;
  }

  /// Sends through the port, which is taken until the last byte has left.
  Stamp stamp(int to, std::size_t bytes) {
    count(to, bytes);
    const bool within = fabric_.same_host(rank_, to);
    const Link& link = within ? fabric_.within : fabric_.between;
    double& free_s = within ? within_free_s_ : between_free_s_;
    const double sent = now_s();
    free_s = std::max(free_s, sent) + static_cast<double>(bytes) / link.bytes_per_s;
    return {.sent_s = sent, .there_s = free_s + link.latency_s};
  }

  void arrived(const Stamp& stamp) { note(wire_, {stamp.sent_s, stamp.there_s}); }
  void waited(double begin_s, double end_s) { note(waits_, {begin_s, end_s}); }

 private:
  /// What nobody asks for does not pile up.
  void note(std::vector<Interval>& intervals, Interval one) {
    constexpr std::size_t kMost = 1 << 16;
    intervals.push_back(one);
    if (intervals.size() >= kMost) traffic();
  }

  Fabric fabric_;
  int rank_;
  double within_free_s_ = 0, between_free_s_ = 0;
  LinkTraffic traffic_;
  std::vector<Interval> wire_, waits_;
};

/// Links that take no time: counts what is sent, and costs nothing else.
class CountingChannel : public Channel {
 public:
  CountingChannel(std::unique_ptr<Channel> below, std::shared_ptr<RealLinks> links)
      : below_(std::move(below)), links_(std::move(links)) {}

  int rank() const override { return below_->rank(); }
  int size() const override { return below_->size(); }
  std::string transport() const override { return below_->transport(); }
  void send(int to, int lane, std::span<const std::byte> head,
            std::span<const std::byte> body) override {
    links_->count(to, head.size() + body.size());
    below_->send(to, lane, head, body);
  }
  Arrival poll(int from, int lane) override { return below_->poll(from, lane); }
  bool flushed(int lane) override { return below_->flushed(lane); }
  std::vector<int> late_takers(int lane) const override { return below_->late_takers(lane); }
  void pause(Seconds waited, Seconds left) override { below_->pause(waited, left); }
  void break_off(const std::string& reason) override { below_->break_off(reason); }
  std::optional<std::string> broken() override { return below_->broken(); }

 protected:
  std::unique_ptr<Channel> below_;
  std::shared_ptr<RealLinks> links_;
};

class LinkChannel final : public CountingChannel {
 public:
  using CountingChannel::CountingChannel;

  void send(int to, int lane, std::span<const std::byte> head,
            std::span<const std::byte> body) override {
    const Stamp stamp = links_->stamp(to, head.size() + body.size());
    std::vector<std::byte> stamped(sizeof(stamp) + head.size());
    std::memcpy(stamped.data(), &stamp, sizeof(stamp));
    std::ranges::copy(head, stamped.begin() + sizeof(stamp));
    below_->send(to, lane, stamped, body);
  }

  Arrival poll(int from, int lane) override {
    Arrival waiting = fetch(from, lane);
    if (waiting.state != Arrival::State::nothing) return waiting;
    const auto found = queues_.find({from, lane});
    if (found == queues_.end() || found->second.front().stamp.there_s > now_s()) return {};
    Message& first = found->second.front();
    links_->arrived(first.stamp);
    Arrival arrival{
        .state = Arrival::State::message, .message = std::move(first.message), .why = {}};
    found->second.pop_front();
    if (found->second.empty()) queues_.erase(found);
    arrival.message.erase(arrival.message.begin(), arrival.message.begin() + sizeof(Stamp));
    return arrival;
  }

  void pause(Seconds waited, Seconds left) override {
    const double begin = now_s();
    // What is not known to be on its way is not there before a latency has passed, so that this
    // much sooner is soon enough to look for it.
    const Seconds next(std::min(next_s(begin) - begin, shortest_latency_s() / 2));
    if (next < kShortestSleep) {
      below_->pause(waited, std::min(left, kShortestSleep));
    } else {
      sleep(std::min({left, next, kLongestSleep}));
      below_->flushed(0);
    }
    links_->waited(begin, now_s());
  }

 private:
  struct Message {
    Stamp stamp;
    std::vector<std::byte> message;  // behind its stamp
  };

  /// Takes what has come from below. A rank that is lost is so once all it sent has been taken.
  Arrival fetch(int from, int lane) {
    while (true) {
      Arrival arrival = below_->poll(from, lane);
      if (arrival.state == Arrival::State::message) {
        Stamp stamp;
        check(arrival.message.size() >= sizeof(stamp), "a message begins with its stamp");
        std::memcpy(&stamp, arrival.message.data(), sizeof(stamp));
        queues_[{from, lane}].push_back({stamp, std::move(arrival.message)});
        continue;
      }
      if (arrival.state == Arrival::State::lost && queues_.contains({from, lane})) return {};
      return arrival;
    }
  }

  /// Of the links that this rank has.
  double shortest_latency_s() const {
    const Fabric& fabric = links_->fabric();
    const bool has_neighbours = std::min(fabric.ranks_per_host, size()) > 1;
    return has_neighbours ? std::min(fabric.within.latency_s, fabric.between.latency_s)
                          : fabric.between.latency_s;
  }

  /// When the next of the messages that are known to be on their way is there.
  double next_s(double now) const {
    double next = std::numeric_limits<double>::infinity();
    for (const auto& [from, queue] : queues_) {
      const double there = queue.front().stamp.there_s;
      if (there > now) next = std::min(next, there);
    }
    return next;
  }

  std::map<std::pair<int, int>, std::deque<Message>> queues_;  // by sender and lane, none empty
};

bool takes_time(const Link& link) { return link.latency_s > 0 || !std::isinf(link.bytes_per_s); }

}  // namespace

Expected<LinkedGroup> over_links(Group& group, const Fabric& fabric, const GroupOptions& options) {
  check(fabric.ranks_per_host >= 1, "a host has at least one rank");
  auto channel = group.open_channel(kLanes);
  if (!channel) return channel.error();
  const auto links = std::make_shared<RealLinks>(fabric, group.rank());
  std::unique_ptr<Channel> link;
  if (takes_time(fabric.between) || takes_time(fabric.within)) {
    link = std::make_unique<LinkChannel>(std::move(*channel), links);
  } else {
    link = std::make_unique<CountingChannel>(std::move(*channel), links);
  }
  auto linked = make_message_group(std::move(link), options, GroupEnd::silent);
  return LinkedGroup{.links = links, .group = std::move(linked)};
}

}  // namespace gauntlet::ranks
