#include "core/ranks/message_group.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <limits>
#include <numeric>
#include <optional>

#include "core/check.h"
#include "core/ranks/call.h"
#include "core/ranks/lane_channel.h"
#include "core/ranks/message_shared.h"
#include "core/ranks/parts.h"

namespace gauntlet::ranks {
namespace {

using Bytes = std::span<const std::byte>;

/// Of a send whose length its receiver does not know.
constexpr std::uint64_t kAnyBytes = std::numeric_limits<std::uint64_t>::max();
constexpr double kLongestPauseS = 1;

using Shared = MessageShared;

std::string ranks_text(const std::vector<int>& ranks) {
  return fmt::format("{} {}", ranks.size() == 1 ? "rank" : "ranks", fmt::join(ranks, ", "));
}

class MessageGroup final : public Group {
 public:
  MessageGroup(std::shared_ptr<Shared> shared, std::vector<int> members, int lane, GroupEnd end)
      : shared_(std::move(shared)),
        members_(std::move(members)),
        rank_(static_cast<int>(std::ranges::find(members_, channel().rank()) - members_.begin())),
        lane_(lane),
        end_(end) {}

  ~MessageGroup() override {
    if (end_ == GroupEnd::silent) return;
    try {
      if (barrier()) channel().all_have_come();
    } catch (const std::exception&) {
      // No memory, or another thread destroys the group: the job ends as with a lost rank.
    }
  }

  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(members_.size()); }
  std::string transport() const override { return channel().transport(); }
  Traffic traffic() const override { return shared_->traffic; }
  void set_timeout(double seconds) override { shared_->timeout_s = seconds; }

  Expected<void> barrier() override {
    return exchange({.kind = Call::Kind::barrier}, [](int) { return Bytes(); }, [](int, Bytes) {});
  }

  Expected<void> broadcast(std::span<std::byte> bytes, int root) override {
    check(root >= 0 && root < size(), "the root of a broadcast is a rank of the group");
    const Call call{.kind = Call::Kind::broadcast, .peer = root, .bytes = bytes.size()};
    if (const auto failed = failure()) return *failed;
    if (rank_ == root) {
      for (int to = 0; to < size(); ++to) {
        if (to != root) post(to, call, bytes);
      }
      return {};
    }
    const auto sent = take(root, call);
    if (!sent) return sent.error();
    std::ranges::copy(body_of(*sent), bytes.begin());
    return {};
  }

  Expected<void> all_gather(Bytes own, std::span<std::byte> all) override {
    check(all.size() == own.size() * static_cast<std::size_t>(size()),
          "all_gather needs room for every rank's bytes");
    const std::vector<std::size_t> sizes(members_.size(), own.size());
    return gather_parts({.kind = Call::Kind::all_gather, .bytes = own.size()}, own, sizes, all);
  }

  Expected<void> all_gather(Bytes own, std::span<const std::size_t> sizes,
                            std::span<std::byte> all) override {
    check_parts(sizes, all.size(), "all_gather");
    check(own.size() == sizes[self()], "all_gather: a rank brings as much as its size says");
    return gather_parts({.kind = Call::Kind::all_gather_parts, .bytes = all.size()}, own, sizes,
                        all);
  }

  Expected<void> all_to_all(const Exchange& parts) override {
    check_parts(parts.sent_sizes, parts.sent.size(), "all_to_all");
    check_parts(parts.received_sizes, parts.received.size(), "all_to_all");
    const auto from = offsets_of(parts.sent_sizes);
    const auto to = offsets_of(parts.received_sizes);
    check(parts.sent_sizes[self()] == parts.received_sizes[self()],
          "all_to_all: a rank's part for itself has one size");
    return exchange(
        {.kind = Call::Kind::all_to_all},
        [&](int rank) { return parts.sent.subspan(from[rank], parts.sent_sizes[rank]); },
        [&](int rank, Bytes bytes) { std::ranges::copy(bytes, parts.received.begin() + to[rank]); },
        parts.received_sizes);
  }

  Expected<void> all_sum(std::span<float> numbers) override { return sum(numbers); }
  Expected<void> all_sum(std::span<double> numbers) override { return sum(numbers); }

