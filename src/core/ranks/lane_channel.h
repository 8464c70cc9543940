// Lanes of a channel that belong to somebody else than the group's own calls.
#pragma once
#include <memory>
#include <vector>

#include "core/ranks/channel.h"

namespace gauntlet::ranks {

struct Lanes {
  int first = 0;
  int count = 1;
};

/// Some lanes of `below`, from 0 on here, between the ranks `members` of it.
std::unique_ptr<Channel> make_lane_channel(std::shared_ptr<Channel> below, std::vector<int> members,
                                           const Lanes& lanes);

}  // namespace gauntlet::ranks
