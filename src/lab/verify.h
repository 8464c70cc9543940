// Verifying: is what a side left in its outputs what the reference says, and did it leave everything else alone?
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "lab/buffer_set.h"

namespace gauntlet::lab {

struct Verdict {
  bool ok = true;
  std::string reason;           // for a person, when not ok
  double max_error = 0;         // relative to magnitude
  double bound = 0;
  double checked_percent = 100;
};

/// Judges the current content of a set's buffers.
Verdict judge_buffers(const BufferSet& set);

/// Runs a side on a set whose outputs were poisoned, and judges it.
Verdict verify_run(BufferSet& set, const Side& side);

/// Runs a side on a set with one seed after another (its inputs change under it) and explains what a failure on a
/// later seed means: an answer kept from before, or code that is right for the first inputs only.
Verdict verify_seeds(BufferSet& set, const Side& side, const std::vector<std::uint64_t>& seeds);

}  // namespace gauntlet::lab
