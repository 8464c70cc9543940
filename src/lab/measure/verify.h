// Verifying: is what a side left in its outputs what the reference says, and did it leave
// everything else alone?
#pragma once
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "lab/author/reference.h"
#include "lab/measure/buffer_set.h"
#include "lab/measure/compare_output.h"

namespace gauntlet::lab::inline measure {

/// Judges what sides leave in their buffers. Keeps host memory between checks, since large buffers
/// are read back many times.
class Verifier {
 public:
  explicit Verifier(std::uint64_t seed) : random_(seed) {}

  /// Copies what there is to judge, outputs first: they are what a latecomer would still write. Not
  /// ok where guard zones are broken or a buffer cannot be read.
  Verdict copy(const BufferSet& set);
  /// Judges what was copied last: inputs are made again from their version and the reference
  /// computed from those.
  Verdict judge_copy(const BufferSet& set);
  /// Both.
  Verdict judge(const BufferSet& set);

  /// Runs a side on new inputs and poisoned outputs, and judges it. When the same side ran on
  /// other inputs of the same set before, a failure is explained: an answer kept from before, or
  /// code right for the first inputs only.
  Verdict run(BufferSet& set, const Side& side, std::size_t index, std::uint64_t seed);

 private:
  Verdict copy_buffers(const BufferSet& set);
  std::uint64_t hash_outputs(const BufferSet& set) const;

  Random random_;
  Reference reference_{0};
  std::vector<HostArray<unsigned char>> copies_;  // of each buffer but scratch
  std::vector<HostArray<unsigned char>> inputs_;  // made again, by buffer
  std::map<std::pair<std::string, int>, HostArray<unsigned char>> peers_;  // other ranks' inputs
  std::map<std::size_t, std::uint64_t> previous_;                          // output hash by side
};

}  // namespace gauntlet::lab::inline measure
