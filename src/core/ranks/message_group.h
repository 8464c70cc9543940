// The collectives of every transport, made of messages between two ranks.
#pragma once
#include <memory>

#include "core/ranks/channel.h"
#include "core/ranks/group.h"

namespace gauntlet::ranks {

/// What the end of a group means to the others.
enum class GroupEnd {
  silent,   // nothing: who started the ranks waits for them
  together  // the last call is a barrier, after which the transport is taken down
};

std::unique_ptr<Group> make_message_group(std::unique_ptr<Channel> channel,
                                          const GroupOptions& options, GroupEnd end);

}  // namespace gauntlet::ranks
