// Verifying: is what a side left in its outputs what the reference says, and did it leave
// everything else alone?
#pragma once
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "lab/measure/buffer_set.h"

namespace gauntlet::lab::inline measure {

struct Verdict {
  bool ok = true;
  std::string reason;    // for a person, when not ok
  double max_error = 0;  // relative to magnitude
  double bound = 0;
  double checked_percent = 100;
};

/// Judges what sides leave in their buffers. Keeps host memory between checks, since large buffers
/// are read back many times.
class Verifier {
 public:
  /// Judges the current content of a set's buffers.
  Verdict judge(const BufferSet& set);

  /// Runs a side on a set whose outputs were poisoned, and judges it. When the same side ran on
  /// other inputs of the same set before, a failure is explained: an answer kept from before, or
  /// code right for the first inputs only.
  Verdict run(BufferSet& set, const Side& side, SideIndex index);

 private:
  std::span<const unsigned char> read_back(const BufferSet& set, std::size_t buffer);
  std::uint64_t hash_outputs(const BufferSet& set);

  HostArray<unsigned char> scratch_;
  std::map<int, std::uint64_t> previous_;  // output hash by side
};

}  // namespace gauntlet::lab::inline measure
