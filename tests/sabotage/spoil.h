// Targets of a catalogue with one side spoiled, whatever that side does: only what a side returns
// and where its outputs are is touched.
#pragma once
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "lab/targets/target.h"

namespace gauntlet::sabotage {

enum class How {
  honest,           // behind the same wrapper as the others
  returns_at_once,  // its outputs stay as they are
  loses_half        // once it is timed, half of each output is again what it was before the run
};
inline constexpr How kAllHow[] = {How::honest, How::returns_at_once, How::loses_half};
constexpr const char* name_of(How how) {
  switch (how) {
    case How::honest:
      return "honest";
    case How::returns_at_once:
      return "returns_at_once";
    case How::loses_half:
      return "loses_half";
  }
  return "?";
}

/// Part of an output.
struct Extent {
  void* data = nullptr;
  std::size_t bytes = 0;
};

/// Keeps what is in some memory, and puts it back after a side ran. Made when the side is.
struct Keeper {
  std::function<void()> keep;
  std::function<void()> restore;
};
Keeper host_keeper(std::vector<Extent> extents);
/// In the stream of the side.
Keeper cuda_keeper(const std::vector<Extent>& extents, const lab::Cuda& cuda);

/// "tma_copy.optimized.loses_half"
std::string spoiled_name(const std::string& target, const std::string& side, How how);

/// The target with the side of this name spoiled on every backend that has it.
lab::Target spoil(const lab::Target& target, const std::string& side, How how);

/// The names of the sides after the first, on any backend.
std::vector<std::string> spoilable_sides(const lab::Target& target);

}  // namespace gauntlet::sabotage