  Expected<void> reduce_scatter(std::span<const float> all, std::span<const std::size_t> counts,
                                std::span<float> own) override {
    check_parts(counts, all.size(), "reduce_scatter");
    check(own.size() == counts[self()], "reduce_scatter: a rank takes as much as its count says");
    return scatter_sum<float>({.kind = Call::Kind::reduce_scatter, .bytes = all.size_bytes()}, all,
                              counts, own);
  }

  Expected<void> send(int to, Bytes bytes) override {
    check(to >= 0 && to < size() && to != rank_, "send: to another rank of the group");
    if (const auto failed = failure()) return *failed;
    post(to, {.kind = Call::Kind::send, .peer = to, .bytes = bytes.size()}, bytes);
    return {};
  }

  Expected<void> flush() override { return flush({.kind = Call::Kind::flush}); }

  Expected<void> receive(int from, std::span<std::byte> bytes) override {
    check(from >= 0 && from < size() && from != rank_, "receive: from another rank of the group");
    if (const auto failed = failure()) return *failed;
    const auto sent = take(from, {.kind = Call::Kind::send, .peer = rank_, .bytes = bytes.size()});
    if (!sent) return sent.error();
    std::ranges::copy(body_of(*sent), bytes.begin());
    return {};
  }

  Expected<std::vector<std::byte>> receive_any(int from, double limit_s) override {
    check(from >= 0 && from < size() && from != rank_, "receive: from another rank of the group");
    if (const auto failed = failure()) return *failed;
    auto sent = take(from, {.kind = Call::Kind::send, .peer = rank_, .bytes = kAnyBytes}, limit_s);
    if (sent) sent->erase(sent->begin(), sent->begin() + sizeof(Call));
    return sent;
  }

  Expected<std::unique_ptr<Window>> open_window(std::size_t bytes, int flags) override;
  Expected<std::unique_ptr<Channel>> open_channel(int lanes) override;
  Expected<std::unique_ptr<Group>> split(int colour) override;

  Channel& channel() const { return *shared_->channel; }
  const std::vector<int>& members() const { return members_; }

  std::optional<Error> failure() const {
    if (const auto reason = channel().broken()) return Error{*reason};
    return std::nullopt;
  }

  Error break_off(const std::string& reason) {
    channel().break_off(reason);
    return {channel().broken().value_or(reason)};
  }

  /// Why the wait for this message is over without it.
  std::string lost_text(int from, const Arrival& arrival, const Call& call) const {
    if (arrival.state == Arrival::State::broken) return arrival.why;
    return fmt::format("rank {} ended before {} of {} ranks{}{}", members_[from], text_of(call),
                       size(), arrival.why.empty() ? "" : ": ", arrival.why);
  }

  double timeout_s() const { return shared_->timeout_s; }

 private:
  std::size_t self() const { return static_cast<std::size_t>(rank_); }

  void check_parts(std::span<const std::size_t> sizes, std::size_t total, const char* call) const {
    if (sizes.size() == members_.size() && std::reduce(sizes.begin(), sizes.end()) == total) return;
    fail(fmt::format("{} takes a size for each rank, and they add up to the whole", call));
  }

  void post(int to, const Call& call, Bytes bytes) {
    shared_->send(members_[to], lane_, std::as_bytes(std::span(&call, 1)), bytes);
  }

  static Bytes body_of(const std::vector<std::byte>& message) {
    return Bytes(message).subspan(sizeof(Call));
  }

  /// A rank's message, which must belong to this very call.
  Expected<std::vector<std::byte>> take(int from, const Call& call) {
    return take(from, call, timeout_s());
  }
  Expected<std::vector<std::byte>> take(int from, const Call& call, double limit_s) {
    const WaitClock clock(*shared_);
    while (true) {
      Arrival arrival = channel().poll(members_[from], lane_);
      if (arrival.state == Arrival::State::message) {
        if (std::string wrong = mismatch(from, arrival.message, call); !wrong.empty()) {
          return break_off(wrong);
        }
        return std::move(arrival.message);
      }
      if (arrival.state != Arrival::State::nothing) {
        return break_off(lost_text(from, arrival, call));
      }
      const double waited = clock.waited_s();
      if (waited > limit_s) return break_off(late_text(from, call, limit_s));
      channel().pause(Channel::Seconds(waited),
                      Channel::Seconds(std::min(limit_s - waited, kLongestPauseS)));
    }
  }

