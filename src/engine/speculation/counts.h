// What became of guesses.
#pragma once
#include <cstdint>
#include <vector>

namespace gauntlet::engine::inline speculation {

struct SpeculationCounts {
  std::int64_t steps = 0;    // of one request, with guesses
  std::int64_t drafted = 0;  // guesses that were verified
  std::int64_t accepted = 0;
  std::vector<std::int64_t> by_position;  // of those accepted

  void add_step(std::int64_t num_drafts) {
    ++steps;
    drafted += num_drafts;
  }
  void add_accepted(std::size_t position) {
    ++accepted;
    if (by_position.size() <= position) by_position.resize(position + 1);
    ++by_position[position];
  }
};

}  // namespace gauntlet::engine::inline speculation
