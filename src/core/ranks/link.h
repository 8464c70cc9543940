// Links of a declared latency and rate: what ranks of one machine need to stand for ranks of many.
// Two cores are no copy engines, so that the time of a link is waited for, without CPU time.
#pragma once
#include <cstdint>
#include <limits>
#include <memory>

#include "core/ranks/group.h"

namespace gauntlet::ranks {

struct Link {
  double latency_s = 0;
  double bytes_per_s = std::numeric_limits<double>::infinity();
};

/// Hosts of so many ranks each, neighbours together. Every rank has one port to the ranks of its
/// host and one to all others; what it sends through a port goes one message after the other. Ports
/// that receive are not modelled.
struct Fabric {
  Link between = {};
  Link within = {};
  int ranks_per_host = 1;

  bool same_host(int a, int b) const { return a / ranks_per_host == b / ranks_per_host; }
};

/// What one rank sent and waited for since its links were made, counted by them.
struct LinkTraffic {
  std::uint64_t messages = 0;          // sent
  std::uint64_t bytes = 0;             // of these messages, with their calls
  std::uint64_t messages_between = 0;  // to other hosts
  std::uint64_t bytes_between = 0;
  double wire_s = 0;     // while something was on its way to this rank
  double exposed_s = 0;  // of this, while the rank waited in a call
};

/// A rank's links. Used by the thread that uses the group.
class Links {
 public:
  virtual ~Links() = default;
  virtual const Fabric& fabric() const = 0;
  virtual LinkTraffic traffic() = 0;
};

struct LinkedGroup {
  std::shared_ptr<Links> links;
  std::unique_ptr<Group> group;
};

/// The ranks of a group over such links: no byte is seen before its message has been on the way for
/// the latency and for its bytes at the rate. All call it, with the same fabric; the ranks are on
/// one machine, whose monotonic clock they share. Links that take no time count messages and bytes.
Expected<LinkedGroup> over_links(Group& group, const Fabric& fabric,
                                 const GroupOptions& options = {});

}  // namespace gauntlet::ranks
