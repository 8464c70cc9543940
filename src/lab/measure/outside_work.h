// OutsideWork: does a side work while its clock stands still? Counts the samples in which it did.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "lab/measure/backend.h"

namespace gauntlet::lab::inline measure {

class OutsideWork {
 public:
  OutsideWork(BackendKind backend, std::size_t sides) : backend_(backend), sides_(sides) {}

  void see(std::size_t side, const Timing& timing);
  /// What a side did, once it is beyond doubt: a host that was not scheduled for a while shows as
  /// work once, work that escapes shows in sample after sample.
  std::optional<std::string> found(std::size_t side) const;
  /// What a sample took with what its clock did not see.
  double with_uncounted(const Timing& timing) const;

 private:
  struct Count {
    int samples = 0;
    int before = 0, after = 0;
    Timing worst_before, worst_after;
    bool left_process = false;
  };
  BackendKind backend_;
  std::vector<Count> sides_;
};

}  // namespace gauntlet::lab::inline measure
