// What do gradients lose, and what does the link gain, when they travel in half of their bits?
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/ranks/group.h"
#include "core/ranks/link.h"
#include "core/ranks/must.h"

namespace gauntlet::ch04::gradient_compression {

struct Params {
  const float* gradients;  // [count], of this rank
  float* sums;             // [count], over all ranks
  std::int64_t count;      // a multiple of the ranks
  gauntlet::ranks::Fabric fabric;
  int num_ranks;
};

/// A sum over the ranks with messages of another type: everyone adds up its part of all numbers in
/// float32, and the parts are gathered. All ranks end with the same numbers.
template <class Wire, class ToWire, class FromWire>
class WireSum {
 public:
  WireSum(std::int64_t count, int ranks)
      : part_(static_cast<std::size_t>(count / ranks)),
        wire_(static_cast<std::size_t>(count)),
        arrived_(static_cast<std::size_t>(count)),
        sizes_(static_cast<std::size_t>(ranks), part_ * sizeof(Wire)) {}

  void operator()(gauntlet::ranks::Group& group, const float* gradients, float* sums) {
    for (std::size_t i = 0; i < wire_.size(); ++i) wire_[i] = ToWire()(gradients[i]);
    gauntlet::ranks::must(group.all_to_all({.sent = std::as_bytes(std::span(wire_)),
                                            .sent_sizes = sizes_,
                                            .received = std::as_writable_bytes(std::span(arrived_)),
                                            .received_sizes = sizes_}));
    Wire* own = wire_.data() + static_cast<std::size_t>(group.rank()) * part_;
    for (std::size_t i = 0; i < part_; ++i) {
      float sum = 0;
      for (std::size_t at = i; at < arrived_.size(); at += part_) sum += FromWire()(arrived_[at]);
      own[i] = ToWire()(sum);
    }
    gauntlet::ranks::must(group.all_gather(std::as_bytes(std::span(own, part_)),
                                           std::as_writable_bytes(std::span(arrived_))));
    for (std::size_t i = 0; i < arrived_.size(); ++i) sums[i] = FromWire()(arrived_[i]);
  }

 private:
  std::size_t part_;
  std::vector<Wire> wire_, arrived_;  // [ranks, part]
  std::vector<std::size_t> sizes_;
};

}  // namespace gauntlet::ch04::gradient_compression