  /// Whoever else has not come, either, is named, too.
  std::string late_text(int first, const Call& call, double limit_s) {
    std::vector<int> missing = {members_[first]};
    const bool needs_all = call.kind != Call::Kind::broadcast && call.kind != Call::Kind::send;
    for (int rank = first + 1; needs_all && rank < size(); ++rank) {
      if (rank == rank_) continue;
      if (channel().poll(members_[rank], lane_).state != Arrival::State::message) {
        missing.push_back(members_[rank]);
      }
    }
    return fmt::format("{} did not come to {} of {} ranks within {:g} s", ranks_text(missing),
                       text_of(call), size(), limit_s);
  }

  std::string mismatch(int from, const std::vector<std::byte>& message, const Call& own) const {
    Call theirs;
    check(message.size() >= sizeof(theirs), "a message begins with its call");
    std::memcpy(&theirs, message.data(), sizeof(theirs));
    if (own.bytes == kAnyBytes) theirs.bytes = kAnyBytes;
    if (theirs == own) return "";
    const bool own_first = rank_ < from;
    return fmt::format("rank {} called {} where rank {} called {}",
                       members_[own_first ? from : rank_], text_of(own_first ? theirs : own),
                       members_[own_first ? rank_ : from], text_of(own_first ? own : theirs));
  }

  /// Everyone gets a part of everyone. `sizes`: bytes that each rank's part has, where the call
  /// itself does not say.
  Expected<void> exchange(const Call& call, const std::function<Bytes(int)>& part_for,
                          const std::function<void(int, Bytes)>& arrived,
                          std::span<const std::size_t> sizes = {}) {
    if (const auto failed = failure()) return *failed;
    for (int i = 1; i < size(); ++i) {
      const int to = (rank_ + i) % size();
      post(to, call, part_for(to));
    }
    for (int from = 0; from < size(); ++from) {
      if (from == rank_) {
        arrived(from, part_for(from));
        continue;
      }
      const auto message = take(from, call);
      if (!message) return message.error();
      const Bytes body = body_of(*message);
      if (!sizes.empty() && body.size() != sizes[from]) {
        return break_off(fmt::format("rank {} sent {} bytes in {} where rank {} expects {}",
                                     members_[from], body.size(), text_of(call), members_[rank_],
                                     sizes[from]));
      }
      arrived(from, body);
    }
    // Everyone has come, so that this does not wait long; a rank that goes on computing would leave
    // the others without what is still to be sent.
    return flush(call);
  }

  Expected<void> flush(const Call& call) {
    if (channel().flushed(lane_)) return {};
    const WaitClock clock(*shared_);
    while (!channel().flushed(lane_)) {
      if (const auto failed = failure()) return *failed;
      const double waited = clock.waited_s();
      if (waited > timeout_s()) {
        return break_off(
            fmt::format("{} did not take what rank {} sent in {} of {} ranks within {:g} s",
                        ranks_text(channel().late_takers(lane_)), members_[rank_], text_of(call),
                        size(), timeout_s()));
      }
      channel().pause(Channel::Seconds(waited), Channel::Seconds(0.001));
    }
    return {};
  }

  Expected<void> gather_parts(const Call& call, Bytes own, std::span<const std::size_t> sizes,
                              std::span<std::byte> all) {
    const auto at = offsets_of(sizes);
    return exchange(
        call, [&](int) { return own; },
        [&](int rank, Bytes bytes) {
          // In place, a rank's own part already lies where it belongs.
          if (bytes.data() != all.data() + at[rank]) {
            std::ranges::copy(bytes, all.begin() + at[rank]);
          }
        },
        sizes);
  }

  /// Takes the terms in the order of ranks, the first as it is: its sign of zero, too.
  template <class T>
  static auto adding_to(std::vector<T>& total) {
    return [&total](int rank, Bytes bytes) {
      if (rank > 0) return add(std::span(total), bytes.data());
      if (!bytes.empty()) std::memcpy(total.data(), bytes.data(), bytes.size());
    };
  }

