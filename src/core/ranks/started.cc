#include "core/ranks/started.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <list>
#include <optional>
#include <vector>

#include "core/check.h"
#include "core/ranks/call.h"
#include "core/ranks/channel.h"
#include "core/ranks/parts.h"

namespace gauntlet::ranks {
namespace {

using Bytes = std::span<const std::byte>;
using Clock = std::chrono::steady_clock;
using Message = std::vector<std::byte>;

/// Collectives that may be under way at a time have a lane each.
constexpr int kMostUnderWay = 4096;

/// One collective as a sequence of exchanges, in each of which everyone hears from everyone.
class Exchanges {
 public:
  Exchanges(Channel& channel, int lane, const Call& call)
      : channel_(channel), lane_(lane), call_(call), come_(ranks()) {}
  virtual ~Exchanges() = default;

  /// Takes what has come; an error where a rank is lost or calls something else.
  Expected<bool> advance() {
    while (!done_) {
      for (std::size_t from = 0; from < ranks(); ++from) {
        if (from == self() || come_[from]) continue;
        Arrival arrival = channel_.poll(static_cast<int>(from), lane_);
        if (arrival.state == Arrival::State::nothing) return false;
        if (arrival.state != Arrival::State::message) return broken(from, arrival);
        if (const auto wrong = mismatch(from, arrival.message)) return *wrong;
        come_[from] = std::move(arrival.message);
      }
      done_ = !next_round();
      come_.assign(ranks(), std::nullopt);
    }
    return true;
  }

  bool done() const { return done_; }
  int lane() const { return lane_; }
  const Call& call() const { return call_; }

  /// The first of those that have not come.
  int missing() const {
    for (std::size_t from = 0; from < ranks(); ++from) {
      if (from != self() && !come_[from]) return static_cast<int>(from);
    }
    return channel_.rank();
  }

  /// Sends the first round.
  virtual void begin() = 0;

 protected:
  /// All of a round have come: uses them, and sends what follows. Whether there is another round.
  virtual bool next_round() = 0;

  std::size_t ranks() const { return static_cast<std::size_t>(channel_.size()); }
  std::size_t self() const { return static_cast<std::size_t>(channel_.rank()); }
  Bytes body_of(std::size_t from) const { return Bytes(*come_[from]).subspan(sizeof(Call)); }
  void send(std::size_t to, Bytes bytes) {
    channel_.send(static_cast<int>(to), lane_, std::as_bytes(std::span(&call_, 1)), bytes);
  }
  void send_to_all(Bytes bytes) {
    for (std::size_t i = 1; i < ranks(); ++i) send((self() + i) % ranks(), bytes);
  }

 private:
  Error broken(std::size_t from, const Arrival& arrival) const {
    if (arrival.state == Arrival::State::broken) return {arrival.why};
    return {fmt::format("rank {} ended before {} of {} ranks{}{}", from, text_of(call_), ranks(),
                        arrival.why.empty() ? "" : ": ", arrival.why)};
  }

  std::optional<Error> mismatch(std::size_t from, const Message& message) const {
    Call theirs;
    check(message.size() >= sizeof(theirs), "a message begins with its call");
    std::memcpy(&theirs, message.data(), sizeof(theirs));
    if (theirs == call_) return std::nullopt;
    return Error{fmt::format("rank {} started {} where rank {} started {}", from, text_of(theirs),
                             self(), text_of(call_))};
  }

  Channel& channel_;
  int lane_;
  Call call_;
  std::vector<std::optional<Message>> come_;  // in this round, by rank
  bool done_ = false;
};

class Gathering final : public Exchanges {
 public:
  Gathering(Channel& channel, int lane, Bytes own, std::span<std::byte> all)
      : Exchanges(channel, lane, {.kind = Call::Kind::all_gather, .bytes = own.size()}),
        own_(own),
        all_(all) {}

  void begin() override { send_to_all(own_); }

 private:
  bool next_round() override {
    for (std::size_t rank = 0; rank < ranks(); ++rank) {
      const Bytes part = rank == self() ? own_ : body_of(rank);
      const auto place = all_.subspan(rank * own_.size(), own_.size());
      // In place, a rank's own part already lies where it belongs.
      if (part.data() != place.data()) std::ranges::copy(part, place.begin());
    }
    return false;
  }

  Bytes own_;
  std::span<std::byte> all_;
};

class Summing final : public Exchanges {
 public:
  Summing(Channel& channel, int lane, std::span<float> numbers)
      : Exchanges(channel, lane, {.kind = Call::Kind::all_sum, .bytes = numbers.size_bytes()}),
        numbers_(numbers),
        scatters_(numbers.size_bytes() > kSumAtOnceBytes) {}

  void begin() override {
    if (!scatters_) return send_to_all(std::as_bytes(numbers_));
    for (std::size_t i = 1; i < ranks(); ++i) {
      const std::size_t to = (self() + i) % ranks();
      send(to, std::as_bytes(part_of(to)));
    }
  }

 private:
  std::span<float> part_of(std::size_t rank) const {
    const std::size_t first = numbers_.size() * rank / ranks();
    return numbers_.subspan(first, numbers_.size() * (rank + 1) / ranks() - first);
  }

