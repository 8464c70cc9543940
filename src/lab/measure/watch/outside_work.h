// OutsideWork: does a side work while its clock stands still? Counts the samples in which it did,
// and what its time is with it.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "lab/measure/backend.h"

namespace gauntlet::lab::inline measure {

class OutsideWork {
 public:
  OutsideWork(BackendKind backend, std::size_t sides) : backend_(backend), sides_(sides) {}

  void see(std::size_t side, const Timing& timing, Helpers helpers = Helpers::none);
  /// What a side did, once it is beyond doubt: a host that was not scheduled for a while shows as
  /// work once, work that escapes shows in sample after sample.
  std::optional<std::string> found(std::size_t side) const;
  /// What a sample took with what its clock did not see. Work that nobody declared may be another
  /// side's, there to make the baseline look slow: its time is not made longer by it.
  double with_uncounted(std::size_t side, const Timing& timing,
                        Helpers helpers = Helpers::none) const;

 private:
  struct Count {
    int samples = 0;
    int before = 0, after = 0, host = 0, restless = 0;
    Timing worst_before, worst_after;
    double worst_host_ns = 0;
    bool left_process = false;
  };
  BackendKind backend_;
  std::vector<Count> sides_;
};

}  // namespace gauntlet::lab::inline measure
