#include "core/ranks/lane_channel.h"

#include <algorithm>

#include "core/check.h"

namespace gauntlet::ranks {
namespace {

class LaneChannel final : public Channel {
 public:
  LaneChannel(std::shared_ptr<Channel> below, std::vector<int> members, const Lanes& lanes)
      : below_(std::move(below)),
        members_(std::move(members)),
        rank_(static_cast<int>(std::ranges::find(members_, below_->rank()) - members_.begin())),
        lanes_(lanes) {}

  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(members_.size()); }
  std::string transport() const override { return below_->transport(); }
  void send(int to, int lane, std::span<const std::byte> head,
            std::span<const std::byte> body) override {
    below_->send(members_.at(static_cast<std::size_t>(to)), lane_of(lane), head, body);
  }
  Arrival poll(int from, int lane) override {
    return below_->poll(members_.at(static_cast<std::size_t>(from)), lane_of(lane));
  }
  bool flushed(int lane) override { return below_->flushed(lane_of(lane)); }
  std::vector<int> late_takers(int lane) const override {
    return below_->late_takers(lane_of(lane));
  }
  void pause(Seconds waited, Seconds left) override { below_->pause(waited, left); }
  void break_off(const std::string& reason) override { below_->break_off(reason); }
  std::optional<std::string> broken() override { return below_->broken(); }

 private:
  int lane_of(int lane) const {
    check(lane >= 0 && lane < lanes_.count, "a lane of this channel");
    return lanes_.first + lane;
  }

  std::shared_ptr<Channel> below_;
  std::vector<int> members_;  // ranks below, by rank of this channel
  int rank_;
  Lanes lanes_;
};

}  // namespace

std::unique_ptr<Channel> make_lane_channel(std::shared_ptr<Channel> below, std::vector<int> members,
                                           const Lanes& lanes) {
  return std::make_unique<LaneChannel>(std::move(below), std::move(members), lanes);
}

}  // namespace gauntlet::ranks