  bool next_round() override {
    if (gathers_) {
      for (std::size_t rank = 0; rank < ranks(); ++rank) {
        if (rank == self()) continue;
        std::ranges::copy(body_of(rank), std::as_writable_bytes(part_of(rank)).begin());
      }
      return false;
    }
    const std::span<float> own = scatters_ ? part_of(self()) : numbers_;
    // The first term is taken as it is: its sign of zero, too.
    std::vector<float> total(own.size());
    for (std::size_t rank = 0; rank < ranks(); ++rank) {
      const Bytes terms = rank == self() ? std::as_bytes(own) : body_of(rank);
      if (terms.empty()) continue;
      if (rank == 0) {
        std::memcpy(total.data(), terms.data(), terms.size());
      } else {
        add(std::span(total), terms.data());
      }
    }
    std::ranges::copy(total, own.begin());
    if (!scatters_) return false;
    send_to_all(std::as_bytes(own));
    gathers_ = true;
    return true;
  }

  std::span<float> numbers_;
  bool scatters_;
  bool gathers_ = false;
};

/// What a starter and all it started share.
class UnderWay {
 public:
  UnderWay(std::unique_ptr<Channel> channel, double timeout_s)
      : channel_(std::move(channel)), timeout_s_(timeout_s) {}

  Channel& channel() { return *channel_; }

  int next_lane() {
    check(calls_.empty() || started_ - calls_.front().number < std::size_t{kMostUnderWay},
          "too many collectives were started since the first that is under way");
    return static_cast<int>(started_++ % kMostUnderWay);
  }

  Expected<void> start(const std::shared_ptr<Exchanges>& call) {
    if (const auto reason = channel_->broken()) return Error{*reason};
    calls_.push_back({.number = started_ - 1, .exchanges = call});
    call->begin();
    return progress();
  }

  Expected<void> progress() {
    if (const auto reason = channel_->broken()) return Error{*reason};
    for (auto call = calls_.begin(); call != calls_.end();) {
      const auto done = call->exchanges->advance();
      if (!done) return break_off(done.error().message);
      call = *done ? calls_.erase(call) : std::next(call);
    }
    return {};
  }

  Expected<void> wait(const Exchanges& call) {
    const auto begin = Clock::now();
    while (true) {
      if (const auto moved = progress(); !moved) return moved;
      if (call.done() && channel_->flushed(call.lane())) return {};
      const double waited = Channel::Seconds(Clock::now() - begin).count();
      if (waited > timeout_s_) return break_off(late_text(call));
      channel_->pause(Channel::Seconds(waited), Channel::Seconds(timeout_s_ - waited));
    }
  }

 private:
  std::string late_text(const Exchanges& call) const {
    if (call.done()) {
      return fmt::format("what rank {} sent in {} was not taken within {:g} s", channel_->rank(),
                         text_of(call.call()), timeout_s_);
    }
    return fmt::format("rank {} did not come to {} of {} ranks within {:g} s", call.missing(),
                       text_of(call.call()), channel_->size(), timeout_s_);
  }

  Error break_off(const std::string& reason) {
    channel_->break_off(reason);
    return {channel_->broken().value_or(reason)};
  }

  std::unique_ptr<Channel> channel_;
  double timeout_s_;
  std::size_t started_ = 0;
  struct Numbered {
    std::size_t number;
    std::shared_ptr<Exchanges> exchanges;
  };
  std::list<Numbered> calls_;  // in the order they were started
};

class RealStarted final : public Started {
 public:
  RealStarted(std::shared_ptr<UnderWay> under_way, std::shared_ptr<Exchanges> call)
      : under_way_(std::move(under_way)), call_(std::move(call)) {}
  Expected<bool> test() override {
    if (const auto moved = under_way_->progress(); !moved) return moved.error();
    return call_->done();
  }
  Expected<void> wait() override { return under_way_->wait(*call_); }

 private:
  std::shared_ptr<UnderWay> under_way_;
  std::shared_ptr<Exchanges> call_;
};

class RealStarter final : public Starter {
 public:
  RealStarter(std::unique_ptr<Channel> channel, double timeout_s)
      : under_way_(std::make_shared<UnderWay>(std::move(channel), timeout_s)) {}

  Expected<std::shared_ptr<Started>> all_sum(std::span<float> numbers) override {
    return start<Summing>(numbers);
  }
  Expected<std::shared_ptr<Started>> all_gather(Bytes own, std::span<std::byte> all) override {
    check(all.size() == own.size() * static_cast<std::size_t>(under_way_->channel().size()),
          "all_gather needs room for every rank's bytes");
    return start<Gathering>(own, all);
  }
  Expected<void> progress() override { return under_way_->progress(); }

 private:
  template <class Call, class... Arguments>
  Expected<std::shared_ptr<Started>> start(Arguments... arguments) {
    const auto call =
        std::make_shared<Call>(under_way_->channel(), under_way_->next_lane(), arguments...);
    if (const auto started = under_way_->start(call); !started) return started.error();
    return std::shared_ptr<Started>(std::make_shared<RealStarted>(under_way_, call));
  }

  std::shared_ptr<UnderWay> under_way_;
};

}  // namespace

Expected<std::unique_ptr<Starter>> make_starter(Group& group, const GroupOptions& options) {
  auto channel = group.open_channel(kMostUnderWay);
  if (!channel) return channel.error();
  return std::unique_ptr<Starter>(
      std::make_unique<RealStarter>(std::move(*channel), options.timeout_s));
}

}  // namespace gauntlet::ranks