  template <class T>
  Expected<void> scatter_sum(const Call& call, std::span<const T> all,
                             std::span<const std::size_t> counts, std::span<T> own) {
    const auto at = offsets_of(counts);
    std::vector<T> total(own.size());
    const std::vector<std::size_t> sizes(members_.size(), own.size_bytes());
    const auto done = exchange(
        call, [&](int rank) { return std::as_bytes(all.subspan(at[rank], counts[rank])); },
        adding_to(total), sizes);
    if (done) std::ranges::copy(total, own.begin());
    return done;
  }

  template <class T>
  Expected<void> sum(std::span<T> numbers) {
    const Call call{.kind = Call::Kind::all_sum, .bytes = numbers.size_bytes()};
    const std::size_t count = numbers.size();
    const auto ranks = members_.size();
    if (numbers.size_bytes() <= kSumAtOnceBytes) {
      // Seen as a scatter of which everyone takes the whole.
      std::vector<T> total(count);
      const auto done =
          exchange(call, [&](int) { return std::as_bytes(numbers); }, adding_to(total));
      if (done) std::ranges::copy(total, numbers.begin());
      return done;
    }
    std::vector<std::size_t> counts, sizes;
    for (std::size_t r = 0; r < ranks; ++r) {
      counts.push_back(count * (r + 1) / ranks - count * r / ranks);
      sizes.push_back(counts.back() * sizeof(T));
    }
    const std::size_t first = count * self() / ranks;
    const std::span<T> own = numbers.subspan(first, counts[self()]);
    auto added = scatter_sum<T>(call, numbers, counts, own);
    if (!added) return added;
    return gather_parts(call, std::as_bytes(own), sizes, std::as_writable_bytes(numbers));
  }

  std::shared_ptr<Shared> shared_;
  std::vector<int> members_;  // ranks of the job, by rank of the group
  int rank_;
  int lane_;
  GroupEnd end_;
};

/// A message of a window: where its bytes go, and which counter they raise.
struct Put {
  std::uint64_t offset;
  std::int64_t flag;
};

class MessageWindow final : public Window {
 public:
  MessageWindow(std::unique_ptr<MessageGroup> group, std::shared_ptr<Shared> shared, int lane,
                std::vector<std::size_t> sizes, int flags)
      : group_(std::move(group)),
        shared_(std::move(shared)),
        lane_(lane),
        sizes_(std::move(sizes)),
        memory_(sizes_[static_cast<std::size_t>(group_->rank())]),
        counters_(static_cast<std::size_t>(flags)) {}

  std::span<std::byte> bytes() override { return memory_; }

  Expected<void> put(int to, std::size_t offset, Bytes bytes, int flag) override {
    check(to >= 0 && to < group_->size(), "put: to a rank of the group");
    check(flag >= 0 && flag < std::ssize(counters_), "put: a flag of the window");
    const std::size_t room = sizes_[static_cast<std::size_t>(to)];
    check(offset <= room && bytes.size() <= room - offset, "put: inside of the target's window");
    if (const auto failed = group_->failure()) return *failed;
    const Put put{.offset = offset, .flag = flag};
    if (to == group_->rank()) {
      write(put, bytes);
    } else {
      shared_->send(group_->members()[to], lane_, std::as_bytes(std::span(&put, 1)), bytes);
    }
    return {};
  }

  Expected<void> wait(int flag, std::uint64_t count) override {
    check(flag >= 0 && flag < std::ssize(counters_), "wait: for a flag of the window");
    const Call call{.kind = Call::Kind::put};
    const WaitClock clock(*shared_);
    while (counters_[static_cast<std::size_t>(flag)] < count) {
      if (const auto failed = group_->failure()) return *failed;
      bool came = false;
      for (int from = 0; from < group_->size(); ++from) {
        if (from == group_->rank()) continue;
        const Arrival arrival = shared_->channel->poll(group_->members()[from], lane_);
        if (arrival.state == Arrival::State::message) {
          Put put;
          std::memcpy(&put, arrival.message.data(), sizeof(put));
          write(put, Bytes(arrival.message).subspan(sizeof(put)));
          came = true;
        } else if (arrival.state != Arrival::State::nothing) {
          return group_->break_off(group_->lost_text(from, arrival, call));
        }
      }
      const double waited = clock.waited_s();
      if (came) continue;
      if (waited > group_->timeout_s()) {
        return group_->break_off(
            fmt::format("flag {} of rank {} was raised {} times instead of {} within {:g} s", flag,
                        group_->members()[group_->rank()],
                        counters_[static_cast<std::size_t>(flag)], count, group_->timeout_s()));
      }
      shared_->channel->pause(Channel::Seconds(waited),
                              Channel::Seconds(group_->timeout_s() - waited));
    }
    return {};
  }

