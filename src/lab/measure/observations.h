// Observations: what sides say of their timed samples, block by block, and of nothing else. A side
// runs more often than it is timed: to be verified, to warm up, on inputs that are traps.
#pragma once
#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "lab/author/side.h"
#include "lab/measure/measure.h"

namespace gauntlet::lab::inline measure {

class Observations {
 public:
  explicit Observations(std::size_t sides) : sides_(sides) {}

  /// Before a sample: what the side observed outside of the samples that count is dropped.
  void discard(std::size_t side, const Side& from);
  /// After a sample that counts, for each of its sets: what it observed goes to the current block.
  void take(std::size_t side, const Side& from);
  /// The current block ends, and counts or does not.
  void keep_block();
  void drop_block();

  /// The name of a count of the lab's that a side stated by itself; empty: it never did.
  const std::string& stated(std::size_t side) const { return sides_[side].stated; }

  void write_to(std::vector<SideMeasurement>& out) const;

 private:
  struct Mean {
    double sum = 0;
    double count = 0;
  };
  struct OfSide {
    std::map<std::string, Mean> kept, pending;
    std::map<std::string, std::vector<std::vector<float>>> blocks;  // that were kept
    std::map<std::string, std::vector<float>> block;
    std::map<std::string, std::size_t> num_values;  // in `blocks`
    std::string stated;
  };
  std::map<std::string, double> outcomes_of(std::size_t side, const Side& from);

  std::vector<OfSide> sides_;
};

}  // namespace gauntlet::lab::inline measure