 private:
  void write(const Put& put, Bytes bytes) {
    std::ranges::copy(bytes, memory_.begin() + static_cast<std::ptrdiff_t>(put.offset));
    ++counters_[static_cast<std::size_t>(put.flag)];
  }

  std::unique_ptr<MessageGroup> group_;
  std::shared_ptr<Shared> shared_;
  int lane_;
  std::vector<std::size_t> sizes_;
  std::vector<std::byte> memory_;
  std::vector<std::uint64_t> counters_;
};

/// What a rank says of a new group, or of a window.
struct Proposal {
  std::int64_t lane;
  std::int64_t value;
};

/// Everyone's; from now on this rank uses no lane that any of them knows.
Expected<std::vector<Proposal>> propose(MessageGroup& group, Shared& shared, std::int64_t value,
                                        std::int64_t lanes = 1) {
  const Proposal own{.lane = shared.next_lane, .value = value};
  std::vector<Proposal> all(static_cast<std::size_t>(group.size()));
  const auto told =
      group.all_gather(std::as_bytes(std::span(&own, 1)), std::as_writable_bytes(std::span(all)));
  if (!told) return told.error();
  std::int64_t lane = 0;
  for (const Proposal& one : all) lane = std::max(lane, one.lane);
  for (Proposal& one : all) one.lane = lane;
  check(lane + lanes <= std::numeric_limits<int>::max(), "a job has so many lanes");
  shared.next_lane = lane + lanes;
  return all;
}

Expected<std::unique_ptr<Group>> MessageGroup::split(int colour) {
  const auto all = propose(*this, *shared_, colour);
  if (!all) return all.error();
  std::vector<int> members;
  for (std::size_t r = 0; r < all->size(); ++r) {
    if ((*all)[r].value == colour) members.push_back(members_[r]);
  }
  // Groups of one split have no rank in common, so that they can share a lane.
  return std::unique_ptr<Group>(std::make_unique<MessageGroup>(
      shared_, std::move(members), static_cast<int>(all->front().lane), GroupEnd::silent));
}

Expected<std::unique_ptr<Window>> MessageGroup::open_window(std::size_t bytes, int flags) {
  check(flags >= 1, "a window has at least one flag");
  const auto all = propose(*this, *shared_, static_cast<std::int64_t>(bytes));
  if (!all) return all.error();
  std::vector<std::size_t> sizes;
  for (const Proposal& one : *all) sizes.push_back(static_cast<std::size_t>(one.value));
  const auto lane = static_cast<int>(all->front().lane);
  auto same = std::make_unique<MessageGroup>(shared_, members_, lane, GroupEnd::silent);
  return std::unique_ptr<Window>(
      std::make_unique<MessageWindow>(std::move(same), shared_, lane, std::move(sizes), flags));
}

Expected<std::unique_ptr<Channel>> MessageGroup::open_channel(int lanes) {
  const auto all = propose(*this, *shared_, 0, lanes);
  if (!all) return all.error();
  return make_lane_channel({shared_, shared_->channel.get()}, members_,
                           {.first = static_cast<int>(all->front().lane), .count = lanes});
}

}  // namespace

std::unique_ptr<Group> make_message_group(std::unique_ptr<Channel> channel,
                                          const GroupOptions& options, GroupEnd end) {
  std::vector<int> members(static_cast<std::size_t>(channel->size()));
  std::iota(members.begin(), members.end(), 0);
  auto shared = std::make_shared<Shared>(
      Shared{.channel = std::move(channel), .timeout_s = options.timeout_s});
  return std::make_unique<MessageGroup>(std::move(shared), std::move(members), 0, end);
}

}  // namespace gauntlet::ranks
